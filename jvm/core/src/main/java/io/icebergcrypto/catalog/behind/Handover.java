package io.icebergcrypto.catalog.behind;

import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Hands an object of an encrypting catalog to the catalog behind it, which makes its own from class
 * names and properties: the property holds an id. An object is on offer as long as its owner lives.
 */
final class Handover {
  private static final Map<String, WeakReference<Object>> OFFERED = new ConcurrentHashMap<>();

  private Handover() {}

  /** Offers an object; returns its id. */
  static String offer(Object object) {
    OFFERED.values().removeIf(reference -> reference.get() == null);
    String id = UUID.randomUUID().toString();
    OFFERED.put(id, new WeakReference<>(object));
    return id;
  }

  /** The object of an id. */
  static <T> T take(String id, Class<T> type) {
    WeakReference<Object> reference = id == null ? null : OFFERED.get(id);
    Object object = reference == null ? null : reference.get();
    if (object == null) {
      throw new IllegalStateException(
          "Internal to EncryptedCatalog: no " + type.getName() + " is offered as " + id);
    }

    return type.cast(object);
  }
}
