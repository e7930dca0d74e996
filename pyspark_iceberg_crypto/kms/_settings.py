"""A KMS's settings: the fields of its dataclass, each with what there is to know of it, in one place."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

AnyPath = str | os.PathLike[str]


@dataclass(frozen=True)
class Setting:
    """What there is to know of a field: its metadata.

    Attributes:
        help: what it means, for the class's documentation and the command line.
        text: makes a property's value of the field's.
        read: makes the field's value of a property's.
        needs: another field without which it is no property.
        stock: Iceberg's own catalog property that means the same.
        implied: what a catalog without the property has, where that is not the field's default.
        local: it is no property: only this side uses it.
        compared: whether a catalog with another value has its keys elsewhere, or wraps them in another way.
    """

    help: str
    text: Callable[[Any], str] = str
    read: Callable[[str], Any] = str
    needs: str = ""
    stock: str = ""
    implied: str = ""
    local: bool = False
    compared: bool = True


def about(help: str, **more: Any) -> Mapping[str, Setting]:  # noqa: A002 (click's word for it)
    """Make a field's metadata, see `Setting`."""
    return {"setting": Setting(help, **more)}


def setting(help: str, default: Any = None, **more: Any) -> Any:  # noqa: A002
    """Make a field that has a default; a dict stands for a new one each time."""
    if default is dict:
        return field(default_factory=dict, metadata=about(help, **more))
    return field(default=default, metadata=about(help, **more))


def absolute(path: AnyPath) -> str:
    """Make a path absolute: Spark's processes have working directories of their own."""
    return str(Path(path).absolute())


def settings(kms: type[Any]) -> dict[str, tuple[Field[Any], Setting]]:
    """Return the fields of a KMS's class that are settings, by their names."""
    found = fields(kms) if is_dataclass(kms) else ()
    return {one.name: (one, one.metadata["setting"]) for one in found if one.metadata}


def properties(kms: Any, prefix: str) -> dict[str, str]:
    """Return a KMS's settings as catalog properties; those that are empty are left out."""
    found = {}
    for name, (_, known) in settings(type(kms)).items():
        value, key = getattr(kms, name), prefix + name.replace("_", "-")
        is_empty = value is None or value is False or value == ""
        if is_empty or known.local or (known.needs and not getattr(kms, known.needs)):
            continue
        if isinstance(value, Mapping):
            found.update({f"{key}.{part}": value[part] for part in sorted(value)})
        else:
            found[key] = "true" if value is True else known.text(value)
    return found


def as_text(default: Any) -> str | None:
    """Return a field's default as a catalog property would say it; None for a field without one."""
    if default is None or default is MISSING:
        return None
    return str(default).lower() if isinstance(default, bool) else str(default)
