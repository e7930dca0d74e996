"""Columns whose values hold a mark of their own, and the files that a history begins with."""

import base64
import decimal
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from twin.operations.base import Draw

ROWS = 12
NAMES = (
    "note",
    "a b",
    "größe 表 😀",
    "UPPER",
    "it's",
    'say "x"',
    "100%",
    "back`quote",
    "x.y",
    "a,b",
)

_TEXT = pa.string()
TYPES: dict[str, pa.DataType] = {
    "text": _TEXT,
    "long text": _TEXT,
    "word": _TEXT,  # few values: it gets a dictionary
    "bytes": pa.binary(),
    "number": pa.int64(),
    "decimal": pa.decimal128(38, 0),
    "struct": pa.struct({"a": _TEXT, "b": pa.int64()}),
    "list": pa.list_(_TEXT),
    "map": pa.map_(_TEXT, _TEXT),
    "deep": pa.list_(pa.struct({"a": _TEXT, "m": pa.map_(_TEXT, _TEXT)})),
}


@dataclass(frozen=True)
class Marked:
    """A column.

    Attributes:
        kind: of TYPES.
        key: the master key that its values are under; None: the column is plaintext.
        named: whether the settings name it: else it has the footer's key, or a uniform one.
    """

    name: str
    kind: str
    key: str | None
    named: bool
    mark: str

    @property
    def low(self) -> int:
        """Of its numbers, which differ in their last 16 bits."""
        return int(self.mark[-11:], 16) << 16

    def value(self, n: int) -> Any:
        text = f"{self.mark}-{n}"
        if n % 5 == 4:
            return None
        return {
            "text": text,
            "long text": text + "." * 3000 + text,
            "word": f"{self.mark}-{n % 2}",
            "bytes": text.encode(),
            "number": self.low + n,
            "decimal": decimal.Decimal(self.low + n),
            "struct": {"a": text, "b": self.low + n},
            "list": [text, None, text],
            "map": [(text, text)],
            "deep": [{"a": text, "m": [(text, text)]}, None],
        }[self.kind]

    def needles(self) -> list[bytes]:
        """What its values leave in bytes: as text, base64 and hex, as numbers, and in their decimal digits."""
        text = self.mark.encode()
        found = [text, text.hex().encode(), self.mark.encode("utf-16-le")]
        for shift in range(3):  # wherever in a base64 the text begins
            inner = base64.b64encode(b"\0" * shift + text)
            found.append(inner[(0, 2, 3)[shift] : len(text) * 4 // 3 // 4 * 4 - 4])
        if self.kind in ("number", "decimal", "struct"):
            number = self.low >> 16
            found += [number.to_bytes(6, "little"), number.to_bytes(6, "big")]
            pair = str(self.low), str(self.low + 0xFFFF)
            same = next(i for i, (a, b) in enumerate(zip(*pair, strict=True)) if a != b)
            found.append(pair[0][:same].encode())
        return found


@dataclass(frozen=True)
class Table:
    """What all writes of a history write."""

    columns: tuple[Marked, ...]
    source: Path

    @property
    def secret(self) -> list[Marked]:
        return [column for column in self.columns if column.key]

    @property
    def named(self) -> list[Marked]:
        return [column for column in self.columns if column.named]


def draw_columns(draw: Draw, *, orc: bool, uniform: bool, complete: bool) -> tuple[Marked, ...]:
    found: list[Marked] = []
    of_format = [name for name in NAMES if not orc or "`" not in name]  # Spark reads `back` in ORC
    names = {draw.pick(of_format) if draw.flag() else f"c{i}": None for i in range(3)}
    for i, name in enumerate(names):
        named = not uniform and (i == 0 or draw.flag())
        key = draw.pick(("k2", "k-128")) if named else "k1" if uniform or complete else None
        mark = f"Q{uuid.uuid4().hex[:20]}"
        found.append(Marked(name, draw.pick(list(TYPES)), key, named, mark))
    return tuple(found)


def write_source(columns: tuple[Marked, ...], folder: Path) -> Table:
    """Two plaintext files, which pyarrow writes where nobody searches; statements hold no value of them."""
    for batch in range(2):
        numbers = range(batch * ROWS, (batch + 1) * ROWS)
        arrays = [pa.array(numbers, pa.int64()), pa.array([f"p{n % 2 + batch}" for n in numbers])]
        arrays += [pa.array(map(column.value, numbers), TYPES[column.kind]) for column in columns]
        names = ["id", "part", *(column.name for column in columns)]
        (folder / f"batch{batch}").mkdir(parents=True)
        pq.write_table(pa.table(arrays, names), folder / f"batch{batch}" / "rows.parquet")
    return Table(columns, folder)
