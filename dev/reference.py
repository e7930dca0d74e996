"""Gives the reference of Python the settings of KMS classes, which get into their docstrings at run time."""

from __future__ import annotations

import inspect
from typing import Any

from griffe import Class, Extension

from pyspark_iceberg_crypto.kms import BY_TYPE

TOLD = {f"{one.__module__}.{one.__qualname__}": inspect.getdoc(one) for one in BY_TYPE.values()}


class Settings(Extension):
    """Takes the docstring of a KMS class as Python itself shows it."""

    def on_class(self, *, cls: Class, **_: Any) -> None:
        """Change the docstring of a class that was loaded."""
        if cls.docstring is not None and (told := TOLD.get(cls.path)):
            cls.docstring.value = told
