"""Columns, partitions, orders, properties, and a table in the place of another."""

from collections.abc import Callable

from pyspark_iceberg_crypto._names import quoted
from twin.operations.base import Draw, Operation
from twin.operations.dml import values
from twin.tables import Pair, Phase
from twin.values import COLUMN_NAMES, TYPES, WIDER, Column

PROPERTIES = (
    *(("write.delete.mode", mode) for mode in ("merge-on-read", "copy-on-write", "merge-on-read")),
    *(("write.update.mode", mode) for mode in ("merge-on-read", "copy-on-write")),
    *(("write.merge.mode", mode) for mode in ("merge-on-read", "copy-on-write")),
    ("write.format.default", "avro"),
    ("write.format.default", "parquet"),
    ("write.format.default", "orc"),
    ("write.delete.format.default", "avro"),
    ("write.delete.granularity", "partition"),
    ("write.distribution-mode", "none"),
    ("write.distribution-mode", "range"),
    ("write.metadata.delete-after-commit.enabled", "true"),
    ("write.metadata.previous-versions-max", "3"),
    ("write.metadata.metrics.default", "full"),
    ("commit.manifest.min-count-to-merge", "2"),
    ("write.parquet.bloom-filter-enabled.column.id", "true"),
    ("write.object-storage.enabled", "true"),
)


def unused_name(pair: Pair, draw: Draw) -> str:
    names = {column.name.lower() for column in pair.columns}
    return draw.pick([name for name in COLUMN_NAMES if name.lower() not in names])


class AddColumn(Operation):
    def run(self, pair: Pair, draw: Draw) -> None:
        column = Column(unused_name(pair, draw), draw.pick(TYPES))
        first = draw.pick(["", "", " FIRST", f" AFTER {pair.by_role['id'].sql}"])
        pair.both(f"ALTER TABLE {{t}} ADD COLUMN {column.sql} {column.type}{first}")
        at = {" FIRST": 0, "": len(pair.columns)}.get(
            first, pair.columns.index(pair.by_role["id"]) + 1
        )
        pair.columns.insert(at, column)


class DropColumn(Operation):
    def ready(self, pair: Pair) -> bool:
        return any(not column.role for column in pair.columns)

    def run(self, pair: Pair, draw: Draw) -> None:
        column = draw.pick([column for column in pair.columns if not column.role])
        pair.both(f"ALTER TABLE {{t}} DROP COLUMN {column.sql}")
        pair.columns.remove(column)


class RenameColumn(Operation):
    def run(self, pair: Pair, draw: Draw) -> None:
        i = draw.pick(range(len(pair.columns)))
        name = unused_name(pair, draw)
        pair.both(f"ALTER TABLE {{t}} RENAME COLUMN {pair.columns[i].sql} TO {quoted(name)}")
        pair.columns[i] = pair.columns[i].renamed(name)


class WidenColumn(Operation):
    def ready(self, pair: Pair) -> bool:
        return any(column.type in WIDER for column in pair.columns)

    def run(self, pair: Pair, draw: Draw) -> None:
        column = draw.pick([column for column in pair.columns if column.type in WIDER])
        wide = WIDER[column.type]
        pair.both(f"ALTER TABLE {{t}} ALTER COLUMN {column.sql} TYPE {wide}")
        pair.columns[pair.columns.index(column)] = Column(column.name, wide, column.role)


class MoveColumn(Operation):
    def run(self, pair: Pair, draw: Draw) -> None:
        column = draw.pick(pair.columns)
        pair.both(f"ALTER TABLE {{t}} ALTER COLUMN {column.sql} FIRST")
        pair.columns.remove(column)
        pair.columns.insert(0, column)


class Comment(Operation):
    def run(self, pair: Pair, draw: Draw) -> None:
        column = draw.pick(pair.columns)
        pair.both(f"ALTER TABLE {{t}} ALTER COLUMN {column.sql} COMMENT 'it is {draw.row()}'")


# Of a column by its role, which has another name later.
FIELDS: dict[str, Callable[[Pair], str]] = {
    "part": lambda pair: pair.by_role["part"].sql,
    "bucket": lambda pair: f"bucket(4, {pair.by_role['id'].sql})",
    "truncate": lambda pair: f"truncate({pair.by_role['note'].sql}, 3)",
    "ids": lambda pair: f"truncate({pair.by_role['id'].sql}, 5)",
}


class AddPartitionField(Operation):
    def ready(self, pair: Pair) -> bool:
        return len(pair.partitioned) < len(FIELDS)

    def run(self, pair: Pair, draw: Draw) -> None:
        field = draw.pick([name for name in FIELDS if name not in pair.partitioned])
        pair.both(f"ALTER TABLE {{t}} ADD PARTITION FIELD {FIELDS[field](pair)}")
        pair.partitioned.append(field)


class DropPartitionField(Operation):
    def ready(self, pair: Pair) -> bool:
        return bool(pair.partitioned)

    def run(self, pair: Pair, draw: Draw) -> None:
        field = draw.pick(pair.partitioned)
        pair.both(f"ALTER TABLE {{t}} DROP PARTITION FIELD {FIELDS[field](pair)}")
        pair.partitioned.remove(field)


class ReplacePartitionField(Operation):
    def ready(self, pair: Pair) -> bool:
        return 0 < len(pair.partitioned) < len(FIELDS)

    def run(self, pair: Pair, draw: Draw) -> None:
        old = draw.pick(pair.partitioned)
        new = draw.pick([name for name in FIELDS if name not in pair.partitioned])
        fields = FIELDS[old](pair), FIELDS[new](pair)
        pair.both("ALTER TABLE {t} REPLACE PARTITION FIELD " + " WITH ".join(fields))
        pair.partitioned[pair.partitioned.index(old)] = new


class WriteOrder(Operation):
    def run(self, pair: Pair, draw: Draw) -> None:
        roles = pair.by_role
        order = draw.pick(
            [
                f"ORDERED BY {roles['id'].sql} DESC NULLS LAST",
                f"LOCALLY ORDERED BY {roles['part'].sql}, {roles['id'].sql}",
                f"DISTRIBUTED BY PARTITION LOCALLY ORDERED BY {roles['note'].sql}",
                "UNORDERED",
            ]
        )
        pair.both(f"ALTER TABLE {{t}} WRITE {order}")


class SetProperty(Operation):
    def run(self, pair: Pair, draw: Draw) -> None:
        key, value = draw.pick(PROPERTIES)
        if value == "orc" and pair.encrypted:  # refused there, as it should be
            value = "avro"
        if key == "write.metadata.previous-versions-max" and pair.phase is Phase.SWITCHED:
            return  # belongs to the purge
        pair.both(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('{key}'='{value}')")


class Upgrade(Operation):
    """To format version 3."""

    phases = frozenset({Phase.PLAIN, Phase.COPYING})

    def ready(self, pair: Pair) -> bool:
        return pair.version < 3

    def run(self, pair: Pair, draw: Draw) -> None:
        version = draw.pick([3, pair.version + 1])
        pair.both(f"ALTER TABLE {{t}} SET TBLPROPERTIES ('format-version'='{version}')")
        pair.version = version
        pair.portable = False  # rows get ids in the order of manifests, which is up to chance


class Replace(Operation):
    """CREATE OR REPLACE TABLE, and the same with AS SELECT. Branches and tags stay, columns that were added go."""

    def run(self, pair: Pair, draw: Draw) -> None:
        kept = [column for column in pair.columns if column.role]
        partition = draw.pick(["", f"PARTITIONED BY ({pair.by_role['part'].sql})"])
        keys = ("", f", 'encryption.key-id'='{pair.key}'" if pair.encrypted else "")
        properties = f"TBLPROPERTIES ('format-version'='{pair.version}'{{key}}) "
        head = "CREATE OR REPLACE TABLE {t} "
        if draw.flag():
            columns = ", ".join(f"{column.sql} {column.type}" for column in kept)
            pair.both(f"{head}({columns}) USING iceberg {partition} {properties}", key=keys)
        else:
            names = ", ".join(column.sql for column in kept)
            query = f"AS SELECT {names} FROM ({values(pair, draw.rows())})"
            pair.both(f"{head} USING iceberg {partition} {properties} {query}", key=keys)
        pair.columns[:] = kept
        pair.partitioned[:] = ["part"] if partition else []


EVOLUTION: list[type[Operation]] = [
    AddColumn,
    DropColumn,
    RenameColumn,
    WidenColumn,
    MoveColumn,
    Comment,
    AddPartitionField,
    DropPartitionField,
    ReplacePartitionField,
    WriteOrder,
    SetProperty,
    Upgrade,
    Replace,
]
