"""Odd names, columns, and the rows that are written: each text holds the marker."""

from dataclasses import dataclass, replace

from harness.files import MARKER

from pyspark_iceberg_crypto._names import quoted

COLUMN_NAMES = (
    "note",
    "a b",
    "x.y",
    "back`quote",
    "größe 表 😀",
    "it's",
    'say "x"',
    "SELECT",
    "100%",
    "UPPER case",
    "semi;colon",
    "comma, space",
    "_row_id_",
    "t",
)
# Below a namespace of the test; {n} tells tables of one run apart.
TABLE_NAMES = ("t{n}", "my table {n}", "x.y{n}", "it's `{n}`", "表 😀{n}", "files.{n}", "UP-{n}")
PLAIN_TABLE_NAMES = ("t{n}", "table_{n}")  # what Hive's metastore takes
BRANCHES = ("b", "a-b", "ä 😀", "main2", "it.is")

_LITERALS = {
    "INT": "{n}",
    "BIGINT": "{n}",
    "FLOAT": "cast({n}.5 AS FLOAT)",
    "DOUBLE": "cast({n}.5 AS DOUBLE)",
    "BOOLEAN": "{n} % 2 = 0",
    "DECIMAL(10,2)": "cast({n}.25 AS DECIMAL(10,2))",
    "STRING": "'{marker}-{n}'",
    "DATE": "date_add(DATE '2026-01-01', {n})",
    "TIMESTAMP": "timestamp_seconds(1700000000 + {n})",
    "BINARY": "cast('{marker}-{n}' AS BINARY)",
    "ARRAY<STRING>": "array('{marker}-{n}', NULL)",
    "MAP<STRING, INT>": "map('{marker}-{n}', {n})",
    "STRUCT<a: INT, `b c`: STRING>": "named_struct('a', {n}, 'b c', '{marker}-{n}')",
}
TYPES = tuple(_LITERALS)
WIDER = {"INT": "BIGINT", "FLOAT": "DOUBLE", "DECIMAL(10,2)": "DECIMAL(12,2)"}
_LITERALS["DECIMAL(12,2)"] = "cast({n}.25 AS DECIMAL(12,2))"


def literal(text: str) -> str:
    """A string of SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


@dataclass(frozen=True)
class Column:
    """A column; `role` is "id", "note" or "part" for those that every table has."""

    name: str
    type: str
    role: str = ""

    @property
    def sql(self) -> str:
        return quoted(self.name)

    def renamed(self, name: str) -> "Column":
        return replace(self, name=name)

    def value(self, n: int) -> str:
        """What row n has there; some rows have no value in columns that were added."""
        if self.role == "part":
            return f"'{MARKER} p/{n % 3}'"
        if not self.role and n % 5 == 4:
            return f"cast(NULL AS {self.type})"
        return _LITERALS[self.type].format(n=n, marker=MARKER)


def row(columns: list[Column], n: int) -> str:
    return "(" + ", ".join(column.value(n) for column in columns) + ")"
