// What Java programs do through pgjdbc while tables and types change: statements are prepared on the server at their first use, and values
// are transferred in binary. See ../migration.ts.
// java -cp postgresql.jar Migration.java HOST PORT DATABASE USER PASSWORD [HOST PORT DATABASE USER PASSWORD ...]

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

public class Migration {
  static final BufferedReader input = new BufferedReader(new InputStreamReader(System.in));

  interface Binder {
    void bind(PreparedStatement statement) throws SQLException;
  }

  public static void main(String[] args) throws Exception {
    for (int at = 0; at < args.length; at += 5) {
      say("begin");
      List<Connection> connections = new ArrayList<>();
      for (int index = 0; index < 3; index++) {
        Properties properties = new Properties();
        properties.setProperty("user", args[at + 3]);
        properties.setProperty("password", args[at + 4]);
        properties.setProperty("prepareThreshold", "1");
        properties.setProperty("binaryTransfer", "true");
        String url = "jdbc:postgresql://" + args[at] + ":" + args[at + 1] + "/" + args[at + 2];
        connections.add(DriverManager.getConnection(url, properties));
      }
      for (int number = 0; number < 6; number++) {
        if (number > 0) say("migrate " + number);
        batch(number, connections);
      }
      for (Connection connection : connections) connection.close();
    }
    System.out.println("end");
  }

  /** Goes on when the test has done what is said. */
  static void say(String line) throws Exception {
    System.out.println(line);
    System.out.flush();
    input.readLine();
  }

  static void batch(int number, List<Connection> connections) {
    for (int turn = 0; turn < 2; turn++) {
      for (int index = 0; index < connections.size(); index++) {
        Connection connection = connections.get(index);
        int key = number * 100 + turn * 10 + index;
        String label = number + "." + turn + "." + index + " ";
        LocalDateTime noon = LocalDateTime.of(2026, 1, 1, 12, 0);
        attempt(label + "insert", connection,
            "insert into moved (id, n, at, note) values (?, ?, ?, ?) returning *", statement -> {
              statement.setInt(1, key);
              if (number < 1) statement.setInt(2, key);
              else statement.setLong(2, 5_000_000_000L + key);
              if (number < 2) statement.setObject(3, noon);
              else statement.setObject(3, OffsetDateTime.of(noon, ZoneOffset.ofHours(5)));
              statement.setString(4, "note " + key);
            });
        String mood = number < 4 ? "sad" : "mad";
        attempt(label + "text", connection, "insert into moods (m) values (?) returning m",
            statement -> statement.setObject(1, mood, Types.OTHER));
        attempt(label + "one", connection, "select n, at from moved where id = ?",
            statement -> statement.setInt(1, key));
        attempt(label + "count", connection, "select count(*) from moved where n = ?",
            statement -> statement.setObject(1, String.valueOf(number < 1 ? key : 5_000_000_000L + key), Types.OTHER));
        attempt(label + "all", connection, "select * from moved order by id desc limit 2", statement -> {});
      }
    }
  }

  static void attempt(String label, Connection connection, String text, Binder binder) {
    try (PreparedStatement statement = connection.prepareStatement(text)) {
      binder.bind(statement);
      List<String> rows = new ArrayList<>();
      try (ResultSet result = statement.executeQuery()) {
        int columns = result.getMetaData().getColumnCount();
        while (result.next()) {
          List<String> row = new ArrayList<>();
          for (int column = 1; column <= columns; column++) row.add(String.valueOf(result.getObject(column)));
          rows.add(row.toString());
        }
      }
      System.out.println(label + ": " + rows);
    } catch (SQLException error) {
      System.out.println(label + ": error " + error.getSQLState());
    }
  }
}
