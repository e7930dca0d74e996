"""Puts the jars into the wheel: builds with Gradle those that are missing or older than their sources.

Hatchling runs this for ``pip install .``, ``pip install -e .`` and ``python -m build``. What comes of it has the jar
for the newest Spark; ICEBERG_CRYPTO_SPARK=3.5 in the environment takes that Spark's, and ICEBERG_CRYPTO_SPARK=all
those of all Sparks, as `make dist` does.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The newest Spark's first.
ARTIFACTS = (
    "iceberg-crypto-spark-4.1_2.13",
    "iceberg-crypto-spark-4.0_2.13",
    "iceberg-crypto-spark-3.5_2.12",
    "iceberg-crypto-spark-3.5_2.13",
)
INSTALL = "apt-get install -y gradle default-jdk-headless"


class JarBuildHook(BuildHookInterface[Any]):
    """Builds ``pyspark_iceberg_crypto/jars/*.jar`` for a wheel; an sdist carries its sources."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make sure that the jars stand where the wheel takes them from.

        Raises:
            RuntimeError: Gradle or a JDK 17 is missing, or the build failed.
        """
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        folder = root / "pyspark_iceberg_crypto" / "jars"
        stale = []
        for artifact in wanted(os.environ.get("ICEBERG_CRYPTO_SPARK")):
            jar = folder / f"{artifact}-{self.metadata.version}.jar"
            if not is_current(jar, root):
                stale.append(jar)
            # Ignored by git, which hatchling would otherwise take as "leave out".
            build_data["artifacts"].append(f"/{jar.relative_to(root)}")
        if stale:
            self.app.display_info(f"building {', '.join(jar.name for jar in stale)} with Gradle")
            build(stale, self.metadata.version, root)


def wanted(spark: str | None) -> tuple[str, ...]:
    """Choose the jars: the newest Spark's, one Spark's, or all."""
    if not spark:
        return ARTIFACTS[:1]
    if spark == "all":
        return ARTIFACTS
    chosen = tuple(a for a in ARTIFACTS if a.startswith(f"iceberg-crypto-spark-{spark}_"))
    if not chosen:
        raise RuntimeError(
            f"ICEBERG_CRYPTO_SPARK={spark}: there is no artifact for it among {ARTIFACTS}"
        )
    return chosen


def is_current(jar: Path, root: Path) -> bool:
    """Return whether the jar exists and is no older than any file it is made from."""
    if not jar.is_file():
        return False
    sources = [*root.glob("*.gradle"), *root.glob("gradle.properties")]
    for folder in ("columns", "core", "spark"):
        files = (path for path in (root / "jvm" / folder).rglob("*") if path.is_file())
        files = (path for path in files if path.suffix != ".log")  # of tests that ran there
        sources += [path for path in files if "test" not in path.relative_to(root).parts]
    return jar.stat().st_mtime >= max(path.stat().st_mtime for path in sources)


def build(jars: list[Path], version: str, root: Path) -> None:
    """Run Gradle's jar tasks and copy what they made."""
    gradle = shutil.which("gradle")
    if gradle is None:
        raise RuntimeError(f"Gradle is needed to build the jar and is missing: {INSTALL}")
    artifacts = [jar.name.removesuffix(f"-{version}.jar") for jar in jars]
    environment = dict(os.environ, JAVA_HOME=str(java_home()))
    # Not our choice of words on the command line: gradle is the program found above.
    done = subprocess.run(  # noqa: S603
        [gradle, "--no-daemon", "-q", *(f":{artifact}:jar" for artifact in artifacts)],
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(f"Gradle could not build the jar:\n{done.stdout}{done.stderr}")
    for artifact, jar in zip(artifacts, jars, strict=True):
        jar.parent.mkdir(exist_ok=True)
        shutil.copyfile(root / "jvm" / "build" / artifact / "libs" / jar.name, jar)


def java_home() -> Path:
    """Find a JDK of at least version 17: JAVA_HOME's, or else the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    found = Path(home) / "bin" / "javac" if home else shutil.which("javac")
    if not found or not Path(found).is_file():
        where = f"JAVA_HOME={home} has no bin/javac" if home else "there is no javac on the PATH"
        raise RuntimeError(f"A JDK 17 is needed to build the jar, and {where}: {INSTALL}")
    javac = Path(found).resolve()
    told = subprocess.run([javac, "-version"], capture_output=True, text=True)  # noqa: S603
    version = re.search(r"javac (\d+)", told.stdout + told.stderr)
    if version is None or int(version[1]) < 17:
        raise RuntimeError(f"A JDK 17 is needed to build the jar; {javac} is older: {INSTALL}")
    return javac.parent.parent
