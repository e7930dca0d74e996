"""Writes the tables of docs/python.md, section "Who can read what", from the engines of `iceberg-crypto readers`.

Usage: python dev/readers.py. A test compares the page with what this would write.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pyspark_iceberg_crypto.reader._engines import BITS, CATALOGS, ENGINES, Engine, Feature

PAGE = Path(__file__).resolve().parents[1] / "docs" / "python.md"
BEGIN, END = "<!-- written by dev/readers.py: begin -->", "<!-- dev/readers.py: end -->"
HEAD = ("engine", "version", "catalogs", "keys, bits", "Parquet", "Avro", "deletes", "statistics")
DELETES = {
    "vectors": Feature.DELETION_VECTORS,
    "position": Feature.POSITION_DELETES,
    "equality": Feature.EQUALITY_DELETES,
}
IN_THE_TABLE = (Feature.ORC, Feature.STATISTICS)  # or in a sentence of the page


def page(text: str) -> str:
    """Return the page with its tables renewed."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{written()}\n\n{END}{rest.partition(END)[2]}"


def written() -> str:
    """Return the table, and what stands below it."""
    rows = [(*HEAD, "known from"), *map(_row, ENGINES)]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    table = "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])
    return "\n\n".join([table, "\n".join(_notes())])


def _row(engine: Engine) -> tuple[str, ...]:
    closed = Feature.ENCRYPTED in engine.limits
    told = [
        "all" if engine.catalogs == CATALOGS else ", ".join(engine.catalogs),
        _read(engine, {str(bits): one for bits, one in BITS.items()}),
        _cell(engine, Feature.PARQUET),
        _cell(engine, Feature.AVRO),
        _read(engine, DELETES),
        _cell(engine, Feature.STATISTICS),
    ]
    cells = ["none", *["no"] * 5] if closed else told
    return (engine.name, engine.version, *cells, engine.evidence)


def _cell(engine: Engine, feature: Feature) -> str:
    limit = engine.limits.get(feature)
    return "yes" if limit is None else {True: "ignored", False: "no", None: "?"}[limit.opens]


def _read(engine: Engine, features: dict[str, Feature]) -> str:
    """List what is read; what is not known has a question mark."""
    cells = {name: _cell(engine, one) for name, one in features.items()}
    found = [name + ("?" if cell == "?" else "") for name, cell in cells.items() if cell != "no"]
    return ", ".join(found) or "no"


def _notes() -> Iterator[str]:
    """Say why not, a reason a line."""
    found: dict[str, list[str]] = {}
    for engine in ENGINES:
        limits = [limit for one, limit in engine.limits.items() if one not in IN_THE_TABLE]
        for limit in [*limits, *filter(None, [engine.kms_limit])]:
            told = limit.reason + (f", unless `{limit.unless}`" if limit.unless else "")
            names = found.setdefault(told, []) if limit.opens is not None else []
            if engine.name not in names:
                names.append(engine.name)
    for reason, names in found.items():
        yield f"- {', '.join(names)}: {reason}."


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
