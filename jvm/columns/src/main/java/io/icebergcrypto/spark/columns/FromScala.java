package io.icebergcrypto.spark.columns;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.IntStream;
import scala.Product;

/** What Scala has in collections of its own, of Scala 2.12 and 2.13 alike. */
public final class FromScala {
  private FromScala() {}

  /** A map, without what is null: Spark does not pass such options on. */
  public static Map<String, String> map(scala.collection.Map<String, String> scala) {
    Map<String, String> map = new HashMap<>();
    scala.iterator().foreach(entry -> entry._2() == null ? null : map.put(entry._1(), entry._2()));
    return map;
  }

  /** The parts of a statement, or of another case class, that are not null. */
  public static List<Object> parts(Product whole) {
    return IntStream.range(0, whole.productArity())
        .mapToObj(whole::productElement)
        .filter(Objects::nonNull)
        .toList();
  }
}
