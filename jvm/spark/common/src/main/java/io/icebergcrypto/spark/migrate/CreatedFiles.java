package io.icebergcrypto.spark.migrate;

import io.icebergcrypto.spark.table.TaskAccumulator;
import java.util.List;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.io.LocationProvider;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.util.CollectionAccumulator;

/**
 * The files that the tasks of a job have created, each known from the end of its task on, even if
 * the job then fails: Iceberg keeps them. A task that fails deletes its own.
 */
final class CreatedFiles {
  private final CollectionAccumulator<String> paths; // without a name: Spark's UI does not show it

  CreatedFiles(SparkContext spark) {
    this.paths = spark.collectionAccumulator();
  }

  /** Those of the tasks that have ended. */
  List<String> paths() {
    return List.copyOf(paths.value());
  }

  /** What tells where to create a file, and records that. */
  LocationProvider recording(LocationProvider locations) {
    return new Recording(locations, TaskAccumulator.serialized(paths));
  }

  /** It goes to executors with the table. */
  private static final class Recording implements LocationProvider {
    private static final long serialVersionUID = 1L;

    private final LocationProvider locations;
    private final String accumulator;

    private Recording(LocationProvider locations, String accumulator) {
      this.locations = locations;
      this.accumulator = accumulator;
    }

    @Override
    public String newDataLocation(String filename) {
      return recorded(locations.newDataLocation(filename));
    }

    @Override
    public String newDataLocation(PartitionSpec spec, StructLike partition, String filename) {
      return recorded(locations.newDataLocation(spec, partition, filename));
    }

    private String recorded(String path) {
      if (TaskContext.get() != null) { // not on the driver, which creates none
        TaskAccumulator.<CollectionAccumulator<String>>deserialized(accumulator).add(path);
      }

      return path;
    }
  }
}
