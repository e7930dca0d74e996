"""Which engines can open a table: `iceberg-crypto readers`, its table of engines, and those that are cheap to run."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import jsonschema
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from harness.encrypted_tables import EQUALITY, OwnKms, Writer
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.types import LongType, NestedField, StringType

from pyspark_iceberg_crypto import AwsKms, cli, errors
from pyspark_iceberg_crypto.reader import _load, _readers, open_table, table_readers
from pyspark_iceberg_crypto.reader._engines import CATALOGS, ENGINES, Feature
from pyspark_iceberg_crypto.reports._readers import ReadersReport, TableReader
from pyspark_iceberg_crypto.schemas import output_schema
from reader.golden import KINDS, Golden

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "dev"))
import readers as page  # noqa: E402

ID = NestedField(1, "id", LongType(), required=False)
SCHEMA = Schema(ID, NestedField(2, "note", StringType(), required=False))
ROWS = [{"id": 1, "note": "a"}, {"id": 2, "note": "b"}]
NOT_AVRO = "No schema found in Avro file headers"


def found(report: ReadersReport, name: str, version: str = "") -> TableReader:
    (one,) = (o for o in report.readers if o.engine.startswith(name) and version in o.version)
    return one


def test_the_page_is_what_the_engines_say() -> None:
    """Otherwise run dev/readers.py."""
    text = page.PAGE.read_text()
    assert page.page(text) == text


def test_each_engine_has_evidence() -> None:
    """That a test that the page names exists, `tests/test_docs.py` looks at."""
    for one in ENGINES:
        named = re.fullmatch(r"`[\w/]+\.py::\w+`|`\w+Test\.\w+`", one.evidence)
        assert bool(named) is one.tested, one
        assert one.tested or one.evidence.startswith("documented: ["), one
        assert set(one.catalogs) <= set(CATALOGS)


@pytest.fixture(scope="module", params=KINDS)
def golden(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Golden:
    return Golden.unpacked(request.param, tmp_path_factory.mktemp("golden"))


def alone(golden: Golden) -> StaticTable:
    """A golden table as PyIceberg opens it."""
    conf = {"py-io-impl": "reader.golden.ViewFs", "golden.folder": str(golden.folder)}
    return StaticTable.from_metadata(golden.location, conf)


def test_pyiceberg_alone(golden: Golden) -> None:
    table = alone(golden)
    for read in (table.scan().to_arrow, table.scan().count, table.inspect.files):
        with pytest.raises(ValueError, match=NOT_AVRO):
            read()
    (engine,) = (one for one in ENGINES if one.name == "PyIceberg alone")
    assert NOT_AVRO in engine.limits[Feature.ENCRYPTED].reason


def test_polars_alone(golden: Golden) -> None:
    for how in ("native", "pyiceberg"):
        with pytest.raises(ValueError, match=NOT_AVRO):
            pl.scan_iceberg(alone(golden), reader_override=how).collect()  # type: ignore[arg-type]


def test_files_by_their_paths(tmp_path: Path) -> None:
    path = str(Writer(tmp_path / "t", SCHEMA).file(ROWS).path)
    for read in (pq.read_table, pl.read_parquet, lambda at: duckdb.read_parquet(at).fetchall()):
        with pytest.raises(Exception, match="(?i)crypt"):
            read(path)


def test_pyiceberg_alone_writes_plaintext(tmp_path: Path) -> None:
    """Whatever it says, a table that PyIceberg wrote is not encrypted; an empty one that is looks empty to it."""
    conf = {"uri": f"sqlite:///{tmp_path}/lake.db", "warehouse": tmp_path.as_uri()}
    catalog = SqlCatalog("lake", **conf)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA, properties={"encryption.key-id": "k1"})
    table.append(pa.Table.from_pylist(ROWS, schema=table.schema().as_arrow()))
    (file,) = tmp_path.rglob("*.parquet")
    assert file.read_bytes()[:4] == b"PAR1"
    empty = Writer(tmp_path / "empty", SCHEMA).write()
    assert StaticTable.from_metadata(empty).scan().to_arrow().num_rows == 0


def test_open_table_reads_what_the_table_says(golden: Golden) -> None:
    """And through it pandas, Polars and DuckDB."""
    given: dict[str, Any] = {"kms": golden.client, "properties": golden.conf}
    report = table_readers(golden.location, name="lake.db.t", **given)
    ours = found(report, "Python's")
    assert (report.table, report.encrypted, report.ok) == ("lake.db.t", True, True)
    assert (ours.opens, ours.reasons) == (True, [])
    bits, form = {"hadoop": (128, "Parquet"), "jdbc": (256, "Avro")}[golden.kind]
    assert {f"keys of {bits} bits", form, "deletion vectors", "row lineage"} <= {*report.uses}
    table = open_table(golden.location, **given)
    ids = {row["id"] for row in golden.answers["rows"]}
    assert set(table.scan().to_pandas()["id"]) == ids
    assert set(table.to_polars().collect()["id"]) == ids
    rows = table.scan().to_duckdb("rows").sql("SELECT id FROM rows").fetchall()
    assert {one for (one,) in rows} == ids


def made(folder: Path, **options: Any) -> tuple[Writer, OwnKms]:
    kms = OwnKms()
    return Writer(folder, SCHEMA, kms=kms, **options), kms


def test_no_data_is_read_and_each_kek_is_unwrapped_once(tmp_path: Path) -> None:
    writer, kms = made(tmp_path / "t")
    writer.append(ROWS)
    writer.append(ROWS)
    for file in (tmp_path / "t" / "data").iterdir():
        file.unlink()
    kms.asked.clear()
    report = table_readers(writer.location, kms=kms)
    assert report.uses["Parquet"] == 2
    assert kms.asked == ["k1"]
    assert found(report, "Spark with this jar").opens


def read(writer: Writer, kms: OwnKms, properties: dict[str, str]) -> None:
    assert open_table(writer.location, kms=kms, properties=properties).scan().to_arrow().num_rows


@pytest.mark.parametrize(
    ("options", "more", "uses", "closed", "setting"),
    [
        ({"bits": 192}, {}, "keys of 192 bits", "iceberg-rust", None),
        ({"form": "avro"}, {}, "Avro", "Trino", None),
        ({}, {"encrypted": False}, "files without a key", "Spark with this jar", "plaintext-files=allow"),
        (
            {"lengths": False},
            {},
            "manifest lists without a length",
            "Python's",
            "files-without-length=accept",
        ),
        ({"lengths": False}, {}, "files without a length", "Spark with stock", None),
    ],
)  # fmt: skip
def test_what_closes_a_table(
    tmp_path: Path, options: Any, more: Any, uses: str, closed: str, setting: str | None
) -> None:
    """And what is said of `open_table` is what it does."""
    writer, kms = made(tmp_path / "t", **options)
    writer.append(ROWS, **more)
    report = table_readers(writer.location, kms=kms)
    assert report.uses[uses]
    version = "main" if closed == "iceberg-rust" else ""
    assert found(report, closed, version).opens is False
    ours = found(report, "Python's")
    assert ours.opens is (setting is None and "lengths" not in options)
    if ours.opens:
        read(writer, kms, {})
        return
    with pytest.raises(errors.IcebergCryptoError):
        read(writer, kms, {})
    name, _, value = (setting or "files-without-length=accept").partition("=")
    properties = {f"encryption.{name}": value}
    assert found(table_readers(writer.location, kms=kms, properties=properties), "Python's").opens
    read(writer, kms, properties)


def test_deletes_defaults_and_what_properties_say(tmp_path: Path) -> None:
    writer, kms = made(tmp_path / "t")
    file = writer.append(ROWS)
    writer.document["properties"]["write.parquet.page-version"] = "v2"
    writer.document["schemas"][-1]["fields"][1]["initial-default"] = "x"
    deletes = writer.file([{"id": 1}], EQUALITY, schema=Schema(ID), equality=[1])
    writer.commit(writer.positions(file, [1]), deletes)
    report = table_readers(writer.location, kms=kms)
    assert (report.uses["position deletes"], report.uses["equality deletes"]) == (1, 1)
    assert {"initial defaults", "pages of version 2"} <= {*report.uses}
    assert found(report, "Java").reasons == [
        "Iceberg opens delete files by their path, without their keys"
    ]
    ours = found(report, "Python's")
    assert ours.opens is None
    assert "version 2" in ours.reasons[0]
    assert found(report, "Spark with this jar").opens


def test_catalogs_and_kms() -> None:
    def opens(name: str, catalog: str, kms: str | None) -> bool | None:
        (engine,) = (o for o in ENGINES if o.name == name and "0.10" not in o.version)
        return _readers.answer(engine, {Feature.PARQUET}, catalog, kms, set()).opens

    assert opens("Spark with stock Iceberg", "hive", "vault")
    assert opens("Spark with stock Iceberg", "rest", "aws") is False
    assert opens("Trino", "hive", "gcp")
    assert opens("Trino", "hive", "vault") is False
    assert opens("Trino", "hive", None) is None
    for kms in (
        AwsKms(region="eu-west-1"),
        AwsKms(region="eu-west-1", encryption_context={"lake": "sales"}),
    ):
        bound = _readers._kms_type(kms, {})
        assert opens("Trino", "hive", bound) is not (bound != "aws")
    assert _readers._kms_type(None, {"Encryption.kms-type": "AWS"}) == "aws"
    assert _readers._kms_type(OwnKms(), {}) is None
    assert opens("Python's `open_table` (pandas, Polars, DuckDB)", "nessie", None) is False
    assert opens("Python's `open_table` (pandas, Polars, DuckDB)", "DynamoDbCatalog", None)
    assert opens("Trino", "DynamoDbCatalog", "aws") is None
    assert opens("iceberg-rust", "glue", "aws")


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The command; the KMS is the test's own."""
    stock = _load.kms_of
    kms = OwnKms()
    monkeypatch.setattr(
        "pyspark_iceberg_crypto.reader.proof._opened.kms_of", lambda *_: stock(kms, {})
    )
    monkeypatch.setenv("ICEBERG_CRYPTO_CONFIG", str(tmp_path / "none.yaml"))
    return lambda *arguments: CliRunner().invoke(cli.main, ["readers", *arguments])


def test_the_command(command: Callable[..., Result], tmp_path: Path) -> None:
    writer, _ = made(tmp_path / "t")
    writer.append(ROWS)
    shown = command(writer.location)
    assert shown.exit_code == 0, shown.output
    assert "✓ Spark with this jar" in shown.stdout
    assert "✗ PyIceberg alone, 0.12\n    it does not decrypt" in shown.stdout
    told = command(writer.location, "--output", "json")
    document = json.loads(told.stdout)
    jsonschema.validate(document, output_schema("readers"))
    assert (document["ok"], document["catalog"], document["format_version"]) == (True, "hadoop", 3)
    (manifest,) = (tmp_path / "t" / "metadata").glob("*-m0.avro")
    manifest.write_bytes(manifest.read_bytes()[:-1])
    cut = command(writer.location, "--output", "json")
    assert cut.exit_code == 1
    assert json.loads(cut.stdout)["error"] == "TamperedError"
    assert manifest.name in cut.stderr
    assert command(str(tmp_path / "nowhere")).exit_code == 2
    assert command("t").exit_code == 64


def test_a_plaintext_table(command: Callable[..., Result], tmp_path: Path) -> None:
    writer, _ = made(tmp_path / "t", key_id=None)
    writer.append(ROWS)
    shown = command(writer.location)
    assert shown.exit_code == 0, shown.output
    assert "is not encrypted: engines that read format version 3 can open it" in shown.stdout
    document = json.loads(command(writer.location, "--output", "json").stdout)
    assert (document["encrypted"], document["readers"]) == (False, [])
