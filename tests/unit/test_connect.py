"""Functions on a session of Spark Connect: each asks for an operation, by the one procedure that reaches all."""

import json
import re
from types import SimpleNamespace
from typing import Any

import pytest
from doubles.in_process import JavaThrowable, evidence_json
from pyspark.errors import AnalysisException
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from pyspark_iceberg_crypto import (
    ConfigurationError,
    EncryptReport,
    FileKey,
    KeyNotFoundError,
    KmsMetrics,
    NotSupportedError,
    SparkConnectError,
    ValueKey,
    VerifyReport,
    configure_spark,
    create_value_key,
    decrypt_table,
    drop_value_key,
    encrypt_table,
    inspect_file,
    kms_metrics,
    reencrypt_table,
    rotate_catalog,
    rotate_kek,
    rotate_master_key,
    rotate_value_key,
    typed_errors,
    value_keys,
    verify_catalog,
    verify_table,
)
from pyspark_iceberg_crypto.jvm import _connect

OURS = "io.icebergcrypto.spark.EncryptedSparkCatalog"
DONE = {"table": "lake.db.t", "message": "done", "committed": True}


def answer(value: Any) -> dict[str, Any]:
    """The row of the procedure."""
    return {"answer": json.dumps(value)}


def read(statement: str) -> tuple[str, str, dict[str, Any]]:
    """The catalog, the operation and its arguments."""
    found = re.fullmatch(
        r"CALL (.*)\.system\.operation\(name => '(\w+)', arguments => CAST\(X'(\w+)' AS STRING\)\)",
        statement,
    )
    assert found, statement
    return found[1], found[2], json.loads(bytes.fromhex(found[3]))


class Session:
    """A session that answers each statement with the same rows. Its JVM is here: Spark 3.5 refuses tags."""

    def __init__(self, *rows: dict[str, Any], error: BaseException | None = None) -> None:
        self.rows, self.error = rows, error
        self.asked: list[str] = []
        self.catalog = SimpleNamespace(
            currentCatalog=lambda: "here", databaseExists=lambda name: name == "`outer`"
        )
        self.conf = {"spark.sql.catalog.my-lake": "a class"}

    def addTag(self, tag: str) -> None:  # noqa: N802 (Spark's)
        raise RuntimeError("SparkSession.addTag is only supported with Spark Connect")

    def sql(self, statement: str) -> Any:
        if statement == "SET":
            settings = {"spark.sql.catalog.shop": OURS, "spark.sql.catalog.shop.type": "rest"}
            return SimpleNamespace(
                collect=lambda: [{"key": k, "value": v} for k, v in settings.items()]
            )
        self.asked.append(statement)
        if self.error is not None:
            raise self.error
        rows = [SimpleNamespace(asDict=lambda row=row: row) for row in self.rows]
        return SimpleNamespace(collect=lambda: rows)


class Remote(Session):
    """The same over Spark Connect."""

    __module__ = "pyspark.sql.connect.session"

    def addTag(self, tag: str) -> None:  # noqa: N802
        self.tags = [tag]

    def removeTag(self, tag: str) -> None:  # noqa: N802
        self.tags.remove(tag)

    def interruptTag(self, tag: str) -> None:  # noqa: N802
        assert tag in self.tags
        self.asked.append("interrupted")


def unknown(text: str) -> SparkConnectGrpcException:
    """As clients raise it for an exception of the JVM that they do not know: since Spark 4.0 as a subclass of this."""
    return SparkConnectGrpcException(text)


def test_ctrl_c_interrupts_the_server() -> None:
    remote: Any = Remote(error=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        encrypt_table(remote, "lake.db.t", "k1")
    assert remote.asked[1:] == ["interrupted"] and remote.tags == []


def test_no_argument_becomes_sql() -> None:
    """Parameters would be safe, too, but Spark 3.5 and 4.0 bind none in CALL."""
    row = {**DONE, "key_id": "k'1", "refs": 1, "files": 2, "bytes": 3, "copied_files": 2}
    row |= {"files_left": 0, "rows": 4, "kms_calls": 1, "seconds": None, "plaintext_metadata": "m"}
    row |= {"dry_run": False}
    spark: Any = Remote(answer(row))
    table = "lake.db.`t'); DROP ä`"
    assert encrypt_table(spark, table, "k'1", max_bytes=10**12, throttle=9) == EncryptReport(**row)
    (statement,) = spark.asked
    arguments = {"table": table, "key_id": "k'1", "max_bytes": 10**12}
    arguments |= {"throttle": 9, "dry_run": False}
    assert read(statement) == ("`lake`", "encrypt_table", arguments)


@pytest.mark.parametrize("character", [chr(i) for i in range(128)] + ["ä", "\u2028", "😀"])
def test_each_character_is_itself_or_in_hex(character: str) -> None:
    literal = _connect._literal(f"a{character}")
    plain = character.isascii() and (character.isalnum() or character in "_.:/=-")
    in_hex = f"CAST(X'61{character.encode().hex()}' AS STRING)"
    assert literal == (f"'a{character}'" if plain else in_hex)


@pytest.mark.parametrize(
    ("call", "more", "asked"),
    [
        (
            lambda spark: rotate_kek(spark, "db.t", rewrap=True),
            {"key_id": "k", "old_kek_id": None, "new_kek_id": "n", "rewrapped": 1}
            | {"removed_keks": 0, "kept_keks": 1, "kms_calls": 1},
            ("`here`", "rotate_kek", {"table": "db.t", "rewrap": True, "dry_run": False}),
        ),
        (
            lambda spark: rotate_master_key(spark, "`a.b`.db.t", new_key_id="k2"),
            {"old_key_id": "k", "new_key_id": "k2", "keks": 1, "old_versions": None}
            | {"new_versions": None, "kms_calls": 2, "value_keys": 0, "value_keys_left": None},
            (
                "`a.b`",
                "rotate_master_key",
                {"table": "`a.b`.db.t", "new_key_id": "k2", "dry_run": False},
            ),
        ),
        (
            lambda spark: decrypt_table(spark, "lake.db.t", confirm=True, progress=True),
            {"old_key_id": "k", "files": 1, "bytes": 9},
            ("`lake`", "decrypt_table", {"table": "lake.db.t", "confirm": True}),
        ),
        (
            lambda spark: reencrypt_table(spark, "lake.db.t", options={"a": "1", "b": "2"}),
            {"data_files": 1, "delete_files": 0, "bytes": 9, "left": 0, "snapshots": 1}
            | {"refs": "", "expire_statement": None},
            (
                "`lake`",
                "reencrypt_table",
                {"table": "lake.db.t", "options": {"a": "1", "b": "2"}, "dry_run": False},
            ),
        ),
    ],
)
def test_what_changes_a_table(call: Any, more: dict[str, Any], asked: Any) -> None:
    spark = Remote(answer({**DONE, **more}))
    found = call(spark)
    assert found.to_dict() == {"ok": True, **DONE, **more}
    assert [read(statement) for statement in spark.asked] == [asked]


@pytest.mark.parametrize(
    ("call", "told", "asked"),
    [
        (
            lambda spark: inspect_file(spark, "s3://b/f"),
            {"path": "s3://b/f", "length": 4, "magic": "PAR1", "format": "p", "encrypted": False},
            ("`shop`", "inspect_file", {"path": "s3://b/f", "pages": False}),
        ),
        (
            lambda spark: kms_metrics(spark, "lake"),
            dict.fromkeys(KmsMetrics.__dataclass_fields__),
            ("`lake`", "kms_metrics", {"catalog": "lake"}),
        ),
        (
            lambda spark: rotate_catalog(spark, "lake.db.*", kek=True),
            {"done": [], "left": [], "skipped": ["lake.db.v"], "current": []},
            (
                "`lake`",
                "rotate_catalog",
                {"name": "lake.db.*", "kek": True, "threads": 8}
                | dict.fromkeys(("rewrap", "again", "dry_run"), False),
            ),
        ),
    ],
)
def test_what_is_no_procedure(call: Any, told: Any, asked: Any) -> None:
    spark = Remote(answer(told))
    call(spark)
    assert [read(statement) for statement in spark.asked] == [asked]


def test_value_keys_are_procedures() -> None:
    """Wherever the session is: they have no other way."""
    made = {"name": "hr", "version": "0a", "master_key_id": "k", "created_at": None}
    spark: Any = Remote(made)
    key = ValueKey("hr", "0a", "k", None)  # type: ignore[arg-type]
    assert create_value_key(spark, "a`b", "hr", "k'1") == key
    assert value_keys(spark, "lake") == [key]
    assert rotate_value_key(spark, "lake", "hr", new_version=True) == [key]
    assert drop_value_key(spark, "lake", "hr", "0a") == [key]
    assert spark.asked == [
        "CALL `a``b`.system.create_value_key(name => 'hr', key_id => CAST(X'6b2731' AS STRING))",
        "CALL `lake`.system.value_keys()",
        "CALL `lake`.system.rotate_value_key(name => 'hr', new_version => true)",
        "CALL `lake`.system.drop_value_key(name => 'hr', version => '0a', confirm => false)",
    ]
    for wrong in ("", None, 5):
        with pytest.raises(ConfigurationError, match="version="):
            drop_value_key(spark, "lake", "hr", wrong, confirm=True)  # type: ignore[arg-type]
    assert len(spark.asked) == 4
    assert value_keys(Session(made), "lake") == [key]  # type: ignore[arg-type]


def test_a_session_without_connect_is_not_told_of_a_server() -> None:
    """A catalog that is not there, and one without the procedures, as Iceberg's own."""
    missing = AnalysisException("[CATALOG_NOT_FOUND] no")
    missing._origin = JavaThrowable(  # type: ignore[attr-defined]
        "org.apache.spark.sql.connector.catalog.CatalogNotFoundException", "no lakee"
    )
    for error, kind, says in (
        (missing, ConfigurationError, "no lakee"),
        (
            AnalysisException("Procedure a.b not found"),
            NotSupportedError,
            "lakee has no value_keys",
        ),
    ):
        with pytest.raises(kind, match=says) as caught:
            value_keys(Session(error=error), "lakee")  # type: ignore[arg-type]
        assert "configure_spark" in caught.value.hint


@pytest.mark.parametrize(
    ("table", "catalog"),
    [
        ("lake; DROP TABLE t --.db.t", "`lake; DROP TABLE t --`"),
        ("`a``b`.db.t", "`a``b`"),
        ("db.t", "`here`"),
        ("`my-lake`.t", "`my-lake`"),
        ("outer.inner.t", "`here`"),
        ("/data/lake.db/t", "`default_iceberg`"),
        ("s3://a.b.c/lake/t", "`default_iceberg`"),
    ],
)
def test_a_catalogs_name_is_an_identifier(table: str, catalog: str) -> None:
    spark: Any = Remote(answer({**DONE, "old_key_id": "k", "files": 1, "bytes": 9}))
    decrypt_table(spark, table)
    (statement,) = spark.asked
    assert read(statement)[0] == catalog


def test_what_is_done_in_the_driver_is_refused() -> None:
    spark: Any = Remote()
    for call in (
        lambda: inspect_file(spark, "f", key=FileKey(file="k")),
        lambda: VerifyReport.of(evidence_json()).sign(spark, "lake", "k1"),
        lambda: configure_spark(spark),
    ):
        with pytest.raises(SparkConnectError) as caught:
            call()
        assert caught.value.hint
    assert spark.asked == []


@pytest.mark.since("an error of Spark 3.5 has a message or a condition", spark="4.0")
@pytest.mark.parametrize(
    "condition", ["MISSING_CATALOG_ABILITY.PROCEDURES", "FAILED_TO_LOAD_ROUTINE"]
)
def test_a_server_without_the_plugin(condition: str) -> None:
    parameters = {"catalogName": "lake", "plugin": "p", "routineName": "r"}
    error = AnalysisException(f"[{condition}] no", condition, parameters)
    with pytest.raises(SparkConnectError, match="has no operation in lake") as caught:
        verify_table(Remote(error=error), "lake.db.t")  # type: ignore[arg-type]
    assert "spark_conf(...)" in caught.value.hint


@pytest.mark.parametrize(
    "said",
    [
        "Procedure system.verify_encryption not found",
        "Cannot use catalog lake: not a ProcedureCatalog",
        "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'CALL'.(line 1, pos 0)",
        "Catalog 'lake' plugin class not found: spark.sql.catalog.lake is not defined",
    ],
)
def test_a_server_of_spark_35_without_the_plugin(said: str) -> None:
    with pytest.raises(SparkConnectError, match="has no operation in lake"):
        verify_table(Remote(error=AnalysisException(said)), "lake.db.t")  # type: ignore[arg-type]


def test_errors_of_the_server_have_their_types() -> None:
    said = "(io.icebergcrypto.KeyNotFoundException) Table t: no key 'k9'\n  hint: make it\n\nJVM stacktrace:\n"
    with pytest.raises(KeyNotFoundError, match="no key 'k9'") as caught:
        encrypt_table(Remote(error=unknown(said)), "lake.db.t", "k9")  # type: ignore[arg-type]
    assert (caught.value.message, caught.value.hint) == ("Table t: no key 'k9'", "make it")
    with pytest.raises(SparkConnectGrpcException), typed_errors():
        raise unknown("(java.lang.IllegalStateException) not ours")


def test_wrong_arguments_are_refused_before_the_server_is_asked() -> None:
    spark: Any = Remote()
    with pytest.raises(ConfigurationError):
        verify_catalog(spark, " ")
    with pytest.raises(ConfigurationError, match="is not a list of tables"):
        verify_catalog(spark, "lake", except_tables="lake.db.t")
    with pytest.raises(ConfigurationError):
        verify_table(spark, "")
    with pytest.raises(ConfigurationError, match="'seven' is not a whole number"):
        verify_table(spark, "lake.db.t", seed="seven")  # type: ignore[arg-type]
    assert spark.asked == []
