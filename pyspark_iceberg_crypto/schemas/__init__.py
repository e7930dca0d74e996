"""The published JSON schemas (2020-12): of reports, and of what each command prints with --output json."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

OUTPUT = "output-1.json"


def read(name: str) -> dict[str, Any]:
    """Read a schema of this folder."""
    found: dict[str, Any] = json.loads(files(__name__).joinpath(name).read_text("utf-8"))
    return found


def report_schema() -> dict[str, Any]:
    """Return the JSON schema (2020-12) of reports."""
    return read("verify-report-1.json")


@cache
def _output() -> dict[str, Any]:
    found, report = read(OUTPUT), report_schema()
    found["$defs"]["verify_report"] = {key: report[key] for key in ("$id", "oneOf", "$defs")}
    return found


def output_commands() -> list[str]:
    """Return the commands that have --output json."""
    return sorted(_output()["commands"])


def output_schema(command: str) -> dict[str, Any]:
    """Return the schema of what a command prints with --output json, its errors included."""
    found = _output()
    return {
        "$schema": found["$schema"],
        "$id": f"urn:iceberg-crypto:output:{command.replace(' ', '-')}:1",
        "title": f"iceberg-crypto {command} --output json",
        **found["commands"][command],
        "$defs": found["$defs"],
    }
