"""Where the jars that the tests run on are."""

import os
import subprocess
from pathlib import Path
from zipfile import ZipFile

import pyspark

from pyspark_iceberg_crypto.jvm.artifacts import BUILDS, VERSION, build_for

ROOT = Path(__file__).resolve().parents[2]
BUILT = build_for()  # what the pyspark of these tests needs
RUNTIME = "iceberg-spark-runtime-*.jar"
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
            f"no {pattern} in {BUILD / folder}: run `gradle dayTestJars olderTestJars nightTestJars`"
        )
    return jars


def spark_jar(pattern: str) -> Path:
    """One of pyspark's own jars."""
    jars = sorted(SPARK_JARS.glob(pattern))
    if not jars:
        raise FileNotFoundError(f"pyspark has no {pattern} in {SPARK_JARS}")
    return jars[0]


def compile_doubles(folder: Path, jar: Path, ours: Path) -> str:
    """Compiles what the tests put below Spark: Hadoop's local files without a process, chmod, for each, a database and
    a KMS whose calls are numbered.

    Args:
        folder: gets the classes that the JVM has from its start.
        jar: gets those that need this project's jar, `ours`.

    Returns:
        The name of the file system.
    """
    sources = ROOT / "jvm" / "core" / "src" / "test" / "java"

    def compile_into(classes: Path, names: tuple[str, ...], *needed: Path) -> None:
        paths = ["-cp", os.pathsep.join(map(str, needed)), "-sourcepath", sources]
        files = [sources / "io" / "icebergcrypto" / "testing" / f"{name}.java" for name in names]
        subprocess.run(["javac", "-nowarn", "-d", classes, *paths, *files], check=True)

    hadoop = spark_jar("hadoop-client-api-*.jar")
    compile_into(folder, ("NoChmodFileSystem", "NumberedDriver"), hadoop)
    later = jar.with_suffix("")
    compile_into(later, ("NumberedKms",), folder, *build_jars("test-jars", RUNTIME), ours)
    with ZipFile(jar, "w") as made:
        for path in later.rglob("*.class"):
            made.write(path, path.relative_to(later))
    return "io.icebergcrypto.testing.NoChmodFileSystem"
