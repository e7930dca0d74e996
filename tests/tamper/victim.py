"""A table to attack, in Parquet or Avro, with deletion vectors and a past; and what to exchange its files for."""

import random
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlparse

from harness.files import changed, files_below
from harness.lake import Lake
from py4j.protocol import Py4JNetworkError

from tamper.attacks import ATTACKS, Attack, Sources

FILE_KINDS = ("data", "deletion vector", "manifest", "manifest list")
ROWS = 2500  # of 1 KiB each: an Avro file of three blocks


@dataclass
class Victim:
    """A table, the right answer of a scan of it, and one file of each kind that the scan needs."""

    lake: Lake
    format: str
    table: str
    targets: dict[str, Path]
    sources: dict[str, Sources]
    answer: tuple[int, int]

    def scan(self) -> tuple[int, int]:
        return scan(self.lake, self.table)

    def attack(self, kind: str, attack: str, rng: random.Random) -> str | None:
        """Attacks one file, reads the table and puts the file back: an outcome of `outcome`, or None: not possible."""
        target = self.targets[kind]
        before = target.read_bytes()
        make: Attack = ATTACKS[attack]
        after = make(before, self.sources[kind], rng)
        if after is None or after == before:
            return None
        with changed({target: after}):
            return outcome(self, target)


def scan(lake: Lake, table: str) -> tuple[int, int]:
    """Every row and column, as two numbers; neither comes out of metadata."""
    row = lake.sql(f"SELECT count(id), sum(xxhash64(id, note, part) % 1000003) FROM {table}")[0]
    return (row[0], row[1])


# What an error says, by which it is told how an attack was noticed.
NOTICED = {
    "length": (": it was cut off", ": bytes were appended"),
    "tag": ("authentication tag does not match",),
    "header": ("Invalid GCM stream", "cannot be read by this version"),
    "Parquet": (
        "Parquet cannot decrypt it",
        "Parquet cannot read",
        "a footer that is not encrypted",
        "is not encrypted with AES_GCM_V1",
    ),
}


def outcome(victim: Victim, target: Path) -> str:
    """ "right rows", or what noticed the attack. Anything else is a failure of the product, and raised."""
    try:
        answer = victim.scan()
    except Py4JNetworkError:
        raise
    except Exception as e:
        text = str(e)
        for wanted in ("Exception: Table " + victim.table, target.name):
            assert wanted in text, f"the error does not say {wanted}:\n{text[:6000]}"
        for noticed, phrases in NOTICED.items():
            if any(phrase in text for phrase in phrases):
                return noticed
        raise AssertionError(f"an error of an unknown kind:\n{text[:6000]}") from e
    assert answer == victim.answer, f"WRONG ANSWER: {answer}, expected {victim.answer}"
    return "right rows"


def make_victim(lake: Lake, file_format: str) -> Victim:
    past = filled(lake, "t", file_format)
    answer = scan(lake, past.table)
    other = filled(lake, "u", file_format)
    plaintext = plaintext_files(lake, past.table, file_format)
    sources = {
        kind: Sources(
            same_table=past.others[kind].read_bytes(),
            other_table=other.current[kind].read_bytes(),
            older=past.older[kind].read_bytes(),
            plaintext=plaintext[kind].read_bytes(),
        )
        for kind in FILE_KINDS
    }
    return Victim(lake, file_format, past.table, past.current, sources, answer)


@dataclass
class Past:
    """Files by kind: of the current snapshot, others of it (or of any), and of the snapshot before."""

    table: str
    current: dict[str, Path]
    others: dict[str, Path]
    older: dict[str, Path]


def filled(lake: Lake, name: str, file_format: str) -> Past:
    table = lake.create(
        name,
        write_format_default=file_format,
        write_delete_mode="merge-on-read",
        write_parquet_page__size__bytes="65536",
    )
    row = "id, repeat(sha2(cast(id AS STRING), 512), 8) AS note, 'p' AS part"
    for start in (0, ROWS):
        lake.sql(f"INSERT INTO {table} SELECT {row} FROM range({start}, {start + ROWS}, 1, 1)")
    lake.sql(f"DELETE FROM {table} WHERE id < 10")
    old_snapshot = lake.value(f"SELECT max_by(snapshot_id, committed_at) FROM {table}.snapshots")
    lake.sql(f"DELETE FROM {table} WHERE id < 300 AND id % 3 = 0")
    at = f"FOR VERSION AS OF {old_snapshot}"
    lists = f"SELECT manifest_list FROM {table}.snapshots ORDER BY committed_at DESC"
    data = f"SELECT file_path FROM {table}.data_files ORDER BY file_path"
    vectors = "SELECT file_path FROM {}.delete_files {}"
    manifests = "SELECT path FROM {}.manifests {} ORDER BY content, added_snapshot_id DESC"
    now = {
        "data": paths(lake, data),
        "deletion vector": paths(lake, vectors.format(table, "")),
        "manifest": paths(lake, manifests.format(table, "")),
        "manifest list": paths(lake, lists),
    }
    then = {
        "data": now["data"][1:],
        "deletion vector": paths(lake, vectors.format(table, at)),
        "manifest": paths(lake, manifests.format(table, at))[::-1],
        "manifest list": now["manifest list"][1:],
    }
    current = {kind: now[kind][0] for kind in FILE_KINDS}
    others = {kind: [*now[kind][1:], *then[kind]] for kind in FILE_KINDS}
    different = {
        kind: next(path for path in others[kind] if path != current[kind]) for kind in FILE_KINDS
    }
    return Past(table, current, different, {kind: then[kind][0] for kind in FILE_KINDS})


def paths(lake: Lake, query: str) -> list[Path]:
    return [Path(unquote(urlparse(row[0]).path)) for row in lake.sql(query)]


def plaintext_files(lake: Lake, table: str, file_format: str) -> dict[str, Path]:
    """A plaintext table of one row fewer: files that would change the answer if one of them were read."""
    name = "plain"
    plain = lake.table(name)
    properties = (
        f"'format-version'='3', 'write.format.default'='{file_format}', "
        "'write.delete.mode'='merge-on-read', 'write.parquet.page-size-bytes'='65536'"
    )
    lake.sql(
        f"CREATE TABLE {plain} USING iceberg TBLPROPERTIES ({properties}) "
        f"AS SELECT /*+ COALESCE(1) */ * FROM {table} WHERE id > 50 AND id < {ROWS - 50}"
    )
    lake.sql(f"DELETE FROM {plain} WHERE id = 1001")
    every = list(files_below(lake.folder / name))

    def one(suffix: str, part: str = "") -> Path:
        return next(path for path in every if path.name.endswith(suffix) and part in path.name)

    return {
        "data": next(
            path
            for path in every
            if path.parent.name == "data" and path.suffix == f".{file_format}"
        ),
        "deletion vector": one(".puffin"),
        "manifest": one("-m0.avro"),
        "manifest list": one(".avro", "snap-"),
    }
