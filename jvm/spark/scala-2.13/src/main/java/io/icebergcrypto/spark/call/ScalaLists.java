package io.icebergcrypto.spark.call;

import java.util.List;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Lists of Scala 2.13. */
public final class ScalaLists {
  private ScalaLists() {}

  /** A list as Scala's. */
  public static <T> Seq<T> of(List<T> list) {
    return CollectionConverters.asScala(list).toSeq();
  }

  /** A list of Scala's. */
  public static <T> List<T> toJava(scala.collection.Seq<T> list) {
    return CollectionConverters.asJava(list);
  }
}
