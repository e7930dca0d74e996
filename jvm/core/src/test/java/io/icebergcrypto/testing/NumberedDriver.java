package io.icebergcrypto.testing;

import io.icebergcrypto.testing.NumberedCalls.Fault;
import io.icebergcrypto.testing.NumberedCalls.Kind;
import java.lang.reflect.InvocationTargetException;
import java.sql.Connection;
import java.sql.Driver;
import java.sql.DriverManager;
import java.sql.DriverPropertyInfo;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.SQLInvalidAuthorizationSpecException;
import java.util.Properties;
import java.util.logging.Logger;

/** Databases whose queries and updates are numbered: jdbc:numbered:sqlite:... is jdbc:sqlite:... */
public final class NumberedDriver implements Driver {
  private static final String PREFIX = "jdbc:numbered:";

  /** As PostgreSQL's driver has it when the connection breaks; Iceberg then takes another one. */
  private static final String CONNECTION_FAILURE = "08006";

  private static final String NOT_AUTHORIZED = "28000";

  /** Makes it known to this JVM. */
  public static void register() {
    try {
      DriverManager.registerDriver(new NumberedDriver());
    } catch (SQLException e) {
      throw new IllegalStateException(e);
    }
  }

  /** The same database, with numbered calls. */
  public static String numbered(String uri) {
    return uri.replaceFirst("^jdbc:", PREFIX);
  }

  @Override
  public Connection connect(String url, Properties info) throws SQLException {
    if (!acceptsURL(url)) {
      return null;
    }

    return of(Connection.class, DriverManager.getConnection(url.replace(PREFIX, "jdbc:"), info));
  }

  private static <T> T of(Class<T> type, T real) {
    return Stub.of(
        type,
        (proxy, method, arguments) -> {
          NumberedCalls.Call<Object, Exception> call =
              () -> {
                try {
                  Object result = method.invoke(real, arguments);
                  return result instanceof PreparedStatement statement
                      ? of(PreparedStatement.class, statement)
                      : result;
                } catch (InvocationTargetException e) {
                  throw e.getCause() instanceof Exception cause ? cause : e;
                }
              };
          return switch (method.getName()) {
            case "executeUpdate" -> counted(Kind.UPDATE, call);
            case "executeQuery" -> counted(Kind.QUERY, call);
            default -> call.make();
          };
        });
  }

  private static Object counted(Kind kind, NumberedCalls.Call<Object, Exception> call)
      throws Exception {
    return NumberedCalls.of(
        kind,
        "database",
        call,
        (fault, text) ->
            fault == Fault.EXPIRED
                ? new SQLInvalidAuthorizationSpecException("expired", NOT_AUTHORIZED)
                : new SQLException(text, CONNECTION_FAILURE));
  }

  @Override
  public boolean acceptsURL(String url) {
    return url.startsWith(PREFIX);
  }

  @Override
  public DriverPropertyInfo[] getPropertyInfo(String url, Properties info) {
    return new DriverPropertyInfo[0];
  }

  @Override
  public int getMajorVersion() {
    return 1;
  }

  @Override
  public int getMinorVersion() {
    return 0;
  }

  @Override
  public boolean jdbcCompliant() {
    return false;
  }

  @Override
  public Logger getParentLogger() throws SQLFeatureNotSupportedException {
    throw new SQLFeatureNotSupportedException();
  }
}
