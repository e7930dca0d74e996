"""`make dist`: a release that anybody can build again, byte by byte, and that installs by itself."""

import hashlib
import os
import shutil
import subprocess
import sys
import venv
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

pytestmark = [pytest.mark.nightly, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[1]
MADE = (
    ".git",
    ".venv",
    ".gradle",
    "build",
    "dist",
    "jars",
    "__pycache__",
    ".mypy_cache",
    ".ruff_cache",
)


def run(*command: str, cwd: Path, **env: str) -> str:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "MAKE", "ICEBERG"))}
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**clean, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    return done.stdout


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The same sources, built in two places at two times: time zones, languages and modes of files differ."""
    trees = [tmp_path_factory.mktemp(name) / name for name in ("one", "another")]
    for tree in trees:
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*MADE), symlinks=True)
    for path in trees[1].rglob("*"):
        path.chmod(path.stat().st_mode & ~0o077)
    ways = (("022", "UTC", "C.UTF-8"), ("077", "Asia/Kathmandu", "C"))
    for tree, (mask, zone, language) in zip(trees, ways, strict=True):
        command = f"umask {mask} && exec make dist VENV={sys.prefix}"
        told = {"TZ": zone, "LC_ALL": language, "SOURCE_DATE_EPOCH": "1700000000"}
        run("bash", "-c", command, cwd=tree, **told)
    return [tree / "dist" for tree in trees]


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_two_builds_are_equal(releases: list[Path]) -> None:
    one, another = map(digests, releases)
    assert len(one) >= 12
    assert one == another


def test_a_release_has_all_parts(releases: list[Path]) -> None:
    folder = releases[0]
    run("sha256sum", "--strict", "-c", "SHA256SUMS", cwd=folder)
    told = {line.split()[1] for line in (folder / "SHA256SUMS").read_text().splitlines()}
    assert told == {path.name for path in folder.iterdir()} - {"SHA256SUMS"}
    poms = sorted(folder.glob("*.pom"))
    assert len(poms) >= 2
    for pom in poms:
        assert all(
            (folder / f"{pom.stem}{kind}.jar").is_file() for kind in ("", "-sources", "-javadoc")
        )
        tree = ET.parse(pom).getroot()
        names = {child.tag.partition("}")[2] for child in tree}
        # What Maven Central asks for.
        assert {"name", "description", "url", "licenses", "developers", "scm", "version"} <= names
    sources = zipfile.ZipFile(folder / f"{poms[-1].stem}-sources.jar").namelist()
    core = "io/icebergcrypto/catalog/EncryptedCatalog.java"
    assert {core, "io/icebergcrypto/spark/EncryptedSparkCatalog.java", "META-INF/LICENSE"} <= {
        *sources
    }
    pages = zipfile.ZipFile(folder / f"{poms[-1].stem}-javadoc.jar").namelist()
    assert "io/icebergcrypto/spark/EncryptedSparkCatalog.html" in pages


def test_the_wheel_has_the_jars_of_the_release(releases: list[Path]) -> None:
    (wheel,) = releases[0].glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        jars = [name for name in archive.namelist() if name.endswith(".jar")]
        assert jars
        for jar in jars:
            assert archive.read(jar) == (releases[0] / Path(jar).name).read_bytes(), jar
        told = next(n for n in archive.namelist() if n.endswith("METADATA"))
        text = archive.read(told).decode()
    assert "Project-URL: Repository, https://" in text
    assert "](docs/" not in text.partition("\n\n")[2], "a link that leads nowhere on PyPI"


def test_the_bill_of_materials_is_valid_and_names_what_there_is(releases: list[Path]) -> None:
    (bill,) = releases[0].glob("*.cdx.json")
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(bill.read_text())
    assert problem is None, problem
    text = bill.read_text()
    for name in ("maven/com.google.code.gson/gson@", "pypi/click@", "iceberg-spark-runtime-"):
        assert name in text
    sums = digests(releases[0])
    wheel = next(name for name in sums if name.endswith(".whl"))
    assert sums[wheel] in text


def test_the_wheel_installs_alone(releases: list[Path], tmp_path: Path) -> None:
    """Without Spark it manages keys and names the jar; test_wheel.py has it with Spark."""
    (wheel,) = releases[0].glob("*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / "bin"
    run(str(programs / "pip"), "install", "-q", str(wheel), cwd=tmp_path)
    command = str(programs / "iceberg-crypto")
    assert "0.1.0" in run(command, "--version", cwd=tmp_path)
    words = ["kms", "keystore", "create-key", "--path", "k.p12", "--password-env", "P", "sales"]
    assert "created sales" in run(command, *words, cwd=tmp_path, P="only-for-tests")
    jar = Path(run(command, "jar", cwd=tmp_path).strip())
    assert jar.read_bytes() == (releases[0] / jar.name).read_bytes()
