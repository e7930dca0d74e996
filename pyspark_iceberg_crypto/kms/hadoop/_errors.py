"""What Hadoop KMS's answers mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    ConfigurationError,
    KmsUnavailableError,
    LoginFailedError,
    NotSupportedError,
)
from pyspark_iceberg_crypto.kms._errors import ErrorTable, Rule, http_status

FORGET = "_invalidatecache"


class Refused(Exception):  # noqa: N818 (not one of our errors: the table turns it into one)
    """An answer that is no success."""

    def __init__(self, status: int, answer: Any) -> None:
        told = answer.get("RemoteException", {}) if isinstance(answer, dict) else {}
        self.name = str(told.get("exception", ""))
        self.said = " ".join(str(told.get("message", f"HTTP {status}")).split())[:300]
        self.status = status
        super().__init__(self.said)


def _read(error: Exception) -> tuple[Sequence[str], str]:
    if not isinstance(error, Refused):
        return (), str(error)
    found = {
        "untold": f"/{FORGET}",
        "taken": "already exists",
        "AuthorizationException": "AuthorizationException:",
    }
    named = [code for code, words in found.items() if words in error.said]
    status = 404 if error.status < 400 else error.status  # a redirect
    return [*named, error.name, http_status(status)], error.said


ERRORS = ErrorTable(
    [
        # It took the request for the roll of another key.
        Rule(
            "untold",
            NotSupportedError,
            "do not rotate it again. That server wraps with the older version until it is restarted, or for as long as "
            "its hadoop.security.kms.encrypted.key.cache.expiry says: 12 hours, where nobody set it",
            "{what}: it has no such request, as Ranger KMS 2.0 has none: {said}",
        ),
        Rule(
            "taken",
            ConfigurationError,
            "choose another name; describe_key shows what this one is",
            "{what}: it already has one",
        ),
        Rule(
            "AuthorizationException",
            AccessDeniedError,
            "allow it in kms-acls.xml (hadoop.kms.acl.* and key.acl.*), or by a policy of Ranger's",
            "{what}: user '{user}' may not: {said}",
        ),
        Rule(
            "401 403",
            LoginFailedError,
            "this class logs in by a user's name only; where the KMS asks for Kerberos, manage keys with "
            "Hadoop's own command after kinit: hadoop key create NAME -size 256 -provider {uri}",
            "{what}: user '{user}' is refused: {said}",
        ),
        Rule("400", ConfigurationError, "check the key's name and its length"),
        Rule(
            "404 405 NotFoundException LookupError TypeError ValueError",
            ConfigurationError,
            "check the address and its path, /kms: is a proxy or another server there?",
            "{what}: it does not answer as a Hadoop KMS does: {said}",
        ),
        Rule("429 5xx", KmsUnavailableError, "look at the KMS's log, and try again"),
        Rule(
            "ssl.SSLError",
            ConfigurationError,
            "check the address, and give the authority that signed it as ca_file",
            "{what}: its TLS certificate is not trusted: {said}",
        ),
        Rule(
            "FileNotFoundError PermissionError",
            ConfigurationError,
            "check that ca_file is a PEM file that may be read",
        ),
        Rule(
            "OSError http.client.HTTPException",
            KmsUnavailableError,
            "check the address and that the KMS runs",
            "{what}: it cannot be reached: {said}",
        ),
    ],
    _read,
)
