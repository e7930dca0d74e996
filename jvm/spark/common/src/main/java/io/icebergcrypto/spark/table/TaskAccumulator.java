package io.icebergcrypto.spark.table;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.UncheckedIOException;
import java.util.Base64;
import org.apache.spark.util.AccumulatorV2;

/**
 * One of Spark's accumulators, on its way to tasks by what they share, such as a broadcast. An
 * accumulator that is deserialized in a task belongs to that task, so each does that itself.
 */
public final class TaskAccumulator {
  private TaskAccumulator() {}

  /** On the driver: the accumulator for executors. Spark forgets one that nobody holds. */
  public static String serialized(AccumulatorV2<?, ?> accumulator) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(accumulator);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    return Base64.getEncoder().encodeToString(bytes.toByteArray());
  }

  /** In a task: its own. */
  @SuppressWarnings("unchecked")
  public static <A extends AccumulatorV2<?, ?>> A deserialized(String text) {
    byte[] bytes = Base64.getDecoder().decode(text);
    try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes))) {
      return (A) in.readObject();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (ClassNotFoundException e) {
      throw new IllegalStateException(e);
    }
  }
}
