"""What tests/catalog/test_keys_out_of_sight.py runs: works on encrypted tables, and keeps all that Spark shows of it.

Tells what was shown, by place, and then the keys themselves, which it asks for only when nothing more is recorded.
"""

import base64
import json
import traceback
import urllib.request
from pathlib import Path
from typing import Any

from harness.files import change, flipped
from harness.steps import given, tell
from pyspark.sql import SparkSession

ON_DRIVER = "spark.iceberg-crypto.verify.files-on-driver"


def main() -> None:
    settings, builder = given()
    spark = builder.getOrCreate()
    shown: dict[str, str] = {}
    for catalog in settings["catalogs"]:
        work(spark, f"{catalog}.{settings['namespace']}.t", shown)
    for path in (
        "sql?details=true&planDescription=true&length=500",
        "jobs",
        "stages?details=true",
        "environment",
    ):
        shown[f"ui/{path}"] = rest(spark, path)
    for place in settings["files"]:
        for path in Path(place).rglob("*"):
            if path.is_file() and not path.name.endswith(".crc"):
                shown[str(path)] = path.read_text(errors="replace")
    for path in Path(settings["shuffled"]).rglob("*.data"):
        shown[str(path)] = path.read_text("latin-1")
    keys = {
        catalog: keys_of(spark, catalog, settings["namespace"]) for catalog in settings["catalogs"]
    }
    tell({"shown": shown, "keys": keys})


def work(spark: SparkSession, table: str, shown: dict[str, str]) -> None:
    spark.sql(f"CREATE NAMESPACE {table.rpartition('.')[0]}")
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, note STRING) USING iceberg TBLPROPERTIES "
        "('encryption.key-id'='k1', 'write.delete.mode'='merge-on-read')"
    )
    for start in (0, 10):
        spark.sql(
            f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, 'x' FROM range({start}, {start + 10})"
        )
    spark.sql(f"DELETE FROM {table} WHERE id IN (3, 13)")
    system = table.partition(".")[0] + ".system"
    spark.sql(f"CALL {system}.create_value_key(name => 'v', key_id => 'k1')")
    spark.sql(f"UPDATE {table} SET note = {system}.encrypt_value(note, 'v') WHERE id = 4")
    spark.sql(f"SELECT * FROM {table} t JOIN {table}.files ON true").collect()
    for mode in ("EXTENDED", "FORMATTED", "COST", "CODEGEN"):
        for query in (
            f"SELECT * FROM {table} WHERE id > 3",
            f"SELECT {system}.try_decrypt_value(note, 'v') FROM {table}",
            f"SELECT key_metadata FROM {table}.files",
        ):
            shown[f"explain {mode} {query}"] = str(spark.sql(f"EXPLAIN {mode} {query}").collect())
    for statement in (f"DESCRIBE TABLE EXTENDED {table}", f"SHOW CREATE TABLE {table}"):
        shown[statement] = str(spark.sql(statement).collect())
    spark.conf.set(ON_DRIVER, "0")  # or a table so small has no jobs that could show a key
    shown["verify"] = verified(spark, table)
    spark.conf.unset(ON_DRIVER)
    files = [row.file_path for row in spark.sql(f"SELECT file_path FROM {table}.files").collect()]
    lists = [
        row.manifest_list
        for row in spark.sql(f"SELECT manifest_list FROM {table}.snapshots").collect()
    ]
    for location in (*files, lists[-1]):
        path = Path(location.removeprefix("file:"))
        whole = path.read_bytes()
        change(path, flipped(whole, 60))
        shown[f"error of {path.name}"] = error(spark, table)
        shown[f"verify {path.name}"] = verified(spark, table)
        path.write_bytes(whole[:-20])
        shown[f"error of {path.name}, cut"] = error(spark, table)
        path.write_bytes(whole)


def verified(spark: SparkSession, table: str) -> str:
    catalog, _, name = table.partition(".")
    return str(
        spark.sql(
            f"CALL {catalog}.system.verify_encryption(table => '{name}', deep => true, strays => true)"
        ).collect()
    )


def error(spark: SparkSession, table: str) -> str:
    try:
        spark.sql(f"REFRESH TABLE {table}")
        spark.sql(f"SELECT * FROM {table}").collect()
    except Exception:  # noqa: BLE001 (its text is what is looked at)
        return traceback.format_exc()
    return ""


def rest(spark: SparkSession, path: str) -> str:
    address = f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{spark.sparkContext.applicationId}/{path}"
    with urllib.request.urlopen(address, timeout=60) as answer:
        return str(answer.read().decode())


def keys_of(spark: SparkSession, catalog: str, namespace: str) -> list[str]:
    """KEKs, as the KMS unwraps them, and the keys in the key metadata of files and manifests: Base64."""
    jvm: Any = spark.sparkContext._jvm
    java = spark._jsparkSession
    jvm.org.apache.spark.sql.SparkSession.setActiveSession(java)
    ours = java.sessionState().catalogManager().catalog(catalog).encryptedCatalog()
    identifier = jvm.org.apache.iceberg.catalog.TableIdentifier.parse(f"{namespace}.t")
    table = ours.loadTable(identifier)
    found = []
    for key in table.operations().current().encryptionKeys():
        if key.encryptedById() == "k1":
            found.append(
                bytes(ours.context().kms().unwrapKey(key.encryptedKeyMetadata(), "k1").array())
            )
    tasks = table.newScan().planFiles().iterator()
    while tasks.hasNext():
        task = tasks.next()
        for file in (task.file(), *task.deletes()):
            found.append(data_key(bytes(file.keyMetadata().array())))
    for manifest in table.currentSnapshot().allManifests(table.io()):
        found.append(data_key(bytes(manifest.keyMetadata().array())))
    for name, value in (
        ours.loadTable(
            jvm.org.apache.iceberg.catalog.TableIdentifier.parse("encryption.value_keys")
        )
        .properties()
        .items()
    ):
        if name.startswith("encryption.value-key."):
            wrapped = base64.b64decode(json.loads(value)["wrapped-key"])
            found.append(
                bytes(
                    ours.context()
                    .kms()
                    .unwrapKey(jvm.java.nio.ByteBuffer.wrap(wrapped), "k1")
                    .array()
                )
            )
    return [base64.b64encode(key).decode() for key in found]


def data_key(metadata: bytes) -> bytes:
    """The key in Iceberg's standard key metadata: behind its version, 1, and Avro's zigzag length."""
    assert metadata[0] == 1
    return metadata[2 : 2 + metadata[1] // 2]


if __name__ == "__main__":
    main()
