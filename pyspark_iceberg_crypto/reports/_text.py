"""How numbers, advice and texts of strangers are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar

# How advice is given here: Java and Python name procedures; the command line names its commands.
SPEECH: ContextVar[Callable[[str], str]] = ContextVar("speech", default=str)


def size(count: int) -> str:
    """Say a number of bytes the way people read it."""
    amount = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000:
            return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def plural(number: int, thing: str) -> str:
    """Say how many of a thing there are."""
    if number == 1:
        return f"{number:,} {thing}"
    return f"{number:,} {thing}{'es' if thing.endswith('ch') else 's'}"


def agreeing(number: int, one: str, many: str) -> str:
    """Return the form of a word that goes with so many things."""
    return one if number == 1 else many


def listed(names: Sequence[str], most: int = 20) -> str:
    """List names, the first of them if there are many."""
    left = len(names) - most
    last = f"{left:,} more" if left > 0 else "".join(names[-1:])
    first = names[:most] if left > 0 else names[:-1]
    return f"{', '.join(first)} and {last}" if first else last


def moment(text: str) -> str:
    """Say a time in ISO 8601 and UTC to the second."""
    return f"{text[:19].replace('T', ' ')} UTC"


def advice(text: object) -> str:
    """Say what to do in the words of where it is read, so that nothing in it acts on the reader."""
    return visible(SPEECH.get()("" if text is None else str(text)))


def visible(text: object) -> str:
    """Return a text in which nothing acts on the reader: no control, escape, line break or change of direction.

    Names of files and tables are whatever someone called them, and a terminal obeys what is in them.
    """
    shown = "" if text is None else str(text)
    if shown.isprintable():
        return shown
    return "".join(one if one.isprintable() else _escaped(one) for one in shown)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode()
