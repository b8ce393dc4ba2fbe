// Runs texts through pgjdbc as DBeaver and Flyway do: each is a statement of its own, in autocommit and in transactions.
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.Properties;

public class Tools {
  public static void main(String[] args) throws Exception {
    Properties properties = new Properties();
    properties.setProperty("user", "admin");
    properties.setProperty("options", "-c statement_timeout=8s -c lock_timeout=1s");
    properties.setProperty("ApplicationName", "tools");
    try (Connection connection = DriverManager.getConnection(args[0], properties)) {
      for (boolean autoCommit : new boolean[] {true, false}) {
        connection.setAutoCommit(autoCommit);
        for (String text : Files.readAllLines(Path.of(args[1])))
          try (Statement statement = connection.createStatement()) {
            if (!autoCommit && text.startsWith("SET ROLE")) continue;
            statement.execute(text);
          }
        if (!autoCommit) connection.commit();
      }
      connection.setAutoCommit(true);
      // As Flyway does it, often enough for the driver to give the statement a name.
      for (int run = 0; run < 8; run++)
        try (var prepared = connection.prepareStatement("SELECT set_config('search_path', ?, false)")) {
          prepared.setString(1, "\"Path " + run + "\", public");
          prepared.execute();
        }
      System.out.println("path " + show(connection, "search_path"));
      connection.setAutoCommit(false);
      try (var prepared = connection.prepareStatement("SELECT set_config('search_path', ?, false)")) {
        prepared.setString(1, "undone");
        prepared.execute();
      }
      System.out.println("path " + show(connection, "search_path"));
      connection.rollback();
      System.out.println("path " + show(connection, "search_path"));
      connection.commit();
      connection.setAutoCommit(true);
      connection.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
      System.out.println("timeout " + show(connection, "statement_timeout"));
      for (int run = 0; run < 8; run++)
        try (var prepared = connection.prepareStatement("SET statement_timeout = 9000")) {
          prepared.execute();
        }
      System.out.println("timeout " + show(connection, "statement_timeout"));
      connection.setReadOnly(true);
      connection.setAutoCommit(false);
      try (Statement statement = connection.createStatement()) {
        statement.execute("INSERT INTO public.notes VALUES (77, 'read-only')");
      } catch (java.sql.SQLException refused) {
        System.out.println("refused " + refused.getSQLState());
      }
      connection.rollback();
    }
  }

  private static String show(Connection connection, String name) throws Exception {
    try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery("SHOW " + name)) {
      rows.next();
      return rows.getString(1);
    }
  }
}
