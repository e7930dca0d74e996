"""The builds of the jar, one for each minor version of Spark and Scala, and which a Spark needs. Needs no Spark."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pyspark_iceberg_crypto.errors import ConfigurationError

VERSION = "0.1.0"
ICEBERG_EXTENSION = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
PROCEDURE_EXTENSION = "io.icebergcrypto.spark.ProcedureExtensions"


@dataclass(frozen=True)
class Build:
    """A build of the jar: for a Spark and a Scala, as major and minor version, and with an Iceberg."""

    spark: str
    scala: str
    iceberg: str

    @property
    def artifact(self) -> str:
        """The name of the Maven artifact, and of the jar without its version."""
        return f"iceberg-crypto-spark-{self.spark}_{self.scala}"

    @property
    def coordinate(self) -> str:
        """What ``spark.jars.packages`` takes; it brings Iceberg along."""
        return f"io.icebergcrypto:{self.artifact}:{VERSION}"

    @property
    def iceberg_artifact(self) -> str:
        """The name of Iceberg's jar for the same Spark."""
        return f"iceberg-spark-runtime-{self.spark}_{self.scala}"

    @property
    def iceberg_coordinate(self) -> str:
        """What ``spark.jars.packages`` takes for Iceberg alone."""
        return f"org.apache.iceberg:{self.iceberg_artifact}:{self.iceberg}"

    @property
    def extensions(self) -> tuple[str, ...]:
        """What ``spark.sql.extensions`` needs: in Spark 3.5, Iceberg's parses CALL of its own procedures alone."""
        return (ICEBERG_EXTENSION, PROCEDURE_EXTENSION)[: 2 if self.spark == "3.5" else 1]


# The newest first; of one Spark, that which pip has. Each with the newest Iceberg that Maven Central has for it.
BUILDS = (
    Build("4.1", "2.13", "1.12.0"),
    Build("4.0", "2.13", "1.11.0"),
    Build("3.5", "2.12", "1.12.0"),
    Build("3.5", "2.13", "1.11.0"),
)


def build_for(spark: str | None = None) -> Build:
    """Return the build for a Spark.

    Args:
        spark: its version, of which major and minor count, such as ``"4.0"``, and its Scala's, if that differs
            from pip's: ``"3.5_2.13"``. None: the Spark that is installed here, in SPARK_HOME or with pyspark;
            the newest build if none is installed.

    Raises:
        ConfigurationError: there is no build for it.
    """
    scala: str | None = None
    if spark is None:
        found = _installed()
        if found is None:
            return BUILDS[0]
        spark, scala = found
    elif "_" in str(spark):
        spark, _, scala = str(spark).partition("_")
    minor = ".".join(str(spark).split(".")[:2])
    for build in BUILDS:
        if build.spark == minor and scala in (None, build.scala):
            return build
    known = ", ".join(f"{build.spark} with Scala {build.scala}" for build in BUILDS)
    raise ConfigurationError(
        f"there is no build of iceberg-crypto for Spark {spark}"
        + (f" with Scala {scala}" * bool(scala)),
        f"there are builds for Spark {known}",
    )


def hint() -> str:
    """Return the coordinate to name in an error: that for the Spark here, or the newest."""
    try:
        return build_for().coordinate
    except ConfigurationError:
        return BUILDS[0].coordinate


def _installed() -> tuple[str, str] | None:
    """Tell the versions of Spark and Scala by the name of Spark's own jar."""
    home = os.environ.get("SPARK_HOME")
    spec = None if home else find_spec("pyspark")
    folders = [home] if home else list((spec and spec.submodule_search_locations) or ())
    for folder in folders:
        for jar in (Path(folder) / "jars").glob("spark-core_*.jar"):
            name = re.fullmatch(r"spark-core_(\d+\.\d+)-(\d+\.\d+.*)\.jar", jar.name)
            if name:
                return name[2], name[1]
    return None
