"""The scripts of `make`'s set-up: what they say when something is missing, and which JDK they choose."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # mypy and pytest bring it there

ROOT = Path(__file__).resolve().parents[2]
DEV = ROOT / "dev"


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder of programs with nothing in it but what every Debian has; nothing can be installed with these."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in [
        "bash",
        "cat",
        "cut",
        "find",
        "flock",
        "grep",
        "id",
        "mkdir",
        "mktemp",
        "mv",
        "readlink",
        "rm",
        "sed",
        "sha256sum",
        "sort",
        "xargs",
    ]:
        program = shutil.which(name)
        assert program, name
        (folder / name).symlink_to(program)
    return folder


def write_program(file: Path, *lines: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    file.chmod(0o755)
    return file


def run(path: Path, *command: str | Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*command], env={"PATH": str(path), **environment}, capture_output=True, text=True
    )


def test_what_is_missing_is_named(bare: Path) -> None:
    done = run(bare, DEV / "tools.sh", "python3", "tests")
    packages = "default-jdk-headless gradle python3 python3-venv softhsm2 opensc gcc libc6-dev"
    assert done.returncode == 1
    assert f"error: missing: {packages}\n" in done.stderr
    assert f"hint: as root: apt-get install -y {packages};" in done.stderr


@pytest.mark.parametrize("script", ["tools.sh", "jdk.sh"])
def test_a_wrong_java_home(bare: Path, tmp_path: Path, script: str) -> None:
    done = run(bare, "bash", DEV / script, JAVA_HOME=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == (
        f"error: JAVA_HOME={tmp_path} has no bin/javac\n"
        "  hint: unset JAVA_HOME, or point it at a JDK of 17 or later\n"
    )


@pytest.mark.parametrize(
    ("version", "said", "package"),
    [
        ("11.0.2", "version 11; 17 or newer is needed", "default-jdk-headless"),
        ("25.0.3", "version 25; Spark 4.1 is for 17 and 21", "openjdk-21-jdk-headless"),
    ],
)
def test_a_jdk_that_is_too_old_or_too_new(
    bare: Path, tmp_path: Path, version: str, said: str, package: str
) -> None:
    write_program(tmp_path / "jdk" / "bin" / "javac", f"echo javac {version}")
    write_program(bare / "gradle")
    (bare / "python3").symlink_to(sys.executable)
    done = run(bare, DEV / "tools.sh", "python3", JAVA_HOME=str(tmp_path / "jdk"))
    assert done.returncode == 1
    assert f"the JDK in {tmp_path}/jdk is {said}" in done.stderr
    assert f"hint: apt-get install -y {package}, and set JAVA_HOME" in done.stderr


@pytest.mark.parametrize("chosen", ["JAVA_HOME", "PATH"])
def test_java_and_java_home_are_one_jdk(bare: Path, tmp_path: Path, chosen: str) -> None:
    home = tmp_path / "jdk"
    javac = write_program(home / "bin" / "javac", f"echo '    java.home = {home}' >&2")
    java = write_program(home / "bin" / "java")
    write_program(bare / "java")
    if chosen == "PATH":
        (bare / "javac").symlink_to(javac)
        environment = {}
    else:
        write_program(bare / "javac", "echo '    java.home = /another' >&2")
        environment = {"JAVA_HOME": str(home)}
    script = f'set -euo pipefail; . {DEV}/jdk.sh; echo "$JAVA_HOME $(command -v java)"'
    done = run(bare, "bash", "-c", script, **environment)
    assert (done.stdout, done.stderr) == (f"{home} {java}\n", "")


def test_another_jdk_is_found_by_its_version(bare: Path, tmp_path: Path) -> None:
    for name, version in (("a", "17.0.15"), ("b", "21.0.8"), ("c", "2.1.0")):
        write_program(tmp_path / "jdks" / name / "bin" / "javac")
        (tmp_path / "jdks" / name / "release").write_text(f'JAVA_VERSION="{version}"\n')
    write_program(tmp_path / "jdks" / "jre" / "bin" / "java")
    (tmp_path / "jdks" / "jre" / "release").write_text('JAVA_VERSION="99.0.1"\n')
    jdks = {"HOME": str(tmp_path), "JDKS": str(tmp_path / "jdks")}
    found = run(bare, DEV / "find_jdk.sh", "21", **jdks)
    assert (found.returncode, found.stdout) == (0, f"{tmp_path}/jdks/b\n")
    one = run(bare, DEV / "find_jdk.sh", "21", **{**jdks, "JDKS": str(tmp_path / "jdks" / "b")})
    assert one.stdout == found.stdout
    without = run(bare, DEV / "find_jdk.sh", "99", **jdks)
    assert (without.returncode, without.stdout) == (1, ""), "a JRE compiles nothing"


def test_a_night_goes_on_after_a_part_that_failed(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(
        f"include {ROOT}/Makefile\nnight:\n\t$(call in_turn,good bad other last)\ngood:\n\t@echo reports in "
        "$(REPORTS)\nbad:\n\t@echo bad >&2; exit 3\nother:\n\t@$(call left_out,there is no JDK 99)\nlast:\n\t@echo "
        "at last\n"
    )
    write_program(tmp_path / "bin" / "git", "echo abc1234")
    environment = {**os.environ, "PATH": f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}"}
    command = ["make", "-C", str(tmp_path), "night"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode != 0
    kept = tmp_path / "build" / "night"
    table = (kept / "table").read_text()
    assert re.sub(" +", " ", table).splitlines() == [
        "good 0 min ok",
        "bad 0 min failed",
        "other 0 min left out: there is no JDK 99",
        "last 0 min ok",
    ]
    assert f"\n\n{table}" in done.stdout
    assert (kept / "commit").read_text() == "abc1234\n"
    assert (kept / "good.log").read_text().endswith("reports in build/night/good\n")
    assert "bad\n" in (kept / "bad.log").read_text()


@pytest.mark.parametrize("name", ["vault", "gcs"])
def test_without_a_new_go_a_server_says_where_one_comes_from(
    bare: Path, tmp_path: Path, name: str
) -> None:
    write_program(bare / "go", "echo go version go1.19.8 linux/amd64")
    tree = tmp_path / "tree"
    for part in ("dev", f"tests/servers/{name}"):
        shutil.copytree(ROOT / part, tree / part)
    done = run(bare, tree / "dev" / "go-server.sh", name, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert done.returncode == 1
    assert f"{name} server is built with Go 1.21 or newer, which was not found" in done.stderr
    assert "hint: make setup, " in done.stderr
    assert f"dev/go-server.sh {name}\n" in done.stderr
    kept = [file.name for file in (tmp_path / "cache/iceberg-crypto").iterdir()]
    assert kept == [f"{name}.lock"]


def test_what_is_brought_once_is_whole_or_not_there(bare: Path, tmp_path: Path) -> None:
    bring = f"""
        set -euo pipefail
        . {DEV}/once.sh
        bring() {{ echo bringing; echo half > "$1/made"; $LATER; echo whole > "$1/made"; }}
        once thing "$cache/thing-1" bring
        cat "$cache/thing-1"
    """

    def brought(later: str) -> tuple[int, str, list[str]]:
        done = run(bare, "bash", "-c", bring, XDG_CACHE_HOME=str(tmp_path), LATER=later)
        kept = (tmp_path / "iceberg-crypto").iterdir()
        return done.returncode, done.stdout, sorted(file.name for file in kept)

    assert brought("false") == (1, "bringing\n", ["thing.lock"])
    assert brought("true") == (0, "bringing\nwhole\n", ["thing-1", "thing.lock"])
    assert brought("false") == (0, "whole\n", ["thing-1", "thing.lock"]), "it is there"


def test_the_lock_has_a_version_of_each_package_that_is_named() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    named = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    for extra in project["project"]["optional-dependencies"].values():
        named += extra
    locked: dict[str, list[str]] = {}
    for line in (ROOT / "dev" / "constraints.txt").read_text().splitlines():
        if not line.startswith("#"):
            name, _, version = line.partition(" ;")[0].partition("==")
            locked.setdefault(name, []).append(version)
    for requirement in map(Requirement, named):
        if requirement.name != project["project"]["name"]:
            versions = locked.get(canonicalize_name(requirement.name), [])
            assert versions, f"run `make lock`: there is no version of {requirement.name}"
            assert all(requirement.specifier.contains(version) for version in versions), requirement
