"""Functions on a session of Spark Connect: each asks for a procedure, and makes the same answer of its rows."""

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from pyspark_iceberg_crypto import (
    ConfigurationError,
    EncryptedTable,
    KeyNotFoundError,
    SparkConnectError,
    ValueKey,
    _connect,
    configure_spark,
    create_value_key,
    decrypt_table,
    drop_value_key,
    encrypt_table,
    encryption_keys,
    prune_encryption_keys,
    purge_plaintext,
    reencrypt_table,
    repair_table,
    rotate_catalog,
    rotate_kek,
    rotate_master_key,
    rotate_value_key,
    typed_errors,
    value_keys,
    verify_catalog,
    verify_table,
)

DONE = {"table": "lake.db.t", "message": "done", "committed": True}


class Remote:
    """A session that answers each statement with the same rows."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self, *rows: dict[str, Any], error: BaseException | None = None) -> None:
        self.rows, self.error = rows, error
        self.asked: list[str] = []
        self.catalog = SimpleNamespace(
            currentCatalog=lambda: "here", databaseExists=lambda name: name == "`outer`"
        )
        self.conf = {"spark.sql.catalog.my-lake": "a class"}

    def addTag(self, tag: str) -> None:  # noqa: N802 (Spark's)
        self.tags = [tag]

    def removeTag(self, tag: str) -> None:  # noqa: N802
        self.tags.remove(tag)

    def interruptTag(self, tag: str) -> None:  # noqa: N802
        assert tag in self.tags
        self.asked.append("interrupted")

    def sql(self, statement: str) -> Any:
        self.asked.append(statement)
        if self.error is not None:
            raise self.error
        rows = [SimpleNamespace(asDict=lambda row=row: row) for row in self.rows]
        return SimpleNamespace(collect=lambda: rows)


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
    spark: Any = Remote(row)
    table = "lake.db.`t'); DROP ä`"
    assert encrypt_table(spark, table, "k'1", max_bytes=10**12) == EncryptedTable(**row)
    hexed = "CAST(X'{}' AS STRING)".format
    assert spark.asked == [
        f"CALL `lake`.system.encrypt_table(table => {hexed(table.encode().hex())}, "
        f"key_id => {hexed('6b2731')}, max_bytes => 1000000000000, dry_run => false)",
    ]


@pytest.mark.parametrize("character", [chr(i) for i in range(128)] + ["ä", "\u2028", "😀"])
def test_each_character_is_itself_or_in_hex(character: str) -> None:
    literal = _connect._literal(f"a{character}")
    plain = character.isascii() and (character.isalnum() or character in "_.:/=-")
    in_hex = f"CAST(X'61{character.encode().hex()}' AS STRING)"
    assert literal == (f"'a{character}'" if plain else in_hex)


def test_other_literals() -> None:
    assert [_connect._literal(one) for one in (0, True, 0.25)] == ["0", "true", "0.25D"]


@pytest.mark.parametrize(
    ("call", "more", "statement"),
    [
        (
            lambda spark: rotate_kek(spark, "db.t", rewrap=True),
            {"key_id": "k", "old_kek_id": None, "new_kek_id": "n", "rewrapped": 1}
            | {"removed_keks": 0, "kept_keks": 1, "kms_calls": 1},
            "CALL `here`.system.rotate_kek(table => 'db.t', rewrap => true, dry_run => false)",
        ),
        (
            lambda spark: rotate_master_key(spark, "`a.b`.db.t", new_key_id="k2"),
            {"old_key_id": "k", "new_key_id": "k2", "keks": 1, "old_versions": None}
            | {"new_versions": None, "kms_calls": 2, "value_keys": 0, "value_keys_left": None},
            "CALL `a.b`.system.rotate_master_key("
            "table => CAST(X'60612e62602e64622e74' AS STRING), new_key_id => 'k2', dry_run => false)",
        ),
        (
            lambda spark: prune_encryption_keys(spark, "lake.db.t"),
            {"keys_before": 2, "removed": 1, "kept": 1, "bytes_before": 9, "bytes_after": 5},
            "CALL `lake`.system.prune_encryption_keys(table => 'lake.db.t', dry_run => false)",
        ),
        (
            lambda spark: decrypt_table(spark, "lake.db.t", allow_plaintext=True, progress=True),
            {"old_key_id": "k", "files": 1, "bytes": 9},
            "CALL `lake`.system.decrypt_table(table => 'lake.db.t', allow_plaintext => true)",
        ),
        (
            lambda spark: reencrypt_table(spark, "lake.db.t", options={"a": "1", "b": "2"}),
            {"data_files": 1, "delete_files": 0, "bytes": 9, "left": 0, "snapshots": 1}
            | {"refs": "", "expire_statement": None},
            "CALL `lake`.system.reencrypt_table(table => 'lake.db.t', "
            "options => map('a', '1', 'b', '2'), dry_run => false)",
        ),
    ],
)
def test_what_changes_a_table(call: Any, more: dict[str, Any], statement: str) -> None:
    spark = Remote({**DONE, **more})
    found = call(spark)
    assert {**found.to_dict()} == {**DONE, **more}
    assert spark.asked == [statement]


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
        "CALL `lake`.system.drop_value_key(name => 'hr', version => '0a', allow_loss => false)",
    ]
    for wrong in ("", None, 5):
        with pytest.raises(ConfigurationError, match="version="):
            drop_value_key(spark, "lake", "hr", wrong, allow_loss=True)  # type: ignore[arg-type]
    assert len(spark.asked) == 4


def test_rows_of_files_and_of_findings() -> None:
    head = {"table": "lake.db.t", "path": None, "files": 2, "bytes": 7, "deleted": False}
    files = [{"path": "/a", "message": None}, {"path": "/b", "message": None}]
    others = [
        {"path": "/old", "message": "folder with old files, not one of the table's", "files": 1},
        {"path": "/old/c", "message": "old file, not in the table's folders"},
        {"path": "/kept/d", "message": "left: not known to be this table's, or to be kept"},
        {"path": None, "message": "cannot be read: manifest m: there is no such file"},
    ]
    told = [{"files": None, **one} for one in (*files, *others)]
    spark: Any = Remote({**head, "message": "2 would"}, *told)
    purged = purge_plaintext(spark, "lake.db.t", keep=["/kept", "it's"])
    assert (purged.files, purged.paths, purged.committed) == (2, ["/a", "/b"], False)
    assert (purged.outside, purged.outside_paths) == ({"/old": 1}, ["/old/c"])
    assert (purged.left, purged.left_paths) == (1, ["/kept/d"])
    assert purged.gaps == ["manifest m: there is no such file"]
    assert spark.asked == [
        "CALL `lake`.system.purge_plaintext(table => 'lake.db.t', dry_run => false, "
        "keep => array('/kept', CAST(X'69742773' AS STRING)), accept_missing => false)"
    ]
    finding = {"finding": "nothing is known about it", "detail": "d", "consequence": "c"}
    finding |= {"remedy": "r", "mendable": False, "mended": False}
    report = repair_table(Remote(finding), "lake.db.t")  # type: ignore[arg-type]
    assert (report.ok, report.complete, report.findings[0].detail) == (False, False, "d")


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
    spark: Any = Remote({**DONE, "old_key_id": "k", "files": 1, "bytes": 9})
    decrypt_table(spark, table)
    (statement,) = spark.asked
    assert statement.startswith(f"CALL {catalog}.system.decrypt_table(")


def test_what_no_procedure_does_is_refused() -> None:
    spark: Any = Remote()
    for call in (
        lambda: encryption_keys(spark, "lake.db.t"),
        lambda: rotate_catalog(spark, "lake"),
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
    with pytest.raises(SparkConnectError, match="has no verify_encryption in lake") as caught:
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
    with pytest.raises(SparkConnectError, match="has no verify_encryption in lake"):
        verify_table(Remote(error=AnalysisException(said)), "lake.db.t")  # type: ignore[arg-type]


def test_errors_of_the_server_have_their_types() -> None:
    said = "(io.icebergcrypto.KeyNotFoundException) Table t: no key 'k9'\n  hint: make it\n\nJVM stacktrace:\n"
    with pytest.raises(KeyNotFoundError, match="no key 'k9'") as caught:
        encrypt_table(Remote(error=unknown(said)), "lake.db.t", "k9")  # type: ignore[arg-type]
    assert (caught.value.message, caught.value.hint) == ("Table t: no key 'k9'", "make it")
    with pytest.raises(SparkConnectGrpcException), typed_errors():
        raise unknown("(java.lang.IllegalStateException) not ours")


def test_the_server_leaves_tables_out() -> None:
    rows = [{"kind": "left out", "report": None, "table": f"lake.db.{name}"} for name in "ab"]
    spark: Any = Remote({**rows[0], "encrypted": True}, {**rows[1], "encrypted": None})
    report = verify_catalog(spark, "lake.db", except_tables=["lake.db.a", "lake.db.b"])
    assert report.left_out == [
        {"table": "lake.db.a", "encrypted": True},
        {"table": "lake.db.b", "encrypted": None},
    ]
    assert "except_tables => array('lake.db.a', 'lake.db.b')" in spark.asked[0]
    assert not report.ok, "nothing was verified"


def test_wrong_arguments_are_refused_before_the_server_is_asked() -> None:
    spark: Any = Remote()
    with pytest.raises(ConfigurationError):
        verify_catalog(spark, " ")
    with pytest.raises(ConfigurationError, match="is no list of tables"):
        verify_catalog(spark, "lake", except_tables="lake.db.t")
    with pytest.raises(ConfigurationError):
        verify_table(spark, "")
    assert spark.asked == []
