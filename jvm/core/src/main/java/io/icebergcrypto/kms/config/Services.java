package io.icebergcrypto.kms.config;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;

/** What engines add to this project, found by Java's service loader. */
public final class Services {
  private Services() {}

  /**
   * One of each class that serves, without those whose engine is not on the class path.
   *
   * @throws ServiceConfigurationError when one does not start for another reason
   */
  public static <T> List<T> of(Class<T> service) {
    List<T> found = new ArrayList<>();
    Iterator<T> all = ServiceLoader.load(service, Services.class.getClassLoader()).iterator();
    while (true) {
      try {
        if (!all.hasNext()) {
          return List.copyOf(found);
        }

        found.add(all.next());
      } catch (ServiceConfigurationError e) {
        if (!(e.getCause() instanceof LinkageError)) {
          throw e;
        }
      }
    }
  }
}
