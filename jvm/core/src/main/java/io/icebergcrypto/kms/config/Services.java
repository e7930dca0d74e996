package io.icebergcrypto.kms.config;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;

/** What engines add to this project, found by Java's service loader. */
public final class Services {
  private static final String OURS = "io/icebergcrypto/";

  private Services() {}

  /**
   * One of each class that serves, without those whose engine is not on the class path.
   *
   * @throws ServiceConfigurationError when one does not start for another reason
   */
  public static <T> List<T> of(Class<T> service) {
    return of(service, Services.class.getClassLoader());
  }

  static <T> List<T> of(Class<T> service, ClassLoader loader) {
    List<T> found = new ArrayList<>();
    Iterator<T> all = ServiceLoader.load(service, loader).iterator();
    while (true) {
      try {
        if (!all.hasNext()) {
          return List.copyOf(found);
        }

        found.add(all.next());
      } catch (ServiceConfigurationError e) {
        if (!isWithoutEngine(e, loader)) {
          throw e;
        }
      }
    }
  }

  /** Whether a class of the engine is missing. One that fails to start is there, for example. */
  private static boolean isWithoutEngine(ServiceConfigurationError error, ClassLoader loader) {
    return error.getCause() instanceof NoClassDefFoundError missing
        && missing.getCause() instanceof ClassNotFoundException
        && !missing.getMessage().startsWith(OURS)
        && loader.getResource(missing.getMessage() + ".class") == null;
  }
}
