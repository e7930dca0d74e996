"""The platform engineer's journey: Spark with a REST catalog and Vault, and every mistake that is likely.

`make nightly` runs it on each Spark. Each mistake is told in one sentence, and its hint begins with the remedy.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.classes import SPARK_CATALOG
from harness.files import secret_file
from harness.jars import BUILD, BUILT, build_jars, our_jar
from harness.programs import free_port, seen_by
from servers.rest import start_rest_server
from servers.vault import start_vault

from pyspark_iceberg_crypto.jvm.artifacts import BUILDS, VERSION, Build

pytestmark = pytest.mark.nightly

PROGRAM = Path(__file__).with_name("platform_engineer.py")
ICEBERG = build_jars("test-jars", "iceberg-spark-runtime-*.jar")
LOCAL = {
    "spark.master": "local[2]",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the engineer saw."""
    folder = tmp_path_factory.mktemp("platform")
    vault = start_vault(folder / "vault.log")
    vault.make_key("sales")
    token = secret_file(folder / "token", vault.root)
    rest = start_rest_server(folder / "rest.db", folder / "warehouse", folder / "rest.log")
    jars = shlex.quote(",".join(map(str, [our_jar(), *ICEBERG])))
    try:
        yield seen_by(
            PROGRAM,
            folder,
            {"PYSPARK_SUBMIT_ARGS": f"--jars {jars} pyspark-shell"},
            timeout=1200,
            conf=LOCAL,
            uri=rest.uri,
            vault=vault.address,
            token=str(token),
            nobody=f"http://127.0.0.1:{free_port()}",
        )
    finally:
        rest.stop()
        vault.stop()


def test_what_works(told: dict[str, Any]) -> None:
    assert "can use 'sales'" in told["doctor"]
    assert told["rows"] == [1, 2]
    assert told["verified"] is True
    assert told["tables"] == ["t"], "a refused CREATE leaves nothing"


@pytest.mark.parametrize(
    ("mistake", "kind", "problem", "remedy"),
    [
        ("wrong key id", "KeyNotFoundError", "'slaes'", r"Check encryption\.key-id"),
        (
            *("misspelt table property", "ConfigurationError"),
            *("encryption.keyid", r"Did you mean encryption\.key-id\?"),
        ),
        (
            *("misspelt catalog property", "ConfigurationError"),
            *("encryption.requird", r"Did you mean encryption\.required\?"),
        ),
        (
            *("misspelt KMS property", "ConfigurationError", "encryption.kms.vault.transit-mnt"),
            r"Did you mean encryption\.kms\.vault\.transit-mount\?",
        ),
        (
            *("forgotten catalog", "ConfigurationError"),
            *(
                "encryption.key-id would do nothing",
                r"For an.* table, name its catalog: lake\.default\.u",
            ),
        ),
        (
            *("rule that comes late", "ConfigurationError"),
            *("lake.encryption.required, which cannot change", "choose another catalog name"),
        ),
        ("KMS down", "KmsUnavailableError", "Vault at http://127.0.0.1", "Check .*network"),
    ],
)
def test_a_mistake_says_what_to_do(
    told: dict[str, Any], mistake: str, kind: str, problem: str, remedy: str
) -> None:
    says_what_to_do(told[mistake], kind, problem, remedy)


OTHERS = {
    "another Spark's": next(b for b in BUILDS if b.spark != BUILT.spark),
    "another Scala's": next(b for b in reversed(BUILDS) if b.scala != BUILT.scala),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_the_wrong_jar(other: Build, tmp_path: Path) -> None:
    jar = BUILD / other.artifact / "libs" / f"{other.artifact}-{VERSION}.jar"
    seen = with_jars(tmp_path, jar, *ICEBERG)
    problem = f"{other.artifact} is for Spark {other.spark} with Scala {other.scala}, and this is"
    for error in seen.values():
        says_what_to_do(error, "ConfigurationError", problem, f"Put {BUILT.artifact} in its place")


def test_no_jar(tmp_path: Path) -> None:
    """SQL cannot say what to do: Spark itself does not find the catalog's class."""
    seen = with_jars(tmp_path, *ICEBERG)
    remedy = re.escape(f"--packages {BUILT.coordinate}")
    says_what_to_do(seen["Python"], "JarMissingError", "the iceberg-crypto jar is not", remedy)
    assert SPARK_CATALOG in seen["SQL"]["message"]


def with_jars(folder: Path, *jars: Path) -> dict[str, Any]:
    assert all(jar.exists() for jar in jars), f"run `make jars`: {jars}"
    conf = {
        **LOCAL,
        "spark.jars": ",".join(map(str, jars)),
        "spark.sql.catalog.lake": SPARK_CATALOG,
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(folder / "lake"),
    }
    return seen_by(PROGRAM, folder, conf=conf)


def says_what_to_do(error: dict[str, str], kind: str, problem: str, remedy: str) -> None:
    """In one sentence what is wrong, and first of all in the hint what to do."""
    assert error["type"] == kind, error
    assert problem in error["message"]
    assert not re.search(r"\n|[.?!] [A-Z]", error["message"]), error["message"]
    assert re.match(rf"[^\n]{{0,150}}?{remedy}", error["hint"]), error["hint"]
