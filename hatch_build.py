"""Puts the jar into the wheel: builds it with Gradle when it is missing or older than its sources.

Hatchling runs this for ``pip install .``, ``pip install -e .`` and ``python -m build``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ARTIFACT = "iceberg-crypto-spark-4.1_2.13"
INSTALL = "apt-get install -y gradle openjdk-17-jdk-headless"


class JarBuildHook(BuildHookInterface[Any]):
    """Builds ``pyspark_iceberg_crypto/jars/*.jar`` for a wheel; an sdist carries its sources."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make sure that the jar stands where the wheel takes it from.

        Raises:
            RuntimeError: Gradle or a JDK 17 is missing, or the build failed.
        """
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        jar = root / "pyspark_iceberg_crypto" / "jars" / f"{ARTIFACT}-{self.metadata.version}.jar"
        if not is_current(jar, root):
            self.app.display_info(f"building {jar.name} with Gradle")
            build(jar, root)


def is_current(jar: Path, root: Path) -> bool:
    """Tell whether the jar exists and is no older than any file it is made from."""
    if not jar.is_file():
        return False
    sources = [*root.glob("*.gradle"), *root.glob("gradle.properties")]
    for folder in ("core", "spark"):
        files = (path for path in (root / "jvm" / folder).rglob("*") if path.is_file())
        sources += [path for path in files if "test" not in path.relative_to(root).parts]
    return jar.stat().st_mtime >= max(path.stat().st_mtime for path in sources)


def build(jar: Path, root: Path) -> None:
    """Run Gradle's jar task and copy what it made."""
    gradle = shutil.which("gradle")
    if gradle is None:
        raise RuntimeError(f"Gradle is needed to build the jar and is missing: {INSTALL}")
    environment = dict(os.environ, JAVA_HOME=str(java_home()))
    # Not our choice of words on the command line: gradle is the program found above.
    done = subprocess.run(  # noqa: S603
        [gradle, "--no-daemon", "-q", f":{ARTIFACT}:jar"],
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(f"Gradle could not build the jar:\n{done.stdout}{done.stderr}")
    jar.parent.mkdir(exist_ok=True)
    shutil.copyfile(root / "jvm" / "build" / ARTIFACT / "libs" / jar.name, jar)


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
