// What Java programs do with a database, through pgjdbc. Each check prints one line: its name, and "ok" or what went wrong.
// java -cp postgresql.jar Workload.java HOST PORT DATABASE USER PASSWORD

import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.sql.Array;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Timestamp;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;
import org.postgresql.PGStatement;
import org.postgresql.copy.CopyManager;
import org.postgresql.largeobject.LargeObject;
import org.postgresql.largeobject.LargeObjectManager;

public class Workload {
  interface Check {
    void run() throws Exception;
  }

  static String url;
  static String user;
  static String password;

  public static void main(String[] args) throws Exception {
    url = "jdbc:postgresql://" + args[0] + ":" + args[1] + "/" + args[2];
    user = args[3];
    password = args[4];
    check("driver", () -> System.out.println("version: " + new org.postgresql.Driver().getMajorVersion() + "."
        + new org.postgresql.Driver().getMinorVersion()));
    for (String threshold : List.of("1", "5", "-1", "0"))
      check("prepared statements, threshold " + threshold, () -> preparedStatements(threshold));
    for (String mode : List.of("simple", "extended", "extendedForPrepared", "extendedCacheEverything"))
      check("query mode " + mode, () -> queryMode(mode));
    check("transactions", Workload::transactions);
    check("savepoint for each statement", Workload::autosave);
    check("batches", Workload::batches);
    check("batch that fails", Workload::failingBatch);
    check("batch rewritten", Workload::rewrittenBatch);
    check("large objects", Workload::largeObjects);
    check("copy", Workload::copy);
    check("copy that fails", Workload::failingCopy);
    check("fetch size", Workload::fetchSize);
    check("cancel", Workload::cancel);
    check("query timeout", Workload::queryTimeout);
    check("binary transfer", Workload::binaryTransfer);
    check("many connections", Workload::manyConnections);
    check("deallocate and discard", Workload::deallocate);
    check("changed table", Workload::changedTable);
    check("settings and meta data", Workload::settings);
    check("notifications", Workload::notifications);
    check("generated keys and calls", Workload::generatedKeys);
  }

  static void check(String name, Check body) {
    String outcome;
    try {
      body.run();
      outcome = "ok";
    } catch (Throwable wrong) {
      StackTraceElement place = Arrays.stream(wrong.getStackTrace())
          .filter(frame -> frame.getClassName().startsWith("Workload")).findFirst().orElse(null);
      outcome = (wrong + " at " + place).replace('\n', ' ');
    }
    System.out.println(name + ": " + outcome);
  }

  static Connection connect(String... options) throws SQLException {
    Properties properties = new Properties();
    properties.setProperty("user", user);
    properties.setProperty("password", password);
    properties.setProperty("sslmode", "disable");
    properties.setProperty("ApplicationName", "headgate-jdbc");
    for (int at = 0; at < options.length; at += 2) properties.setProperty(options[at], options[at + 1]);
    return DriverManager.getConnection(url, properties);
  }

  static void same(Object expected, Object actual) {
    if (!Objects.equals(expected, actual)) throw new AssertionError("expected " + expected + " and got " + actual);
  }

  static void fails(String state, Check body) throws Exception {
    try {
      body.run();
    } catch (SQLException error) {
      same(state, error.getSQLState());
      return;
    }
    throw new AssertionError("expected " + state + " and got no error");
  }

  static int number(Connection connection, String sql) throws SQLException {
    try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery(sql)) {
      rows.next();
      return rows.getInt(1);
    }
  }

  static void execute(Connection connection, String... texts) throws SQLException {
    try (Statement statement = connection.createStatement()) {
      for (String text : texts) statement.execute(text);
    }
  }

  // More statements than the pooler keeps on a server, and the same ones on two connections.
  static void preparedStatements(String threshold) throws Exception {
    try (Connection one = connect("prepareThreshold", threshold); Connection other = connect("prepareThreshold", threshold)) {
      for (int round = 0; round < 8; round++) {
        for (int kind = 0; kind < 12; kind++) {
          for (Connection connection : List.of(one, other)) {
            try (PreparedStatement statement = connection.prepareStatement("select ?::int * " + kind + ", ?::text")) {
              statement.setInt(1, round);
              statement.setString(2, "ä" + round);
              ResultSet rows = statement.executeQuery();
              rows.next();
              same(round * kind, rows.getInt(1));
              same("ä" + round, rows.getString(2));
            }
          }
        }
      }
      try (PreparedStatement kept = one.prepareStatement("select 1 / ?")) {
        for (int n = 0; n < 12; n++) {
          int divisor = n % 3;
          kept.setInt(1, divisor);
          if (divisor == 0) fails("22012", kept::executeQuery);
          else kept.executeQuery();
        }
        if (threshold.equals("1")) same(true, kept.unwrap(PGStatement.class).isUseServerPrepare());
      }
    }
  }

  static void queryMode(String mode) throws Exception {
    try (Connection connection = connect("preferQueryMode", mode)) {
      for (int n = 1; n < 10; n++) {
        same(n, number(connection, "select " + n));
        same(3, number(connection, "select 1 + 2"));
      }
      try (Statement several = connection.createStatement()) {
        same(true, several.execute("select 1; select 2"));
        same(true, several.getMoreResults());
        several.getResultSet().next();
        same(false, several.getMoreResults());
        fails("42703", () -> several.execute("select nonsense"));
        fails("22012", () -> several.execute("select 1; select 1/0; select 3"));
      }
      same(4, number(connection, "select 4"));
    }
  }

  static void transactions() throws Exception {
    try (Connection connection = connect("prepareThreshold", "1"); Connection other = connect()) {
      execute(connection, "drop table if exists tx", "create table tx (n int primary key)");
      connection.setAutoCommit(false);
      connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
      try (PreparedStatement insert = connection.prepareStatement("insert into tx values (?)")) {
        for (int n = 0; n < 20; n++) {
          insert.setInt(1, n);
          insert.executeUpdate();
          if (n % 2 == 0) connection.commit();
          else connection.rollback();
        }
        Savepoint savepoint = connection.setSavepoint("here");
        insert.setInt(1, 0);
        fails("23505", insert::executeUpdate);
        fails("25P02", () -> number(connection, "select 1"));
        connection.rollback(savepoint);
        insert.setInt(1, 100);
        insert.executeUpdate();
        same(10, number(other, "select count(*) from tx"));
        connection.commit();
      }
      same(11, number(other, "select count(*) from tx"));
      connection.setReadOnly(true);
      fails("25006", () -> execute(connection, "delete from tx"));
      connection.rollback();
      connection.setReadOnly(false);
      connection.setAutoCommit(true);
      execute(connection, "delete from tx");
      same(0, number(other, "select count(*) from tx"));
      same(Connection.TRANSACTION_READ_COMMITTED, other.getTransactionIsolation());
    }
  }

  static void autosave() throws Exception {
    try (Connection connection = connect("autosave", "always", "prepareThreshold", "1")) {
      connection.setAutoCommit(false);
      for (int n = 0; n < 5; n++) {
        int expected = n;
        fails("22012", () -> number(connection, "select 1 / 0"));
        same(expected, number(connection, "select " + n));
      }
      connection.commit();
    }
  }

  static void batches() throws Exception {
    for (String threshold : List.of("0", "1", "5")) {
      try (Connection connection = connect("prepareThreshold", threshold)) {
        execute(connection, "drop table if exists batch", "create table batch (n int primary key, t text)");
        try (PreparedStatement insert = connection.prepareStatement("insert into batch values (?, ?)")) {
          for (int n = 0; n < 2000; n++) {
            insert.setInt(1, n);
            insert.setString(2, "text " + "x".repeat(n % 100));
            insert.addBatch();
          }
          same(2000, Arrays.stream(insert.executeBatch()).sum());
        }
        connection.setAutoCommit(false);
        try (Statement mixed = connection.createStatement()) {
          mixed.addBatch("update batch set t = 'changed' where n < 10");
          mixed.addBatch("delete from batch where n >= 1000");
          mixed.addBatch("insert into batch select n, 'more' from generate_series(5000, 5002) as n");
          same("[10, 1000, 3]", Arrays.toString(mixed.executeBatch()));
        }
        connection.commit();
        same(1003, number(connection, "select count(*) from batch"));
        connection.commit();
      }
    }
  }

  static void failingBatch() throws Exception {
    try (Connection connection = connect("prepareThreshold", "1")) {
      execute(connection, "drop table if exists failing", "create table failing (n int primary key)");
      for (boolean commits : List.of(true, false)) {
        connection.setAutoCommit(commits);
        try (PreparedStatement insert = connection.prepareStatement("insert into failing values (?)")) {
          for (int n = 0; n < 600; n++) {
            insert.setInt(1, n == 300 ? 7 : n + (commits ? 0 : 1000));
            insert.addBatch();
          }
          // In a transaction of its own 7 is not there twice; it is there after the first turn.
          try {
            insert.executeBatch();
            throw new AssertionError("the batch did not fail");
          } catch (BatchUpdateException error) {
            same("23505", error.getSQLState());
          }
        }
        if (!commits) connection.rollback();
        else execute(connection, "truncate failing", "insert into failing values (7)");
      }
      connection.setAutoCommit(true);
      same(1, number(connection, "select count(*) from failing"));
    }
  }

  static void rewrittenBatch() throws Exception {
    try (Connection connection = connect("reWriteBatchedInserts", "true", "prepareThreshold", "1")) {
      execute(connection, "drop table if exists rewritten", "create table rewritten (n int, t text)");
      for (int size : new int[] {1, 3, 127, 500}) {
        try (PreparedStatement insert = connection.prepareStatement("insert into rewritten values (?, ?)")) {
          for (int n = 0; n < size; n++) {
            insert.setInt(1, n);
            insert.setString(2, "t" + n);
            insert.addBatch();
          }
          insert.executeBatch();
        }
      }
      same(631, number(connection, "select count(*) from rewritten"));
    }
  }

  // pgjdbc reads and writes large objects with function calls of the protocol.
  static void largeObjects() throws Exception {
    byte[] content = new byte[300_000];
    for (int at = 0; at < content.length; at++) content[at] = (byte) (at * 31);
    try (Connection connection = connect()) {
      connection.setAutoCommit(false);
      LargeObjectManager manager = connection.unwrap(PGConnection.class).getLargeObjectAPI();
      long id = manager.createLO(LargeObjectManager.READWRITE);
      LargeObject object = manager.open(id, LargeObjectManager.READWRITE);
      object.write(content);
      object.seek(100_000);
      same(content[100_000], object.read(1)[0]);
      object.truncate(250_000);
      same(250_000, object.size());
      object.close();
      connection.commit();
      object = manager.open(id, LargeObjectManager.READ);
      try (InputStream stream = object.getInputStream()) {
        same(true, Arrays.equals(Arrays.copyOf(content, 250_000), stream.readAllBytes()));
      }
      manager.delete(id);
      connection.commit();
      fails("42704", () -> manager.open(id));
      connection.rollback();
      same(1, number(connection, "select 1"));
      connection.commit();
    }
  }

  static void copy() throws Exception {
    try (Connection connection = connect()) {
      execute(connection, "drop table if exists copied", "create table copied (n int, t text)");
      CopyManager manager = connection.unwrap(PGConnection.class).getCopyAPI();
      StringBuilder text = new StringBuilder();
      for (int n = 0; n < 20_000; n++) text.append(n).append("\ttext ").append(n).append('\n');
      same(20_000L, manager.copyIn("copy copied from stdin", new StringReader(text.toString())));
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      same(20_000L, manager.copyOut("copy (select * from copied order by n) to stdout", out));
      same(text.toString(), out.toString(StandardCharsets.UTF_8));
      ByteArrayOutputStream binary = new ByteArrayOutputStream();
      manager.copyOut("copy copied to stdout (format binary)", binary);
      execute(connection, "truncate copied");
      manager.copyIn("copy copied from stdin (format binary)", new java.io.ByteArrayInputStream(binary.toByteArray()));
      same(20_000, number(connection, "select count(*) from copied"));
    }
  }

  static void failingCopy() throws Exception {
    try (Connection connection = connect()) {
      execute(connection, "drop table if exists copied_badly", "create table copied_badly (n int)");
      CopyManager manager = connection.unwrap(PGConnection.class).getCopyAPI();
      fails("22P02", () -> manager.copyIn("copy copied_badly from stdin", new StringReader("1\nx\n" + "2\n".repeat(50_000))));
      fails("42P01", () -> manager.copyIn("copy no_such_table from stdin", new StringReader("1\n")));
      var given = manager.copyIn("copy copied_badly from stdin");
      given.writeToCopy("1\n2\n".getBytes(StandardCharsets.UTF_8), 0, 4);
      given.cancelCopy();
      same(0, number(connection, "select count(*) from copied_badly"));
      same(5, number(connection, "select 5"));
    }
  }

  static void fetchSize() throws Exception {
    for (String threshold : List.of("0", "1")) {
      try (Connection connection = connect("prepareThreshold", threshold)) {
        connection.setAutoCommit(false);
        for (int turn = 0; turn < 3; turn++) {
          try (PreparedStatement first = connection.prepareStatement("select generate_series(1, ?)");
              PreparedStatement second = connection.prepareStatement("select generate_series(1, ?) * 2")) {
            first.setInt(1, 1000);
            first.setFetchSize(30);
            second.setInt(1, 1000);
            second.setFetchSize(70);
            // Two portals at a time, in turn.
            try (ResultSet one = first.executeQuery(); ResultSet two = second.executeQuery()) {
              for (int n = 1; n <= 1000; n++) {
                same(true, one.next() && two.next());
                same(n, one.getInt(1));
                same(2 * n, two.getInt(1));
              }
              same(false, one.next() || two.next());
            }
          }
          try (Statement left = connection.createStatement()) {
            left.setFetchSize(10);
            ResultSet rows = left.executeQuery("select 10 / (50 - n) from generate_series(1, 100) as n");
            fails("22012", () -> {
              while (rows.next()) rows.getInt(1);
            });
          }
          connection.rollback();
        }
      }
    }
  }

  static void cancel() throws Exception {
    try (Connection connection = connect(); Connection watcher = connect(); Statement slow = connection.createStatement()) {
      Thread canceller = new Thread(() -> {
        try {
          while (number(watcher, "select count(*) from pg_stat_activity where state = 'active' and query like '%pg_sleep(61)%' and pid <> pg_backend_pid()") == 0) {
            Thread.onSpinWait();
          }
          slow.cancel();
        } catch (SQLException error) {
          throw new RuntimeException(error);
        }
      });
      canceller.start();
      fails("57014", () -> slow.execute("select pg_sleep(61)"));
      canceller.join();
      same(7, number(connection, "select 7"));
    }
  }

  static void queryTimeout() throws Exception {
    try (Connection connection = connect(); Statement statement = connection.createStatement()) {
      statement.setQueryTimeout(1);
      fails("57014", () -> statement.execute("select pg_sleep(62)"));
      statement.setQueryTimeout(0);
      same(8, number(connection, "select 8"));
    }
  }

  static void binaryTransfer() throws Exception {
    for (String threshold : List.of("-1", "0")) {
      try (Connection connection = connect("prepareThreshold", threshold, "binaryTransfer", "true");
          PreparedStatement statement = connection.prepareStatement(
              "select ?::int8 * 2, ?::float8, ?::bytea, ?::timestamptz, ?::uuid, ?::int[], ?::numeric, null::int, ?::bool")) {
        java.util.UUID id = new java.util.UUID(1, 2);
        Timestamp moment = Timestamp.valueOf("2024-02-29 12:34:56.789012");
        for (int n = 0; n < 7; n++) {
          Array numbers = connection.createArrayOf("int4", new Integer[] {n, null, 3});
          statement.setLong(1, 1L << 40);
          statement.setDouble(2, n + 0.5);
          statement.setBytes(3, new byte[] {0, 1, (byte) 255, (byte) n});
          statement.setTimestamp(4, moment);
          statement.setObject(5, id);
          statement.setArray(6, numbers);
          statement.setBigDecimal(7, new java.math.BigDecimal("12345678901234567890.123456789"));
          statement.setBoolean(8, true);
          try (ResultSet rows = statement.executeQuery()) {
            rows.next();
            same(1L << 41, rows.getLong(1));
            same(n + 0.5, rows.getDouble(2));
            same(true, Arrays.equals(new byte[] {0, 1, (byte) 255, (byte) n}, rows.getBytes(3)));
            same(moment, rows.getTimestamp(4));
            same(id, rows.getObject(5));
            same(Arrays.asList(n, null, 3), Arrays.asList((Integer[]) rows.getArray(6).getArray()));
            same("12345678901234567890.123456789", rows.getBigDecimal(7).toPlainString());
            same(null, rows.getObject(8));
            same(true, rows.getBoolean(9));
          }
        }
      }
    }
  }

  // Twelve threads with a connection each on a pool of few servers: transfers that must add up, each with its own answers.
  static void manyConnections() throws Exception {
    try (Connection connection = connect()) {
      execute(connection, "drop table if exists bank", "create table bank (id int primary key, balance int)",
          "insert into bank select n, 100 from generate_series(0, 19) as n");
    }
    ExecutorService threads = Executors.newFixedThreadPool(12);
    CountDownLatch start = new CountDownLatch(12);
    List<Future<Void>> done = new ArrayList<>();
    for (int thread = 0; thread < 12; thread++) {
      int mine = thread;
      Callable<Void> work = () -> {
        try (Connection connection = connect("prepareThreshold", mine % 3 == 0 ? "1" : "5")) {
          start.countDown();
          start.await();
          for (int round = 0; round < 30; round++) {
            int from = (mine + round) % 20;
            int to = (mine * 7 + round * 3 + 1) % 20;
            connection.setAutoCommit(false);
            try (PreparedStatement change = connection.prepareStatement("update bank set balance = balance + ? where id = ?")) {
              for (int account : new int[] {Math.min(from, to), Math.max(from, to)}) {
                change.setInt(1, account == from ? -1 : 1);
                change.setInt(2, account);
                change.addBatch();
              }
              change.executeBatch();
            }
            if (from == to || round % 5 == 0) connection.rollback();
            else connection.commit();
            connection.setAutoCommit(true);
            try (PreparedStatement read = connection.prepareStatement("select ?::int, " + mine)) {
              read.setInt(1, round);
              ResultSet rows = read.executeQuery();
              rows.next();
              same(round, rows.getInt(1));
              same(mine, rows.getInt(2));
            }
            fails("22012", () -> number(connection, "select 1 / 0"));
          }
        }
        return null;
      };
      done.add(threads.submit(work));
    }
    threads.shutdown();
    for (Future<Void> one : done) one.get();
    try (Connection connection = connect()) {
      same(2000, number(connection, "select sum(balance) from bank"));
    }
  }

  // pgjdbc learns from the answer of the server that its statements are gone, and prepares them again.
  static void deallocate() throws Exception {
    try (Connection connection = connect("prepareThreshold", "1")) {
      try (PreparedStatement statement = connection.prepareStatement("select ?::int + 1")) {
        for (int n = 0; n < 12; n++) {
          statement.setInt(1, n);
          ResultSet rows = statement.executeQuery();
          rows.next();
          same(n + 1, rows.getInt(1));
          rows.close();
          if (n % 4 == 1) execute(connection, "deallocate all");
          if (n % 4 == 3) execute(connection, "discard all");
        }
      }
    }
  }

  // A statement whose result has another shape than before must not be taken from anyone's cache.
  static void changedTable() throws Exception {
    try (Connection connection = connect("prepareThreshold", "1", "autosave", "conservative"); Connection other = connect()) {
      execute(other, "drop table if exists shape", "create table shape (a int)", "insert into shape values (1)");
      try (PreparedStatement statement = connection.prepareStatement("select * from shape")) {
        for (int n = 0; n < 3; n++) same(1, columns(statement));
        execute(other, "alter table shape add b text default 'b'");
        for (int n = 0; n < 3; n++) same(2, columns(statement));
      }
    }
  }

  static int columns(PreparedStatement statement) throws SQLException {
    try (ResultSet rows = statement.executeQuery()) {
      rows.next();
      return rows.getMetaData().getColumnCount();
    }
  }

  static void settings() throws Exception {
    try (Connection connection = connect("currentSchema", "pg_catalog,public", "options", "-c work_mem=7MB"); Connection other = connect()) {
      for (int n = 0; n < 3; n++) {
        same("pg_catalog", connection.getSchema());
        same("public", other.getSchema());
        try (Statement statement = connection.createStatement(); ResultSet rows = statement.executeQuery("show work_mem")) {
          rows.next();
          same("7MB", rows.getString(1));
        }
      }
      connection.setClientInfo("ApplicationName", "renamed");
      same(1, number(connection, "select (current_setting('application_name') = 'renamed')::int"));
      same(1, number(other, "select (current_setting('application_name') = 'headgate-jdbc')::int"));
      connection.setSchema("public");
      same("public", connection.getSchema());
      try (ResultSet tables = connection.getMetaData().getTables(null, "public", "bank", null)) {
        same(true, tables.next());
      }
      same(true, connection.isValid(5));
      other.setNetworkTimeout(Runnable::run, 20_000);
      same(9, number(other, "select 9"));
    }
  }

  static void notifications() throws Exception {
    try (Connection listener = connect(); Connection sender = connect()) {
      execute(listener, "listen news");
      execute(sender, "notify news, 'first'", "notify news, 'second'");
      List<String> heard = new ArrayList<>();
      while (heard.size() < 2) {
        PGNotification[] some = listener.unwrap(PGConnection.class).getNotifications(10_000);
        if (some == null || some.length == 0) break;
        for (PGNotification one : some) heard.add(one.getParameter());
      }
      same(List.of("first", "second"), heard);
    }
  }

  static void generatedKeys() throws Exception {
    try (Connection connection = connect("prepareThreshold", "1")) {
      execute(connection, "drop table if exists keyed", "create table keyed (id int generated always as identity, t text)",
          "create or replace function twice(n int) returns int language sql as 'select n * 2'");
      try (PreparedStatement insert = connection.prepareStatement("insert into keyed (t) values (?)", Statement.RETURN_GENERATED_KEYS)) {
        for (int n = 1; n <= 6; n++) {
          insert.setString(1, "t");
          insert.executeUpdate();
          ResultSet keys = insert.getGeneratedKeys();
          keys.next();
          same(n, keys.getInt(1));
        }
      }
      try (var call = connection.prepareCall("{ ? = call twice(?) }")) {
        call.registerOutParameter(1, java.sql.Types.INTEGER);
        call.setInt(2, 21);
        call.execute();
        same(42, call.getInt(1));
      }
    }
  }
}
