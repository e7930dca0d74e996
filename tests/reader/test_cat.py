"""`iceberg-crypto cat`, and the catalogs of PyIceberg that it makes of Spark's properties."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from harness.encrypted_tables import OwnKms, Writer
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import BinaryType, DecimalType, LongType, NestedField, StringType

from pyspark_iceberg_crypto import cli, errors
from pyspark_iceberg_crypto.cli._python_alone import _of_catalog
from pyspark_iceberg_crypto.kms import Keystore
from pyspark_iceberg_crypto.reader import _load
from pyspark_iceberg_crypto.reader._catalogs import catalog_of

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "note", StringType(), required=False),
    NestedField(3, "price", DecimalType(9, 2), required=False),
    NestedField(4, "raw", BinaryType(), required=False),
)


@pytest.fixture
def cat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The command on a JDBC catalog of the profile, whose KMS is the test's own."""
    kms = OwnKms()
    writer = Writer(tmp_path / "t", SCHEMA, kms=kms)
    writer.append([{"id": i, "note": f"note {i}", "raw": b"\x00"} for i in range(30)])
    catalog = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/lake.db")
    catalog.create_namespace("db")
    catalog.register_table("db.t", writer.location)
    keystore = tmp_path / "k.p12"
    profile = tmp_path / "profile.yaml"
    profile.write_text(
        f"catalogs: {{lake: {{type: jdbc, uri: 'jdbc:sqlite:{tmp_path}/lake.db', "
        f"kms: {{type: keystore, path: {keystore}, password-env: P}}}}}}\n"
    )
    monkeypatch.setenv("ICEBERG_CRYPTO_CONFIG", str(profile))
    stock = _load.kms_of

    def own(given: Any, properties: Any) -> Any:
        assert given is None or given == Keystore(path=str(keystore), password_env="P")
        return stock(kms, properties)

    monkeypatch.setattr(_load, "kms_of", own)
    return lambda *arguments: CliRunner().invoke(cli.main, ["cat", *arguments])


def test_rows(cat: Callable[..., Result]) -> None:
    shown = cat("lake.db.t")
    assert shown.exit_code == 0, shown.output
    assert "note 19" in shown.stdout
    assert "note 20" not in shown.stdout
    where = ("lake.db.t", "--where", "id > 27", "--columns", "note, id")
    rows = json.loads(cat(*where, "--output", "json").stdout)
    assert rows == [{"note": "note 28", "id": 28}, {"note": "note 29", "id": 29}]
    printed = cat(*where, "--output", "csv").stdout
    assert list(csv.reader(io.StringIO(printed))) == [
        ["note", "id"],
        ["note 28", "28"],
        ["note 29", "29"],
    ]
    whole = json.loads(cat("lake.db.t", "--limit", "1", "--output", "json").stdout)
    assert whole == [{"id": 0, "note": "note 0", "price": None, "raw": "00"}]
    branch = cat("lake.db.t", "--branch", "main", "--output", "json", "--limit", "100")
    assert len(json.loads(branch.stdout)) == 30


def test_what_cannot_be_asked(cat: Callable[..., Result]) -> None:
    for wrong in (
        ("--where", "id >"),
        ("--where", "other = 1"),
        ("--columns", "other"),
        ("--branch", "other"),
        ("--snapshot-id", "1"),
        ("--snapshot-id", "1", "--branch", "main"),
        ("--limit", "0"),
    ):
        assert cat("lake.db.t", *wrong).exit_code == 64, wrong
    assert cat("t").exit_code == 64
    for missing in ("lake.db.none", "other.db.t", "/nowhere"):
        assert cat(missing).exit_code == 2, missing


def test_what_was_changed_is_a_finding(cat: Callable[..., Result], tmp_path: Path) -> None:
    file = next((tmp_path / "t" / "data").iterdir())
    file.write_bytes(file.read_bytes()[:-1])
    result = cat("lake.db.t", "--output", "json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"] == "TamperedError"
    assert file.name in result.stderr


def test_a_path(cat: Callable[..., Result], tmp_path: Path) -> None:
    metadata = next((tmp_path / "t" / "metadata").glob("*.json"))
    rows = json.loads(cat(str(metadata), "--where", "id = 3", "--output", "json").stdout)
    assert [one["id"] for one in rows] == [3]


def test_all_of_a_profiles_properties_are_passed() -> None:
    """Of a REST catalog, Iceberg's own names for the KMS count only so."""
    told = {"encryption.kms-type": "aws", "client.region": "eu-west-1"}
    catalog: Any = SimpleNamespace(opened=object, properties=told)
    assert _of_catalog(catalog, ("db", "t"), "lake.db.t")["properties"] == told


def test_catalogs_of_sparks_properties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert catalog_of("l", {"type": "hadoop", "warehouse": "s3://w"}) == "s3://w"
    behind = {"catalog-impl": "io.icebergcrypto.catalog.EncryptedCatalog"}
    behind |= {"encryption.catalog-type": "hadoop", "warehouse": "/w"}
    assert catalog_of("l", behind) == "/w"
    made: dict[str, Any] = {}
    monkeypatch.setattr("pyiceberg.catalog.load_catalog", lambda name, **told: made.update(told))
    given = {
        "uri": "http://c",
        "s3.endpoint": "http://s",
        "io-impl": "x",
        "encryption.kms-type": "k",
    }
    catalog_of("l", {**given, "type": "rest"})
    assert made == {"type": "rest", "uri": "http://c", "s3.endpoint": "http://s"}
    made.clear()
    login = {"jdbc.user": "me", "jdbc.password": "a/b", "uri": "jdbc:postgresql://h:1/d?ssl=true"}
    catalog_of("l", {**login, "type": "jdbc"})
    assert made["uri"] == "postgresql+psycopg2://me:a%2Fb@h:1/d?ssl=true"
    catalog_of(
        "l", {"uri": "jdbc:sqlite:/a/b.db", "catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog"}
    )
    assert made["uri"] == "sqlite:////a/b.db"
    made.clear()
    catalog_of("l", {"uri": "thrift://h"})
    assert made == {"type": "hive", "uri": "thrift://h"}
    for wrong, match in (
        ({"type": "nessie"}, "of type nessie"),
        ({"catalog-impl": "com.example.Own"}, "of type com.example.Own"),
        ({"type": "jdbc", "uri": "jdbc:oracle:x?password=secret"}, "database of oracle,"),
        ({"type": "jdbc"}, "Property uri of catalog l is missing"),
        ({"type": "hadoop"}, "Property warehouse of catalog l is missing"),
    ):
        with pytest.raises(errors.ConfigurationError, match=match):
            catalog_of("l", wrong)
