"""What the errors of Google's client library mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    ConfigurationError,
    IcebergCryptoError,
    KeyDisabledError,
    KeyNotFoundError,
    KmsUnavailableError,
    LoginFailedError,
    first_line,
)
from pyspark_iceberg_crypto.kms._errors import ErrorTable, Rule, http_status


def _read(error: Any) -> tuple[Sequence[str], str]:
    """Read the status of a google.rpc.Status: the library's own types tell only HTTP's codes apart."""
    module = type(error).__module__
    if module == "google.api_core.exceptions" and hasattr(error, "code"):
        try:
            status = str(error.response.json()["error"]["status"])
        except (AttributeError, KeyError, TypeError, ValueError):
            status = ""
        said = str(error.message)
        # A failing external key manager has the same status.
        is_disabled = status == "FAILED_PRECONDITION" and any(words in said for words in _DISABLED)
        codes = (*(["disabled"] if is_disabled else []), status)
        return (*codes, http_status(int(error.code or 500))), said
    if module == "google.auth.exceptions" and type(error).__name__ not in _FIRST_LINE:
        # OAuth's error, which the library keeps first; the rest is the whole answer.
        return (), str(error.args[0]) if error.args else type(error).__name__
    return (), first_line(error)


_DISABLED = ("is not enabled", "has no primary version")
_FIRST_LINE = ("TransportError", "DefaultCredentialsError")
_LOGIN_HINT = "log in again or replace the credentials file; check this host's clock too"
ERRORS = ErrorTable(
    [
        Rule(
            "google.auth.exceptions.TransportError google.api_core.exceptions.RetryError "
            "requests.exceptions.RequestException",
            KmsUnavailableError,
            "check the address and the network",
            "{kms} cannot be reached for '{subject}': {said}",
        ),
        Rule(
            "google.auth.exceptions.DefaultCredentialsError",
            LoginFailedError,
            "run `gcloud auth application-default login`, or give credentials_file",
            "{kms}: there are no application default credentials",
        ),
        Rule(
            "google.auth.exceptions.GoogleAuthError",
            LoginFailedError,
            _LOGIN_HINT,
            "{kms}: Google refuses the login for '{subject}': {said}",
        ),
        Rule(
            "NOT_FOUND",
            KeyNotFoundError,
            "check project, location, key ring and key",
            "{kms} has no '{subject}': {said}",
        ),
        Rule(
            "ALREADY_EXISTS",
            ConfigurationError,
            "choose another name; keys are never overwritten",
            "{kms} already has '{subject}': {said}",
        ),
        Rule(
            "UNAUTHENTICATED",
            LoginFailedError,
            _LOGIN_HINT,
            "{kms} refuses the login for '{subject}': {said}",
        ),
        Rule(
            "PERMISSION_DENIED",
            AccessDeniedError,
            "ask for the permission that it names; a role that has all is roles/cloudkms.admin",
            "{kms} does not let this login use '{subject}': {said}",
        ),
        Rule(
            "disabled",
            KeyDisabledError,
            "enable or restore the key version",
            "{kms} cannot use '{subject}': {said}",
        ),
        Rule(
            "FAILED_PRECONDITION",
            IcebergCryptoError,
            "do what the message says; if it is an external key (Cloud EKM), check its key manager and the connection "
            "to it",
            "{kms} cannot use '{subject}': {said}",
        ),
        Rule(
            "RESOURCE_EXHAUSTED 429 5xx",
            KmsUnavailableError,
            problem="{kms} is not available for '{subject}': {said}",
        ),
        Rule(
            "google.api_core.exceptions.GoogleAPICallError",
            ConfigurationError,
            "check the names and the endpoint",
            "{kms} refuses the request for '{subject}': {said}",
        ),
    ],
    _read,
)
FILE_ERRORS = ErrorTable(
    [
        Rule(
            "google.auth.exceptions.DefaultCredentialsError",
            ConfigurationError,
            "give a JSON file that gcloud wrote, as credentials_file",
        ),
    ],
    _read,
)
