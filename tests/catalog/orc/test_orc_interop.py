"""ORC files of ours in other programs: pyarrow, and a session of Spark's that knows nothing of this project."""

import uuid
from pathlib import Path

import pyarrow.orc
import pytest
from harness.world import World
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from pyspark_iceberg_crypto import Keystore, OrcKeys, configure_spark

KEYS = OrcKeys(columns={"ssn": "k1", "address.street": "k2"}, masks={"ssn": "redact"})


@pytest.fixture(scope="module")
def own(spark: SparkSession, world: World) -> SparkSession:
    return configure_spark(
        spark.newSession(),
        f"orc_{uuid.uuid4().hex}",
        "hadoop",
        warehouse=str(world.root / "orc"),
        kms=Keystore(world.keystore.path, password_file=world.keystore.password_file),
        path_access=False,
        orc_columns=KEYS,
    )


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_pyarrow_reads_masks(own: SparkSession, tmp_path: Path, compression: str) -> None:
    """It knows no column encryption; the masked copies stand where it looks."""
    own.range(1000).select(
        fn.concat(fn.lit("Sesame-"), "id").alias("ssn"),
        "id",
        fn.struct(fn.lit("Hill").alias("street"), fn.lit("Ulm").alias("city")).alias("address"),
    ).coalesce(1).write.option("compression", compression).orc(f"{tmp_path}/t")
    (file,) = (tmp_path / "t").glob("part-*.orc")
    read = pyarrow.orc.ORCFile(str(file)).read()
    assert read.column("id").to_pylist() == list(range(1000))
    assert read.column("ssn").to_pylist()[777] == "Xxxxxx.999"
    assert read.column("address").to_pylist()[0] == {"street": None, "city": "Ulm"}
