"""Client libraries of the KMSs: loaded when first needed, and named when they are missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pyspark_iceberg_crypto.errors import ConfigurationError

READER = "reader"  # the extra that brings what every KMS needs to wrap and unwrap in Python


class MissingExtraError(ConfigurationError):
    """The client library of a KMS is not installed."""


def load(module: str, extra: str) -> Any:
    """Import a client library.

    Args:
        module: what to import, such as "hvac" or "google.cloud.kms_v1".
        extra: the extra of this package that brings it.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        if missing != module and not module.startswith(f"{missing}."):
            raise  # it is installed but lacks a dependency, which its own error names
        raise MissingExtraError(
            f"the Python module {module!r} is not installed",
            f"pip install 'pyspark-iceberg-crypto[{extra}]'",
        ) from error
