package io.icebergcrypto.spark.call;

import java.util.List;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/** Lists of Scala 2.12. */
public final class ScalaLists {
  private ScalaLists() {}

  /** A list as Scala's. */
  public static <T> Seq<T> of(List<T> list) {
    return JavaConverters.asScalaBuffer(list);
  }

  /** A list of Scala's. */
  public static <T> List<T> toJava(Seq<T> list) {
    return JavaConverters.seqAsJavaList(list);
  }
}
