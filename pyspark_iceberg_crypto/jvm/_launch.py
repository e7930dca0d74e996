"""What Spark's JVM will be started with, and how to add to it without losing what others set.

A setting can stand in the session builder, in PYSPARK_SUBMIT_ARGS (as ``--packages``, ``--jars`` or
``--conf``) and in spark-defaults.conf. For jars, Spark lets the arguments win over the builder, and both
over the file. Here those of the builder and the arguments are combined; the file's count, as for Spark,
only if neither names any.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SUBMIT_ARGS = "PYSPARK_SUBMIT_ARGS"
_FLAGS = {"--jars": "spark.jars", "--packages": "spark.jars.packages"}
_CONF_FLAGS = {"--conf", "-c"}


def split(value: str | None) -> list[str]:
    """Split a comma-separated setting, dropping what is empty."""
    return [item.strip() for item in (value or "").split(",") if item.strip()]


def join(*lists: list[str]) -> str:
    """Join lists into a comma-separated setting; each item once, in order of appearance."""
    return ",".join(dict.fromkeys(item for items in lists for item in items))


def jar_setting(options: dict[str, Any], key: str) -> list[str]:
    """Return what the user set for ``spark.jars`` or ``spark.jars.packages``, wherever that was."""
    chosen = split(join(split(_in_arguments(key)), split(options.get(key))))
    return chosen or split(_in_defaults(key))


def set_jars(options: dict[str, Any], key: str, items: list[str]) -> None:
    """Set ``spark.jars`` or ``spark.jars.packages`` where Spark will look first.

    ``spark.jars`` moves from the builder to the arguments. Spark adds the jars of packages to it for the executors,
    and PySpark would put the builder's value, which lacks them, in its place.
    """
    options[key] = join(items)
    if key == "spark.jars" or _in_arguments(key) is not None:
        kept = [word for name, words in _arguments() if name != key for word in words]
        flag = next(flag for flag, name in _FLAGS.items() if name == key)
        os.environ[SUBMIT_ARGS] = shlex.join([flag, options[key], *kept])
    if key == "spark.jars":
        del options[key]


def session_setting(options: dict[str, Any], key: str) -> str | None:
    """Return what the user set for a SQL setting, where the builder wins."""
    for value in (options.get(key), _in_arguments(key), _in_defaults(key)):
        if value:
            return str(value)
    return None


def spark_home_jars() -> list[str]:
    """Return the names of the jars that Spark's own installation holds."""
    return [path.name for path in (_spark_home() / "jars").glob("*.jar")]


def _spark_home() -> Path:
    from pyspark.find_spark_home import _find_spark_home

    return Path(str(_find_spark_home()))  # type: ignore[no-untyped-call]


def _arguments() -> Iterator[tuple[str, list[str]]]:
    """Go through PYSPARK_SUBMIT_ARGS: the setting that words stand for ("" for others), the words."""
    words = iter(shlex.split(os.environ.get(SUBMIT_ARGS, "pyspark-shell")))
    for word in words:
        flag, equals, value = word.partition("=")
        taken = [word]
        if flag in _FLAGS or flag in _CONF_FLAGS or flag == "--properties-file":
            if not equals:
                value = next(words, "")
                taken.append(value)
            name = value.partition("=")[0] if flag in _CONF_FLAGS else _FLAGS.get(flag, flag)
            yield name, taken
        else:
            yield "", taken


def _in_arguments(key: str) -> str | None:
    """Read a setting from PYSPARK_SUBMIT_ARGS; ``--packages`` and ``--jars`` win over ``--conf``."""
    by_conf, by_flag = None, None
    for name, words in _arguments():
        if name != key:
            continue
        flag, equals, value = words[0].partition("=")
        value = value if equals else words[-1]
        if flag in _CONF_FLAGS:
            by_conf = value.partition("=")[2]
        else:
            by_flag = value
    return by_conf if by_flag is None else by_flag


def _in_defaults(key: str) -> str | None:
    """Read a setting from the properties file that Spark will read."""
    named = _in_arguments("--properties-file")
    folder = os.environ.get("SPARK_CONF_DIR")
    default = (Path(folder) if folder else _spark_home() / "conf") / "spark-defaults.conf"
    return _properties(Path(named) if named else default).get(key)


def _properties(path: Path) -> dict[str, str]:
    """Read a Java properties file, as far as spark-defaults.conf files use the format."""
    if not path.is_file():
        return {}
    text = path.read_text(encoding="utf-8", errors="replace")
    lines = re.sub(r"\\\n[ \t]*", "", text).splitlines()
    found = {}
    for line in lines:
        match = re.match(r"\s*(?![#!])([^\s=:]+)(?:\s*[=:]\s*|\s+|$)(.*)", line)
        if match:
            found[match[1]] = match[2].strip()
    return found
