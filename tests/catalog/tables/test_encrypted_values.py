"""Columns whose values are encrypted by SQL functions, with value keys."""

import base64
import re
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.cmac import CMAC
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from harness.files import MARKER
from harness.jars import BUILT
from harness.lake import Lake
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.functions import col

from pyspark_iceberg_crypto import (
    ConfigurationError,
    KeyNotFoundError,
    NotSupportedError,
    TamperedError,
    create_value_key,
    decrypt_table,
    decrypt_value,
    drop_value_key,
    encrypt_value,
    encryption_keys,
    key_versions_in_use,
    kms_metrics,
    rotate_catalog,
    rotate_value_key,
    typed_errors,
    value_keys,
    verify_table,
)

DOCUMENT = Path(__file__).parents[3] / "docs" / "encrypted-values.md"


def make_key(lake: Lake, master: str = "k1") -> str:
    """A value key that belongs to one test; the table that keeps it belongs to the catalog."""
    name = f"key-{lake.namespace}"
    lake.sql(f"CALL {lake.catalog}.system.create_value_key(name => '{name}', key_id => '{master}')")
    return name


@pytest.mark.catalogs("jdbc")
def test_values_of_a_plaintext_table(lake: Lake) -> None:
    key, f = make_key(lake), f"{lake.catalog}.system"
    columns = "id INT, ssn STRING, photo BINARY"
    table = lake.create(columns=columns, key=None, write_merge_mode="merge-on-read")
    people = f"VALUES (1, '{MARKER}-1', X'00FF'), (2, '{MARKER}-2', X''), (3, NULL, NULL)"
    lake.sql(
        f"INSERT INTO {table} SELECT id, {f}.encrypt_value(ssn, '{key}'), "
        f"{f}.encrypt_value(photo, '{key}', 'photo') FROM {people} AS p (id, ssn, photo)"
    )
    ssn = f"{f}.decrypt_value(ssn, '{key}')"
    assert lake.rows(
        f"SELECT id, {ssn}, {f}.decrypt_value(photo, '{key}', 'photo') FROM {table} WHERE id < 3"
    ) == [(1, f"{MARKER}-1", b"\x00\xff"), (2, f"{MARKER}-2", b"")]
    assert lake.sql(f"SELECT ssn, photo, {ssn} FROM {table} WHERE id = 3") == [(None, None, None)]
    assert lake.value(f"SELECT id FROM {table} WHERE {ssn} = '{MARKER}-2'") == 2

    lake.sql(
        f"UPDATE {table} SET ssn = {f}.encrypt_value_deterministic({ssn}, '{key}') WHERE id < 3"
    )
    sought = f"{f}.encrypt_value_deterministic('{MARKER}-2', '{key}')"
    source = f"VALUES (4, '{MARKER}-2'), (5, '{MARKER}-5') AS s (id, ssn)"
    lake.sql(
        f"MERGE INTO {table} t USING (SELECT *, {f}.encrypt_value(ssn, '{key}') AS c FROM {source}) s "
        f"ON t.ssn = {f}.encrypt_value_deterministic(s.ssn, '{key}') WHEN MATCHED THEN "
        "UPDATE SET id = s.id WHEN NOT MATCHED THEN INSERT (id, ssn) VALUES (s.id, s.c)"
    )
    assert lake.sql(f"SELECT id FROM {table} WHERE ssn = {sought}") == [(4,)]
    plan = lake.value(f"EXPLAIN SELECT id FROM {table} WHERE ssn = {sought}")
    assert re.search(r"filters=.*ssn = 'A[\w+/]+=*'", plan), "Iceberg skips files by the ciphertext"
    found = lake.spark.table(table).select(
        "id", decrypt_value("ssn", key, catalog=lake.catalog).alias("ssn")
    )
    assert sorted(found.where("ssn IS NOT NULL").collect()) == [
        (1, f"{MARKER}-1"),
        (4, f"{MARKER}-2"),
        (5, f"{MARKER}-5"),
    ]
    files = [path for path in (lake.folder / "t").rglob("*") if path.is_file()]
    assert files and not any(MARKER.encode() in path.read_bytes() for path in files)


def test_rotated_keys_and_compiled_code(hadoop: Lake) -> None:
    """The other tests run without generated code."""
    key, f = make_key(hadoop), f"{hadoop.catalog}.system"
    text = col("id").cast("string")

    def rows(ids: str) -> DataFrame:
        value = encrypt_value(text, key, context="ids", catalog=hadoop.catalog).alias("v")
        return hadoop.spark.range(100).select("id", value).where(ids)

    before = rows("id < 50")  # analyzed now: it keeps the version
    hadoop.sql(f"CALL {f}.rotate_value_key(name => '{key}', new_version => true)")
    hadoop.sql(f"CALL {f}.rotate_value_key(name => '{key}', new_key_id => 'k2')")
    keys = value_keys(hadoop.spark, hadoop.catalog)  # on each Spark: the way there differs
    assert [one.master_key_id for one in keys if one.name == key] == ["k2", "k2"]
    with (
        hadoop.configured("spark.sql.codegen.wholeStage", "true"),
        hadoop.configured("spark.sql.codegen.factoryMode", "CODEGEN_ONLY"),
    ):
        again = decrypt_value("v", key, context="ids", catalog=hadoop.catalog).cast(
            "bigint"
        ) == col("id")
        masked = f"{f}.mask(concat('{MARKER}-', id), 2) AS masked"
        both = before.union(rows("id >= 50"))
        first, *_ = checked = both.selectExpr("id", "v", masked).where(again).sort("id").collect()
    assert len(checked) == 100 and first.masked == "****-0"
    assert len({base64.b64decode(row.v)[:5] for row in checked}) == 2, "two versions"


def test_reports_and_rotations_know_value_keys(hadoop: Lake) -> None:
    """ValueKeyTableTest has what they say."""
    key, spark = make_key(hadoop), hadoop.spark
    rotate_value_key(spark, hadoop.catalog, key, new_key_id="k2")
    namespace = f"{hadoop.catalog}.encryption"
    table = f"{namespace}.value_keys"
    found = encryption_keys(spark, table).keys
    assert any(row.key_id.startswith(f"{key}.") for row in found if row.kind == "value")
    with pytest.raises(NotSupportedError, match="it keeps value keys"):
        decrypt_table(spark, table)
    evidence = verify_table(spark, table, progress=False).with_keys(found)
    assert "value" in {row["kind"] for row in evidence.encryption_keys}
    in_use = key_versions_in_use(spark, namespace, progress=False)
    assert "k2" in {row.key_id for row in in_use.keys}
    rotated = rotate_catalog(spark, namespace, "k1", dry_run=True, progress=False)
    assert not rotated.ok and f"{key} (k2)" in rotated.left[0]["problem"]


def test_errors_name_the_key_and_no_value(hadoop: Lake) -> None:
    key, f = make_key(hadoop), f"{hadoop.catalog}.system"
    table = hadoop.create(columns="id INT, ssn STRING", key=None)
    hadoop.sql(
        f"INSERT INTO {table} SELECT 1, '{MARKER}' UNION ALL SELECT 2, {f}.encrypt_value('x', '{key}')"
    )
    with (
        pytest.raises(KeyNotFoundError, match=f"(?s)no value key 'nope'.*{key}") as no_key,
        typed_errors(),
    ):
        hadoop.sql(f"UPDATE {table} SET ssn = {f}.encrypt_value(ssn, concat('no', 'pe'))")
    with pytest.raises(TamperedError, match=f"value key '{key}'") as plaintext, typed_errors():
        hadoop.sql(f"SELECT {f}.decrypt_value(ssn, '{key}') FROM {table}")
    with pytest.raises(TamperedError, match="another context") as context, typed_errors():
        hadoop.sql(f"SELECT {f}.decrypt_value(ssn, '{key}', 'c') FROM {table} WHERE id = 2")
    assert not any(MARKER in str(error.value) for error in (no_key, plaintext, context))


@pytest.mark.nightly
def test_what_has_no_key_or_is_no_call(hadoop: Lake) -> None:
    key, f = make_key(hadoop), f"{hadoop.catalog}.system"
    table = hadoop.create(columns="id INT, ssn STRING", key=None)
    hadoop.sql(
        f"INSERT INTO {table} SELECT 1, '{MARKER}' UNION ALL SELECT 2, {f}.encrypt_value('x', '{key}')"
    )
    assert hadoop.rows(f"SELECT id, {f}.try_decrypt_value(ssn, '{key}') AS ssn FROM {table}") == [
        (1, None),
        (2, "x"),
    ]
    no_name = "nullif(concat('', ssn), ssn)"  # known to be NULL when a row is there
    for call in ("encrypt_value", "encrypt_value_deterministic", "decrypt_value", "hash_value"):
        for name in ("NULL", no_name):
            with pytest.raises(KeyNotFoundError, match=f"NULL.*{call}") as no_key, typed_errors():
                hadoop.sql(f"UPDATE {table} SET ssn = {f}.{call}(ssn, {name})")
            assert "coalesce" in no_key.value.hint
    assert (
        hadoop.value(f"SELECT {f}.try_decrypt_value(ssn, NULL) FROM {table} WHERE id = 1") is None
    )
    nothing = (
        f"SELECT {f}.encrypt_value(ssn, {no_name}) FROM VALUES (CAST(NULL AS STRING)) AS t (ssn)"
    )
    assert hadoop.value(nothing) is None, "NULL stays NULL"
    for call in (f"decrypt_value(id, '{key}')", "encrypt_value(ssn)", "mask(id)", "hash_value(1)"):
        with pytest.raises(AnalysisException, match="it is "):
            hadoop.sql(f"SELECT {f}.{call} FROM {table}")
    with pytest.raises(Exception, match="it keeps value keys"):
        hadoop.sql(f"DROP TABLE {hadoop.catalog}.encryption.value_keys")


@pytest.mark.skipif(BUILT.spark == "3.5", reason="on Spark 3.5 no rule checks these functions")
def test_a_stream_would_keep_the_keys_of_its_start(hadoop: Lake) -> None:
    key, f = make_key(hadoop), f"{hadoop.catalog}.system"
    rows = hadoop.spark.readStream.format("rate").load().selectExpr("string(value) AS ssn")
    for call in ("encrypt_value", "try_decrypt_value"):
        with pytest.raises(NotSupportedError, match=f"{call}.*stream") as refused, typed_errors():
            rows.selectExpr(f"{f}.{call}(ssn, '{key}')")
        assert "foreachBatch" in refused.value.hint
    rows.selectExpr(f"{f}.mask(ssn)")
    table, hashed = hadoop.create(columns="ssn STRING", key=None), f"{f}.hash_value(ssn, '{key}')"
    static = hadoop.spark.table(table).selectExpr(f"{hashed} AS ssn")
    with pytest.raises(NotSupportedError, match="hash_value.*stream"), typed_errors():
        rows.join(static, "ssn")
    with pytest.raises(NotSupportedError, match="hash_value.*stream"), typed_errors():
        query = f"SELECT * FROM {{stream}} WHERE ssn IN (SELECT {hashed} FROM {table})"
        hadoop.spark.sql(query, stream=rows)


@pytest.mark.nightly
@pytest.mark.skipif(
    BUILT.spark == "3.5", reason="on Spark 3.5 a key's name is looked up with the first row"
)
def test_a_misspelt_key_is_found_before_a_statement_runs(hadoop: Lake) -> None:
    """By the analyzer: of a table without rows, of a view, and of what is not even run."""
    key, f = make_key(hadoop), f"{hadoop.catalog}.system"
    table = hadoop.create(columns="id INT, ssn STRING", key=None)
    kept = hadoop.sql(f"DESCRIBE TABLE EXTENDED {table}")
    wrong = f"{f}.decrypt_value(ssn, 'nope')"
    for statement in (
        f"SELECT * FROM {table} WHERE id IN (SELECT max(id) FROM {table} WHERE {wrong} = 'x')",
        f"WITH t AS (SELECT upper({wrong}) AS v FROM {table}) SELECT v FROM t GROUP BY v",
        f"INSERT INTO {table} SELECT id, {f}.encrypt_value(ssn, 'nope', 'c') FROM {table}",
        f"DELETE FROM {table} WHERE {wrong} = 'x'",
        f"CREATE TABLE {hadoop.table('new')} USING iceberg AS SELECT {wrong} AS v FROM {table}",
        f"CREATE TEMPORARY VIEW v AS SELECT {wrong} AS v FROM {table}",
    ):
        with (
            pytest.raises(KeyNotFoundError, match=f"(?s)no value key 'nope'.*{key}"),
            typed_errors(),
        ):
            hadoop.spark.sql(statement)
    with pytest.raises(KeyNotFoundError, match="'nope'"), typed_errors():
        hadoop.spark.table(table).select(encrypt_value("ssn", "nope", catalog=hadoop.catalog))
    assert hadoop.sql(f"DESCRIBE TABLE EXTENDED {table}") == kept
    named = f"SELECT {f}.decrypt_value(ssn, concat('no', 'pe')) FROM {table}"
    assert hadoop.sql(named) == [], "a name that is no literal is looked up with the first row"
    assert hadoop.sql(f"SELECT {f}.hash_value(ssn, '{key}') FROM {table}") == []


@pytest.mark.nightly
@pytest.mark.catalogs("rest")
def test_a_version_is_dropped(lake: Lake) -> None:
    """With Python's functions; the error tells how to look for what still needs it."""
    lake = lake.with_options({"encryption.value-key-table": f"{lake.namespace}.value_keys"})
    spark, catalog, f = lake.spark, lake.catalog, f"{lake.catalog}.system"
    first = create_value_key(spark, catalog, "k", "k1")
    table = lake.create(columns="id INT, ssn STRING", key=None)
    encrypted = f"{f}.encrypt_value('x', 'k'), {f}.encrypt_value_deterministic('x', 'k')"
    values = "SELECT stack(3, 1, r, 2, d, 3, 'plaintext') FROM (SELECT %s) AS e (r, d)"
    lake.sql(f"INSERT INTO {table} {values % encrypted}")
    with pytest.raises(NotSupportedError, match="is its newest"):
        drop_value_key(spark, catalog, "k", first.version, confirm=True)
    (second,) = rotate_value_key(spark, catalog, "k", new_version=True)
    assert [key.version for key in value_keys(spark, catalog)] == [first.version, second.version]
    with pytest.raises(ConfigurationError, match="nothing was dropped") as refused:
        drop_value_key(spark, catalog, "k", first.version)
    (search,) = re.findall(r"SELECT count.*?\('\w+', '\w+'\)", refused.value.hint)
    search = search.replace("<table>", table).replace("<column>", "ssn")
    assert lake.value(search) == 2
    again = f"{f}.encrypt_value(coalesce({f}.try_decrypt_value(ssn, 'k'), ssn), 'k')"
    rows = lake.sql(f"SELECT id, {again} AS ssn FROM {table}")
    spark.createDataFrame(rows).writeTo(table).overwritePartitions()
    assert lake.value(search) == 0
    snapshots = f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at LIMIT 1"
    of_first = f"VERSION AS OF {lake.value(snapshots)}"
    old = lake.value(f"SELECT ssn FROM {table} {of_first} WHERE id = 1")

    left = drop_value_key(spark, catalog, "k", first.version, confirm=True)
    assert left == [second] == value_keys(spark, catalog)
    ssn = f"{f}.decrypt_value(ssn, 'k')"
    assert lake.rows(f"SELECT id, {ssn} FROM {table}") == [(1, "x"), (2, "x"), (3, "plaintext")]
    for call in (f"decrypt_value('{old}', 'k')", "hash_value('x', 'k')"):
        with pytest.raises(KeyNotFoundError, match="was dropped"), typed_errors():
            lake.sql(f"SELECT {f}.{call}")
    assert lake.value(f"SELECT {f}.try_decrypt_value('{old}', 'k')") is None


@pytest.mark.nightly
def test_other_programs_read_the_values(hadoop: Lake) -> None:
    """As docs/encrypted-values.md has the format, with pyca/cryptography; and the KMS is asked once for 16 tasks."""
    key, fresh = make_key(hadoop), hadoop.with_options({})
    f = f"{fresh.catalog}.system"
    rows = fresh.spark.range(0, 64, 1, 16).select(
        encrypt_value(col("id").cast("string"), key, context="c", catalog=fresh.catalog).alias("r"),
        encrypt_value(
            col("id").cast("string"), key, catalog=fresh.catalog, deterministic=True
        ).alias("d"),
        col("id"),
    )
    fresh.sql(f"CALL {f}.value_keys()")  # checks the metadata of their table
    asked = kms_metrics(fresh.spark, fresh.catalog).unwrap_calls
    values = rows.collect()
    assert kms_metrics(fresh.spark, fresh.catalog).unwrap_calls == asked + 1
    value_key = unwrapped(fresh, key)
    for row in values:
        randomized, deterministic = base64.b64decode(row.r), base64.b64decode(row.d)
        assert xaes(derived(value_key, "randomized", key, 32), randomized[5:], b"c") == str(row.id)
        siv = AESSIV(derived(value_key, "deterministic", key, 64))
        assert siv.decrypt(deterministic[5:], [b""]).decode() == str(row.id)
        assert randomized[0] == deterministic[0] == 1
        assert int.from_bytes(randomized[1:5]) + 1 == int.from_bytes(deterministic[1:5])


def unwrapped(lake: Lake, key: str) -> bytes:
    """The value key, as the KMS unwraps it."""
    jvm: Any = lake.spark._jvm
    java = lake.spark._jsparkSession  # type: ignore[attr-defined]
    ours = java.sessionState().catalogManager().catalog(lake.catalog).encryptedCatalog()
    (entry,) = (
        lake.spark.sql(f"SHOW TBLPROPERTIES {lake.catalog}.encryption.value_keys")
        .where(f"key LIKE 'encryption.value-key.{key}.%'")
        .collect()
    )
    wrapped = re.search('"wrapped-key":"(.*?)"', entry.value)
    assert wrapped is not None
    buffer = jvm.java.nio.ByteBuffer.wrap(base64.b64decode(wrapped[1]))
    return bytes(ours.context().kms().unwrapKey(buffer, "k1").array())


def derived(value_key: bytes, use: str, name: str, length: int) -> bytes:
    info = f"iceberg-crypto value key {use} {name}".encode()
    return HKDF(SHA256(), length, salt=None, info=info).derive(value_key)


def xaes(key: bytes, value: bytes, context: bytes) -> str:
    """XAES-256-GCM (C2SP): the first half of the nonce derives the key of AES-256-GCM."""
    halves = b""
    for counter in (1, 2):
        cmac = CMAC(AES256(key))
        cmac.update(bytes([0, counter, ord("X"), 0]) + value[:12])
        halves += cmac.finalize()
    return AESGCM(halves).decrypt(value[12:24], value[24:], context).decode()


@pytest.mark.nightly
@pytest.mark.catalogs("rest")
def test_what_the_document_shows(lake: Lake) -> None:
    """Its SQL, in its order; `-- [...]` behind a query is its answer."""
    lake = lake.with_options({"encryption.value-key-table": f"{lake.namespace}.value_keys"})
    text = DOCUMENT.read_text().replace("lake.system", f"{lake.catalog}.system")
    text = text.replace("lake.db", f"{lake.catalog}.{lake.namespace}")
    blocks = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    found = re.findall(r"(.+?);\n(?:-- ([^\n]*)\n)?", "".join(blocks), re.DOTALL)
    assert sum(bool(answer) for _, answer in found) == 5
    for query, answer in found:
        if lake.kind == "hadoop" and ("VIEW" in query or ".people" in query):
            continue  # it has no views
        shown = str([tuple(row) for row in lake.sql(query)])
        assert answer in ("", shown), query
