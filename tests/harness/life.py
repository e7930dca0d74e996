"""A table's life in a session of another process: it is written, changed, maintained and verified."""

from harness.jars import BUILT
from harness.sessions import OtherSession

# Iceberg 1.11 loses the keys of deletion vectors.
MODE = "copy-on-write" if BUILT.iceberg.startswith("1.11.") else "merge-on-read"


def live(session: OtherSession, catalog: str, namespace: str) -> None:
    """Makes the namespace, and in it a table, which is dropped in the end."""
    name = f"{namespace}.t"
    table = f"{catalog}.{name}"
    modes = "".join(f", 'write.{what}.mode'='{MODE}'" for what in ("delete", "update", "merge"))
    session.sql(f"CREATE NAMESPACE {catalog}.{namespace}")
    session.sql(
        f"CREATE TABLE {table} (id BIGINT, note STRING) USING iceberg TBLPROPERTIES ('encryption.key-id'='k1'{modes})"
    )
    for i in range(3):
        session.sql(
            f"INSERT INTO {table} SELECT /*+ REPARTITION(2) */ id, 'n' FROM range({10 * i}, {10 * i + 4})"
        )
    session.sql(f"DELETE FROM {table} WHERE id = 10")
    session.sql(f"UPDATE {table} SET note = 'u' WHERE id < 2")
    session.sql(
        f"MERGE INTO {table} t USING (SELECT * FROM VALUES (11), (100) AS s(id)) s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, note) VALUES (s.id, 'm')"
    )
    deletes = session.sql(f"SELECT count(*) AS files FROM {table}.delete_files")[0]["files"]
    assert (deletes > 0) is (MODE == "merge-on-read")
    assert session.verify(table, deep=True, all_snapshots=True)["ok"]
    for call in (
        f"rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))",
        f"rotate_master_key(table => '{name}', new_key_id => 'k2')",
        f"expire_snapshots(table => '{name}', older_than => TIMESTAMP '2999-01-01 00:00:00')",
    ):
        session.sql(f"CALL {catalog}.system.{call}")
    rows = session.sql(f"SELECT id, note FROM {table} ORDER BY id")
    assert [row["id"] for row in rows] == [0, 1, 2, 3, 12, 13, 20, 21, 22, 23, 100]
    assert "".join(row["note"] for row in rows) == "uu" + "n" * 8 + "m"
    assert session.verify(table, deep=True, strays=True)["ok"]
    session.sql(f"DROP TABLE {table} PURGE")
