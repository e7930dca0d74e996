"""Spark's statements that write rows, and equality deletes as Flink writes them."""

from twin.operations.base import Draw, Operation, target, writer
from twin.tables import Pair
from twin.values import row


def values(pair: Pair, ns: list[int]) -> str:
    names = ", ".join(column.sql for column in pair.columns)
    rows = ", ".join(row(pair.columns, n) for n in ns)
    return f"SELECT /*+ COALESCE(1) */ * FROM VALUES {rows} AS v({names})"


def condition(pair: Pair, draw: Draw) -> str:
    """Of rows to delete or to change."""
    roles = pair.by_role
    i, part = roles["id"].sql, roles["part"].sql
    n = draw.row()
    return draw.pick(
        [
            f"{i} = {n}",
            f"{i} % 3 = {n % 3}",
            f"{i} < {n}",
            f"{part} = {roles['part'].value(n)}",
            f"{i} IN (SELECT max({i}) FROM {{t}})",
            f"{i} IS NULL",
            "true",
        ]
    )


class Insert(Operation):
    def run(self, pair: Pair, draw: Draw) -> None:
        to, through = target(pair, draw), writer(pair, draw)
        pair.both(f"INSERT INTO {to} {values(pair, draw.rows())}", catalog=through)


class InsertMany(Operation):
    """Several files in one commit."""

    def run(self, pair: Pair, draw: Draw) -> None:
        query = values(pair, draw.rows()).replace("COALESCE(1)", "REPARTITION(3)")
        pair.both(f"INSERT INTO {{t}} {query}")


class Overwrite(Operation):
    def run(self, pair: Pair, draw: Draw) -> None:
        mode = draw.pick(["dynamic", "static"])
        statement = f"INSERT OVERWRITE {target(pair, draw)} {values(pair, draw.rows())}"
        with pair.configured("spark.sql.sources.partitionOverwriteMode", mode):
            pair.both(statement)


class Delete(Operation):
    def run(self, pair: Pair, draw: Draw) -> None:
        to, through = target(pair, draw), writer(pair, draw)
        pair.both(f"DELETE FROM {to} WHERE {condition(pair, draw)}", catalog=through)


class Truncate(Operation):
    def run(self, pair: Pair, draw: Draw) -> None:
        pair.both("TRUNCATE TABLE {t}")


class Update(Operation):
    def run(self, pair: Pair, draw: Draw) -> None:
        column = draw.pick(pair.columns)
        pair.both(
            f"UPDATE {target(pair, draw)} SET {column.sql} = {column.value(draw.row())} WHERE {condition(pair, draw)}",
            catalog=writer(pair, draw),
        )


class Merge(Operation):
    """With any of its clauses."""

    def run(self, pair: Pair, draw: Draw) -> None:
        i, note = pair.by_role["id"].sql, pair.by_role["note"]
        clauses = [
            f"WHEN MATCHED AND t.{i} % 4 = 1 THEN DELETE" if draw.flag() else "",
            "WHEN MATCHED THEN UPDATE SET *" if draw.flag() else "",
            "WHEN NOT MATCHED THEN INSERT *" if draw.flag() else "",
            f"WHEN NOT MATCHED BY SOURCE AND t.{i} % 4 = 2 THEN DELETE" if draw.flag() else "",
            f"WHEN NOT MATCHED BY SOURCE AND t.{i} % 4 = 3 THEN UPDATE SET {note.sql} = {note.value(77)}"
            if draw.flag()
            else "",
        ]
        if not any(clauses):
            clauses[1] = "WHEN MATCHED THEN UPDATE SET *"
        rows = values(pair, sorted(set(draw.rows())))
        pair.both(
            f"MERGE INTO {target(pair, draw)} t USING ({rows}) s ON t.{i} = s.{i} "
            + " ".join(filter(None, clauses)),
            catalog=writer(pair, draw),
        )


class UpsertAsFlink(Operation):
    """Equality deletes and new rows in one commit, of Iceberg's Java API. Where there is no partition they apply."""

    def ready(self, pair: Pair) -> bool:
        return pair.version > 1 and not pair.partitioned

    def run(self, pair: Pair, draw: Draw) -> None:
        roles = pair.by_role
        deleted = sorted(set(draw.rows()))
        written = [{roles["id"].name: n, roles["note"].name: text(pair, n)} for n in draw.rows()]
        branch = draw.pick(["main", "main", *pair.branches, "main"])
        call = (
            f"upsert_as_flink(spark, {{t}}, {roles['id'].name!r}, {deleted}, "
            f"{written if draw.flag() else []}, {branch!r})"
        )
        pair.each(lambda side, _: pair.python(side, call))


def text(pair: Pair, n: int) -> str:
    return pair.by_role["note"].value(n).strip("'")


DML: list[type[Operation]] = [
    Insert,
    InsertMany,
    Overwrite,
    Delete,
    Truncate,
    Update,
    Merge,
    UpsertAsFlink,
]
