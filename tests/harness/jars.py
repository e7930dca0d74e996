"""Where the jars that the tests run on are."""

import subprocess
from pathlib import Path

import pyspark

from pyspark_iceberg_crypto.artifacts import BUILDS, VERSION, build_for

ROOT = Path(__file__).resolve().parents[2]
BUILT = build_for()  # what the pyspark of these tests needs
SPARK_JARS = Path(pyspark.__file__).parent / "jars"
BUILD = ROOT / "jvm" / "build"


def our_jar() -> Path:
    """The newer of the jar that the wheel carries and the one that Gradle has just built."""
    folders = (
        ROOT / "pyspark_iceberg_crypto" / "jars",
        BUILD / BUILT.artifact / "libs",
    )
    jars = [jar for folder in folders for jar in folder.glob(f"{BUILT.artifact}-{VERSION}.jar")]
    if not jars:
        raise FileNotFoundError(f"no {BUILT.artifact} jar: run `make jar`, or `make jars`")
    return max(jars, key=lambda jar: jar.stat().st_mtime)


def build_jars(folder: str, pattern: str = "*.jar") -> list[Path]:
    """The jars that Gradle's tasks (restServerJars, flinkJars and so on) copied to jvm/build/`folder`.

    Those of testJars are different for an older Spark: olderTestJars copies them to test-jars-4.0_2.13.
    """
    if folder == "test-jars" and BUILT is not BUILDS[0]:
        folder = f"{folder}-{BUILT.spark}_{BUILT.scala}"
    jars = sorted((BUILD / folder).glob(pattern))
    if not jars:
        raise FileNotFoundError(
            f"no {pattern} in {BUILD / folder}: run `gradle restServerJars metastoreServerJars nessieServerJars"
            " hadoopKmsServerJars rangerKmsServerJars deltaJars testJars olderTestJars kmsJars flinkJars`"
        )
    return jars


def spark_jar(pattern: str) -> Path:
    """One of pyspark's own jars."""
    jars = sorted(SPARK_JARS.glob(pattern))
    if not jars:
        raise FileNotFoundError(f"pyspark has no {pattern} in {SPARK_JARS}")
    return jars[0]


def compile_file_system(folder: Path) -> str:
    """Compiles Hadoop's local files without a process, chmod, for each, into `folder`; gives its name."""
    name = "io.icebergcrypto.testing.NoChmodFileSystem"
    sources = ROOT / "jvm" / "core" / "src" / "test" / "java"
    source = sources / f"{name.replace('.', '/')}.java"
    paths = ["-cp", spark_jar("hadoop-client-api-*.jar"), "-sourcepath", sources]
    subprocess.run(["javac", "-nowarn", "-d", folder, *paths, source], check=True)
    return name
