"""The hook that puts the jar into the wheel: when it builds, and what it says when it cannot."""

import importlib.util
import os
import re
from pathlib import Path
from types import ModuleType

import pytest

import pyspark_iceberg_crypto
from pyspark_iceberg_crypto import AwsKms
from pyspark_iceberg_crypto.jvm import artifacts
from pyspark_iceberg_crypto.jvm.artifacts import BUILDS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tree(root: Path, jar_age: int | None) -> Path:
    """A source tree whose files are from second 1000, and a jar so many seconds older."""
    source = root / "jvm" / "core" / "src" / "main" / "java" / "A.java"
    source.parent.mkdir(parents=True)
    jar = root / "a.jar"
    for path in (source, root / "build.gradle", root / "gradle.properties"):
        path.touch()
        os.utime(path, (1000, 1000))
    if jar_age is not None:
        jar.touch()
        os.utime(jar, (1000 - jar_age, 1000 - jar_age))
    return jar


@pytest.mark.parametrize(("age", "current"), [(None, False), (5, False), (0, True), (-5, True)])
def test_a_jar_is_current_when_no_source_is_newer(
    hook: ModuleType, tmp_path: Path, age: int | None, current: bool
) -> None:
    assert hook.is_current(tree(tmp_path, age), tmp_path) is current


def test_the_jar_is_not_made_of_tests(hook: ModuleType, tmp_path: Path) -> None:
    jar = tree(tmp_path, 0)
    test = tmp_path / "jvm" / "core" / "src" / "test" / "java" / "ATest.java"
    test.parent.mkdir(parents=True)
    test.touch()
    assert hook.is_current(jar, tmp_path)


def test_no_gradle(hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="apt-get install -y gradle default-jdk-headless"):
        hook.build([tmp_path / "a-0.1.0.jar"], "0.1.0", tmp_path)


def test_no_jdk(hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(RuntimeError, match="no javac on the PATH: apt-get install"):
        hook.java_home()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(RuntimeError, match="has no bin/javac"):
        hook.java_home()


def test_an_old_jdk(hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    javac = tmp_path / "bin" / "javac"
    javac.parent.mkdir()
    javac.write_text("#!/bin/sh\necho javac 11.0.2\n")
    javac.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(RuntimeError, match="is older"):
        hook.java_home()


def test_one_place_for_versions() -> None:
    lines = (ROOT / "gradle.properties").read_text().splitlines()
    versions = dict(line.split("=") for line in lines if "=" in line and line[0] != "#")
    assert pyspark_iceberg_crypto.__version__ == versions["version"]
    assert versions["version"] == artifacts.VERSION
    assert BUILDS[0].iceberg == versions["icebergVersion"]
    assert AwsKms.packages == (
        f"org.apache.iceberg:iceberg-aws-bundle:{versions['icebergVersion']}",
    )


def test_an_installation_needs_one_jar(hook: ModuleType) -> None:
    assert hook.wanted(None) == (BUILDS[0].artifact,)
    assert hook.wanted("all") == hook.ARTIFACTS
    assert hook.wanted("4.0") == ("iceberg-crypto-spark-4.0_2.13",)
    with pytest.raises(RuntimeError, match="no artifact for it"):
        hook.wanted("4")


def test_gradle_hook_and_python_know_the_same_artifacts(hook: ModuleType) -> None:
    """Each with the Iceberg that Python adds to Spark."""
    assert tuple(build.artifact for build in BUILDS) == hook.ARTIFACTS
    included = re.findall(r"'(iceberg-crypto-spark-\S+)'", (ROOT / "settings.gradle").read_text())
    assert sorted(included) == sorted(hook.ARTIFACTS)
    for build in BUILDS:
        settings = (ROOT / "settings.gradle").read_text()
        (folder,) = re.findall(rf"'{build.artifact}': '(.*)'", settings)
        text = (ROOT / folder / "build.gradle").read_text()
        iceberg = re.findall(r"iceberg: ('[^']+'|icebergVersion)", text)
        assert iceberg in ([f"'{build.iceberg}'"], ["icebergVersion"]), build
