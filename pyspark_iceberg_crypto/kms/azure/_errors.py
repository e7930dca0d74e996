"""What the errors of Azure's client libraries mean."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    ConfigurationError,
    KeyDisabledError,
    KeyNotFoundError,
    KmsUnavailableError,
    LoginFailedError,
    NotSupportedError,
    first_line,
)
from pyspark_iceberg_crypto.kms._errors import ErrorTable, Rule, http_status, shows_header

_UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"
_NO_NETWORK = re.compile(
    r"Failed to establish|Connection aborted|Max retries|timed out|HTTP Error: (429|5\d\d)|resolve"
)


def _read(error: Any) -> tuple[Sequence[str], str]:
    """Tell errors apart that the libraries have one class for."""
    if _UNTRUSTED in str(error):
        return ["untrusted"], ""
    if type(error).__name__ == "ClientAuthenticationError":
        reason = _login_reason(error)
        return ["login"] if _NO_NETWORK.search(reason) else [], reason
    if not hasattr(error, "status_code"):
        return [], first_line(error)
    if error.status_code is None:
        return ["broken"], first_line(error)
    code, inner, message = _told(error)
    said = f"HTTP {error.status_code} {inner or code} {message}".rstrip()
    return [inner, http_status(error.status_code)], said


ERRORS = ErrorTable(
    [
        Rule(
            "untrusted",
            ConfigurationError,
            "check the address; REQUESTS_CA_BUNDLE names a file of certificates to trust",
            "{what}: a TLS certificate is not trusted, the vault's or the login service's",
        ),
        Rule(
            "login",
            KmsUnavailableError,
            "check the network and AZURE_AUTHORITY_HOST, or try again later",
            "{what}: the login service cannot be reached or is busy: {said}",
        ),
        Rule(
            "azure.core.exceptions.ClientAuthenticationError",
            LoginFailedError,
            "log in (az login), or check AZURE_TENANT_ID, AZURE_CLIENT_ID and the secret or certificate, and"
            " this host's clock",
            "{what}: login refused: {said}",
        ),
        Rule(
            "azure.core.exceptions.ServiceRequestError azure.core.exceptions.ServiceResponseError",
            KmsUnavailableError,
            "check the address and the network",
            "{what}: it cannot be reached: {said}",
        ),
        Rule(
            "broken",
            KmsUnavailableError,
            "check the network and any proxy on the way, or try again",
            "{what}: its answer cannot be read: {said}",
        ),
        Rule(
            "KeyDisabled KeyExpired KeyNotYetValid",
            KeyDisabledError,
            "az keyvault key set-attributes --enabled true ...",
        ),
        Rule(
            "ForbiddenByFirewall ForbiddenByConnection ForbiddenByNsp",
            AccessDeniedError,
            "allow this host's network in the vault's firewall",
        ),
        Rule(
            "KeyOperationForbidden",
            NotSupportedError,
            "az keyvault key set-attributes --ops wrapKey unwrapKey ...",
        ),
        Rule(
            "403",
            AccessDeniedError,
            "this login may not do that: managing keys takes the role 'Key Vault Crypto Officer' (Managed HSM:"
            " 'Managed HSM Crypto User')",
        ),
        Rule(
            "404",
            KeyNotFoundError,
            "check the name; a deleted key: az keyvault key recover --name ...",
        ),
        Rule(
            "409",
            ConfigurationError,
            "choose another name, or recover the key: az keyvault key recover --name ...",
        ),
        Rule("429 5xx", KmsUnavailableError),
        Rule(
            "azure.core.exceptions.HttpResponseError",
            ConfigurationError,
            "check the arguments and the vault",
        ),
    ],
    _read,
)


@contextmanager
def headers_unlogged() -> Iterator[None]:
    """Drop the libraries' log records that show a header: their warnings contain whole errors.

    Enter it once the clients exist: a filter applies to one logger, and creating clients loads modules that have
    loggers of their own.
    """

    def unshown(record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not shows_header(ValueError(record.getMessage())) and not shows_header(error)

    loggers = [
        logging.getLogger(name)
        for name in list(logging.root.manager.loggerDict)
        if name.startswith("azure.")
    ]
    for logger in loggers:
        logger.addFilter(unshown)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(unshown)


def _told(error: Any) -> tuple[str, str, str]:
    """Return Azure's error code, inner code and message."""
    told = getattr(error, "error", None)
    if told is None:
        return "", "", first_line(error)
    inner = told.innererror or {}
    message = " ".join(str(told.message or "").split())
    return str(told.code or ""), str(inner.get("code", "")), message


def _login_reason(error: BaseException) -> str:
    """Return what says most in the many lines of a chain of credentials: Entra ID's error, or a credential's."""
    found = re.search(
        r"AADSTS\d+[^\r\n]*|\w+Credential: Authentication failed: [^\r\n]*", str(error)
    )
    return found[0] if found else first_line(error)
