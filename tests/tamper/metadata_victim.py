"""A table whose metadata.json is attacked, with a past, and the tables that an attacker forges from."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness.files import changed, files_below, untouched
from harness.keystore import make_keystore
from harness.lake import Lake
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from tamper.metadata_attacks import Changes, Finds
from tamper.victim import NOTICED

ERRORS = (Py4JJavaError, PySparkException)
Answer = tuple[tuple[str, ...], tuple[tuple[object, ...], ...]]  # names of columns, sorted rows


@dataclass
class MetadataVictim:
    """A table and what it answered in each of its states; others are other tables' answers."""

    lake: Lake
    format: str
    table: str
    states: list[Answer]
    other: Answer
    plain: Answer
    finds: Finds

    def scan(self) -> Answer:
        return scan(self.lake, self.table)

    def outcome(self, changes: Changes) -> str:
        """Makes the changes, reads the table, tries to write to it if reading fails, and puts all back."""
        with changed(changes):
            return self.read(writes=changes.get(self.finds.file) is not None)

    def read(self, writes: bool) -> str:
        """What becomes of a scan; metadata that cannot be read must not be written on, either."""
        try:
            answer = self.scan()
        except ERRORS as e:
            noticed = self.noticed(str(e))
        else:
            return self.served(answer)
        if writes:
            with untouched(self.lake.folder / "t"), pytest.raises(ERRORS):
                self.lake.sql(f"INSERT INTO {self.table} VALUES (99, 'x', 'y')")
        return noticed

    def noticed(self, text: str) -> str:
        if "metadata.json" in text and re.search("NotFoundException|does not exist", text):
            return "file is gone"
        for wanted in ("io.icebergcrypto.", "Exception", f"Table {self.table}", "hint:"):
            assert wanted in text, f"the error does not say {wanted}:\n{text[:3000]}"
        for noticed, phrases in NOTICED_IN_METADATA.items():
            if any(phrase in text for phrase in phrases):
                return noticed
        raise AssertionError(f"an error of an unknown kind:\n{text[:3000]}")

    def served(self, answer: Answer) -> str:
        names, rows = self.states[-1]
        columns_exchanged = tuple(sorted((row[0], row[2], row[1]) for row in rows))
        if answer == self.states[-1]:
            return "right rows"
        if answer == self.states[0]:
            return "no rows"
        if answer in self.states:
            return "old rows"
        if answer == self.other:
            return "other rows"
        if answer == self.plain:
            return "plaintext rows"
        if answer[1] == rows or answer == (names, columns_exchanged):
            return "other columns"
        raise AssertionError(f"WRONG ANSWER: {answer}, expected {self.states[-1]}")


NOTICED_IN_METADATA = {
    "hash": ("might have been modified",),
    "MAC": (": its metadata is refused",),
    "wrapped key": ("io.icebergcrypto.BadWrappedKeyException",),
    "key id": ("encryption.key-id is gone", "encryption.key-id and the table's keys are gone"),
    "list key": ("is not in encryption-keys", "in encryption-keys does not decrypt"),
    "no key": ("io.icebergcrypto.PlaintextException",),
    **NOTICED,
}


def scan(lake: Lake, table: str) -> Answer:
    frame = lake.spark.table(table)
    return tuple(frame.columns), tuple(sorted(tuple(row) for row in frame.collect()))


def make_metadata_victim(lake: Lake, file_format: str) -> MetadataVictim:
    lake.sql(f"CREATE NAMESPACE IF NOT EXISTS {lake.catalog}.{lake.namespace}")
    form = {"write_format_default": file_format, "write_delete_mode": "merge-on-read"}
    table = lake.create("t", **form)
    states = [scan(lake, table)]
    statements = (
        f"INSERT INTO {table} VALUES (1, 'a', 'p'), (2, 'b', 'p'), (3, 'c', 'p')",
        f"INSERT INTO {table} VALUES (4, 'd', 'p')",
        f"DELETE FROM {table} WHERE id = 2",
    )
    for statement in statements:
        lake.sql(statement)
        states.append(scan(lake, table))

    other = lake.create("u", **form)
    lake.sql(f"INSERT INTO {other} VALUES (7, 'other', 'p')")
    own(lake, form)
    plain = lake.table("p")
    lake.sql(
        f"CREATE TABLE {plain} USING iceberg TBLPROPERTIES ('format-version'='3', "
        f"'write.format.default'='{file_format}') AS SELECT 8L AS id, 'plaintext' AS note, 'p' AS part"
    )
    file, older = versions(lake, "t")[:2]
    newest = f"SELECT path FROM {table}.manifests WHERE content = 0 ORDER BY added_snapshot_id DESC"
    plain_manifest = next(p for p in files_below(lake.folder / "p") if p.name.endswith("-m0.avro"))
    finds = Finds(
        file=file,
        text=file.read_bytes(),
        older=older.read_bytes(),
        other=versions(lake, "u")[0].read_bytes(),
        own=versions(lake, "v")[0].read_bytes(),
        plain=versions(lake, "p")[0].read_bytes(),
        manifest=Path(lake.value(newest).removeprefix("file:")),
        plain_manifest=plain_manifest.read_bytes(),
    )
    return MetadataVictim(
        lake, file_format, table, states, scan(lake, other), scan(lake, plain), finds
    )


def own(lake: Lake, form: dict[str, str]) -> None:
    """A table of the attacker's: `k1` in their keystore is another key."""
    folder = lake.world.root / f"attacker-{lake.namespace}"
    folder.mkdir()
    keystore = make_keystore(folder, {"k1": 256})
    attacker = lake.with_options({"encryption.kms.keystore.path": str(keystore.path)})
    attacker.sql(f"CREATE NAMESPACE IF NOT EXISTS {attacker.catalog}.{attacker.namespace}")
    table = attacker.create("v", **form)
    attacker.sql(f"INSERT INTO {table} VALUES (9, 'forged', 'p')")


def versions(lake: Lake, name: str) -> list[Path]:
    """The table's metadata files, the newest first."""
    every = (lake.folder / name / "metadata").rglob("*.metadata.json")
    return sorted(every, key=lambda path: int(re.sub(r"\D.*", "", path.name.lstrip("v"))))[::-1]
