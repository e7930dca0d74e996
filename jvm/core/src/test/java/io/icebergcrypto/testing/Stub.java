package io.icebergcrypto.testing;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.function.Function;

/** Doubles of interfaces of which a test needs few methods. */
public final class Stub {
  private Stub() {}

  /** One whose calls are all answered by this. */
  public static <T> T of(Class<T> type, InvocationHandler answer) {
    return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, answer));
  }

  /** A real one, but for some methods, by their names. */
  public static <T> T but(Class<T> type, T real, Map<String, Function<Object[], ?>> answers) {
    return of(
        type,
        (proxy, method, arguments) -> {
          Function<Object[], ?> answer = answers.get(method.getName());
          try {
            return answer != null ? answer.apply(arguments) : method.invoke(real, arguments);
          } catch (InvocationTargetException e) {
            throw e.getCause();
          }
        });
  }
}
