"""Streams into both tables, which end, begin again, and forget that they had committed."""

from pathlib import Path

from harness.files import MARKER, change

from twin.operations.base import Draw, Operation
from twin.tables import Pair, Side


def source(pair: Pair) -> str:
    return f"{pair.twin.catalog}.{pair.twin.namespace}.source_{pair.folder.name}"


def checkpoint(pair: Pair, i: int) -> Path:
    return pair.folder / f"checkpoint-{('twin', 'ours')[i]}"


def stream_into(pair: Pair, side: Side, i: int) -> None:
    """What is new in the source is appended by a query that ends when it has it all."""
    roles = {column.sql: column.role or f"cast(NULL AS {column.type})" for column in pair.columns}
    columns = [f"{expression} AS {name}" for name, expression in roles.items()]
    text = (
        f"spark.readStream.table({source(pair)!r}).selectExpr(*{columns!r}).writeStream.option('checkpointLocation', "
        f"{str(checkpoint(pair, i))!r}).option('fanout-enabled', "
        f"'true').trigger(availableNow=True).toTable({side.table!r}).awaitTermination()"
    )
    pair.python(side, text)
    side.refresh()


class Stream(Operation):
    """New rows; a query that ended goes on in its checkpoint."""

    def run(self, pair: Pair, draw: Draw) -> None:
        if not checkpoint(pair, 0).exists():
            pair.twin.sql(
                f"CREATE TABLE {source(pair)} (id INT, note STRING, part STRING) USING iceberg"
            )
        rows = ", ".join(f"({n}, '{MARKER}-{n}', '{MARKER} s')" for n in draw.rows())
        statement = f"INSERT INTO {source(pair)} SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}"
        pair.script.append(f"spark.sql({statement!r})")
        pair.twin.sql(statement)
        pair.each(lambda side, i: stream_into(pair, side, i))


class StreamAgain(Operation):
    """The query died after the table's commit and before its own: it writes the batch again, and no row twice.

    Iceberg then leaves the files that were written again, and were not committed.
    """

    def ready(self, pair: Pair) -> bool:
        return all((checkpoint(pair, i) / "commits").exists() for i in (0, 1))

    def run(self, pair: Pair, draw: Draw) -> None:
        for i in (0, 1):
            commits = checkpoint(pair, i) / "commits"
            last = max(commits.glob("[0-9]*"), key=lambda path: int(path.name), default=None)
            if last is not None:
                pair.script.append(f"Path({str(last)!r}).unlink()")
                change(last, None)
        pair.each(lambda side, i: stream_into(pair, side, i))
        pair.orphaned |= not pair.encrypted


STREAMS: list[type[Operation]] = [Stream, StreamAgain]
