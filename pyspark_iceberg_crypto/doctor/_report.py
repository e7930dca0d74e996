"""What stands between a session and its master keys, as data and as text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from pyspark_iceberg_crypto.doctor._tables import DoctorTablesReport
from pyspark_iceberg_crypto.reports import _terminal
from pyspark_iceberg_crypto.reports._data import OK, PROBLEM, UNCHECKED
from pyspark_iceberg_crypto.reports._layout import Indented, Prose, hint
from pyspark_iceberg_crypto.reports._report import Report
from pyspark_iceberg_crypto.reports._text import advice, visible


class Status(str, Enum):
    """How a step went."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    NOT_REACHED = "not reached"


@dataclass(frozen=True)
class DoctorStep:
    """One step from a session to its master keys.

    Attributes:
        name: what was checked.
        status: how it went: "ok", "warning", "failed" or "not reached".
        detail: what was found, or what is wrong.
        hint: how to fix it; empty when there is nothing to fix.
        key_id: the master key that was tried; None where it is not about one key.
    """

    name: str
    status: Status
    detail: str = ""
    hint: str = ""
    key_id: str | None = None


@dataclass(frozen=True)
class DoctorReport(Report):
    """What was found on the way to the master keys, and on tables. It prints as text.

    Attributes:
        catalog: the catalog that was examined.
        steps: each step, in order.
        tables: what was found on tables; None when none were asked for.
    """

    catalog: str
    steps: list[DoctorStep]
    tables: DoctorTablesReport | None = None

    @property
    def ok(self) -> bool:
        """Whether everything was examined, no step failed, a key made the round trip, and no table needs repair."""
        return self.exit_code == OK

    @property
    def exit_code(self) -> int:
        """0 it is ok, 1 a step failed or a table needs repair, 2 something could not be examined."""
        known = {step.status for step in self.steps}
        codes = {OK if self.tables is None else self.tables.exit_code}
        if Status.FAILED in known or PROBLEM in codes:
            return PROBLEM
        return UNCHECKED if Status.NOT_REACHED in known or UNCHECKED in codes else OK

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        steps = [{**asdict(step), "status": step.status.value} for step in self.steps]
        told = {"ok": self.ok, "catalog": self.catalog, "steps": steps}
        return told if self.tables is None else {**told, "tables": self.tables.to_dict()}


_MARKS = {
    Status.OK: ("✓", "green"),
    Status.WARNING: ("!", "yellow"),
    Status.FAILED: ("✗", "red"),
    Status.NOT_REACHED: ("-", "dim"),
}


@_terminal.layout.register
def _(found: DoctorReport) -> RenderableType:
    parts: list[RenderableType] = []
    key_id = None
    for step in found.steps:
        if step.key_id != key_id:
            key_id = step.key_id
            parts.append(Text.assemble("\nmaster key ", (visible(key_id), "bold")))
        shown = _step(step)
        parts.append(shown if key_id is None else Indented(shown))
    parts += ["", _verdict(found)]
    if found.tables is not None:
        parts += ["", _terminal.layout(found.tables)]
    return Group(*parts)


def _step(step: DoctorStep) -> Prose:
    mark, style = _MARKS[step.status]
    is_told = step.detail or step.status is Status.OK
    said = ": ".join(filter(None, (step.name, step.detail if is_told else step.status.value)))
    told = Text.assemble((f"{mark} ", style), advice(said))
    if step.hint:
        told.append("\n  ").append_text(hint(step.hint))
    return Prose(told, 4)


def _verdict(found: DoctorReport) -> Text:
    failed = [step for step in found.steps if step.status is Status.FAILED]
    if failed:
        names = ", ".join(dict.fromkeys(map(_place, failed)))
        return Text(f"✗ {found.catalog} cannot use its master keys: {names} failed", "bold red")
    if any(step.status is Status.NOT_REACHED for step in found.steps):
        return Text(f"- {found.catalog} has no problem so far; not everything was checked", "bold")
    keys = dict.fromkeys(step.key_id for step in found.steps if step.key_id is not None)
    names = ", ".join(map(repr, keys))
    return Text(f"✓ {found.catalog} can use {names}", "bold green")


def _place(step: DoctorStep) -> str:
    return f"{step.name} of {step.key_id!r}" if step.key_id else step.name
