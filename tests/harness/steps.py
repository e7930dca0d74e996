"""What a program shares that the tests run in a process of its own: harness.programs.seen_by starts it."""

import json
import sys
import traceback
from collections.abc import Callable, Iterable
from typing import Any

from pyspark.sql import SparkSession

SEEN = "SEEN "


def given() -> tuple[dict[str, Any], "SparkSession.Builder"]:
    """What it was started with, and a session's builder with the `conf` among that."""
    settings = json.load(sys.stdin)
    builder = SparkSession.builder.appName("iceberg-crypto tests")
    for key, value in settings["conf"].items():
        builder = builder.config(key, value)
    return settings, builder


def seen(steps: Iterable[Callable[[], Any]], *, go_on: bool = True) -> dict[str, Any]:
    """Each step's outcome by its name: what it saw, or its error, after which others go on or do not."""
    found: dict[str, Any] = {}
    for step in steps:
        try:
            found[step.__name__] = step()
        except Exception:  # noqa: BLE001 (told by the step's test)
            found[step.__name__] = {"error": traceback.format_exc()}
            if not go_on:
                break
    return found


def tell(found: Any) -> None:
    """To the test that started it."""
    sys.stdout.write(SEEN + json.dumps(found, default=str) + "\n")
