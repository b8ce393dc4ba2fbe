// A Java program on Aurora DSQL, through pgjdbc. Each check prints one line: its name, and "ok" or what went wrong.
// java -cp postgresql.jar Dsql.java URL PASSWORD

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;
import java.util.UUID;

public class Dsql {
  interface Check {
    void run() throws Exception;
  }

  static String url;
  static String password;

  public static void main(String[] args) throws Exception {
    url = args[0];
    password = args[1];
    check("connects", Dsql::connects);
    for (String threshold : new String[] {"0", "1", "5"})
      check("prepared statements, threshold " + threshold, () -> preparedStatements(threshold));
    for (String mode : new String[] {"simple", "extended", "extendedCacheEverything"})
      check("query mode " + mode, () -> queryMode(mode));
    check("batches", Dsql::batches);
    check("conflict", Dsql::conflict);
    check("refusal", Dsql::refusal);
    check("meta data", Dsql::metaData);
    check("wrong token", Dsql::wrongToken);
  }

  static void check(String name, Check check) {
    try {
      check.run();
      System.out.println(name + ": ok");
    } catch (Throwable thrown) {
      System.out.println(name + ": " + String.valueOf(thrown).replace('\n', ' '));
    }
  }

  static Connection connect(String... settings) throws SQLException {
    Properties properties = new Properties();
    properties.setProperty("password", password);
    for (int at = 0; at < settings.length; at += 2) properties.setProperty(settings[at], settings[at + 1]);
    return DriverManager.getConnection(url, properties);
  }

  static void expect(Object expected, Object found) {
    if (!String.valueOf(expected).equals(String.valueOf(found)))
      throw new AssertionError("expected " + expected + ", found " + found);
  }

  static String one(Connection connection, String query) throws SQLException {
    try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(query)) {
      rows.next();
      return rows.getString(1);
    }
  }

  static void connects() throws SQLException {
    try (Connection connection = connect("ApplicationName", "jdbc on dsql")) {
      expect("admin", one(connection, "SELECT current_user"));
      expect(16, connection.getMetaData().getDatabaseMajorVersion());
    }
  }

  static void preparedStatements(String threshold) throws SQLException {
    try (Connection connection = connect("prepareThreshold", threshold);
        PreparedStatement statement = connection.prepareStatement("SELECT ?::int + 1, ?::uuid")) {
      for (int n = 0; n < 8; n++) {
        UUID id = UUID.randomUUID();
        statement.setInt(1, n);
        statement.setObject(2, id);
        try (ResultSet rows = statement.executeQuery()) {
          rows.next();
          expect(n + 1, rows.getInt(1));
          expect(id, rows.getObject(2));
        }
      }
    }
  }

  static void queryMode(String mode) throws SQLException {
    try (Connection connection = connect("preferQueryMode", mode)) {
      for (int n = 0; n < 3; n++) expect("2", one(connection, "SELECT 1 + 1"));
      connection.setAutoCommit(false);
      expect("3", one(connection, "SELECT 1 + 2"));
      connection.rollback();
    }
  }

  static void batches() throws SQLException {
    try (Connection connection = connect()) {
      connection.setAutoCommit(false);
      try (PreparedStatement insert = connection.prepareStatement("INSERT INTO jdbc_rows (id, n) VALUES (?, ?)")) {
        for (int n = 0; n < 100; n++) {
          insert.setObject(1, UUID.randomUUID());
          insert.setInt(2, n);
          insert.addBatch();
        }
        expect(100, insert.executeBatch().length);
      }
      connection.commit();
      expect("100 4950", one(connection, "SELECT count(*) || ' ' || sum(n) FROM jdbc_rows"));
      connection.rollback();
    }
  }

  static void conflict() throws SQLException {
    try (Connection first = connect(); Connection second = connect()) {
      for (Connection connection : new Connection[] {first, second}) {
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
          expect(1, statement.executeUpdate("UPDATE jdbc_counters SET n = n + 1 WHERE id = 1"));
        }
      }
      first.commit();
      try {
        second.commit();
        throw new AssertionError("both were committed");
      } catch (SQLException conflict) {
        expect("40001", conflict.getSQLState());
        if (!conflict.getMessage().contains("OC000")) throw conflict;
      }
      second.rollback();
      expect("1", one(second, "SELECT n FROM jdbc_counters WHERE id = 1"));
    }
  }

  static void refusal() throws SQLException {
    try (Connection connection = connect(); Statement statement = connection.createStatement()) {
      statement.execute("TRUNCATE jdbc_rows");
      throw new AssertionError("it was not refused");
    } catch (SQLException refusal) {
      expect("0A000", refusal.getSQLState());
    }
  }

  static void metaData() throws SQLException {
    try (Connection connection = connect()) {
      try (ResultSet tables = connection.getMetaData().getTables(null, "public", "jdbc_%", new String[] {"TABLE"})) {
        tables.next();
        expect("jdbc_counters", tables.getString("TABLE_NAME"));
        tables.next();
        expect("jdbc_rows", tables.getString("TABLE_NAME"));
      }
      try (ResultSet columns = connection.getMetaData().getColumns(null, "public", "jdbc_rows", null)) {
        columns.next();
        expect("uuid", columns.getString("TYPE_NAME"));
      }
      try (ResultSet keys = connection.getMetaData().getPrimaryKeys(null, "public", "jdbc_rows")) {
        keys.next();
        expect("id", keys.getString("COLUMN_NAME"));
      }
    }
  }

  static void wrongToken() throws SQLException {
    String good = password;
    password = good + "0";
    try (Connection connection = connect()) {
      throw new AssertionError("a wrong token was accepted");
    } catch (SQLException refusal) {
      if (!refusal.getMessage().contains("access denied")) throw refusal;
    } finally {
      password = good;
    }
  }
}
