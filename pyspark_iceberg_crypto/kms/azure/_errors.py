"""What the errors of Azure's client libraries mean."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark_iceberg_crypto import _jvm
from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    ConfigurationError,
    IcebergCryptoError,
    KeyDisabledError,
    KeyNotFoundError,
    KmsUnavailableError,
    LoginFailedError,
    NotSupportedError,
)
from pyspark_iceberg_crypto.kms._extras import load
from pyspark_iceberg_crypto.kms._secrets import headers_unshown, shows_header

_UNUSABLE = {"KeyDisabled", "KeyExpired", "KeyNotYetValid"}
_NETWORK = {"ForbiddenByFirewall", "ForbiddenByConnection", "ForbiddenByNsp"}

_UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"
_NO_NETWORK = re.compile(
    r"Failed to establish|Connection aborted|Max retries|timed out|HTTP Error: (429|5\d\d)|resolve"
)


@contextmanager
def typed_errors(vault_url: str, key_id: str, once: str | None = None) -> Iterator[None]:
    """Turn the libraries' errors into ours.

    Args:
        vault_url: the vault, for the text.
        key_id: the key, for the text.
        once: the hint of an error that does not tell whether the call was carried out, for calls that must not
            be made twice.
    """
    azure = load("azure.core.exceptions", "azure")
    problem = f"Azure Key Vault at {vault_url}, key {key_id!r}"
    try:
        with headers_unshown(problem):
            yield
    except azure.ClientAuthenticationError as error:
        raise _login_failed(error, problem) from error
    except azure.HttpResponseError as error:
        raise _refused(error, problem, once) from error
    except (azure.ServiceRequestError, azure.ServiceResponseError) as error:
        if _UNTRUSTED in str(error):
            raise _untrusted(problem) from error
        raise KmsUnavailableError(
            f"{problem}: it cannot be reached: {_jvm.first_line(error)}",
            f"check the address and the network{f'; {once}' if once else ''}",
        ) from error


@contextmanager
def headers_unlogged() -> Iterator[None]:
    """Drop the libraries' log records that show a header: they warn with the whole of an error.

    To be entered when the clients have been made: a filter counts for one logger, and making them loads modules that
    have loggers of their own.
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


def _login_failed(error: Any, problem: str) -> IcebergCryptoError:
    """Tell a login that was refused from a login service that was not reached; the library has one error for both."""
    reason = _login_reason(error)
    if _UNTRUSTED in str(error):
        return _untrusted(problem)
    if _NO_NETWORK.search(reason):
        return KmsUnavailableError(
            f"{problem}: the login service cannot be reached or is busy: {reason}",
            "check the network and AZURE_AUTHORITY_HOST, or try again later",
        )
    return LoginFailedError(
        f"{problem}: login refused: {reason}",
        "log in (az login), or check AZURE_TENANT_ID, AZURE_CLIENT_ID and the secret or certificate, and this"
        " host's clock",
    )


def _untrusted(problem: str) -> ConfigurationError:
    return ConfigurationError(
        f"{problem}: a TLS certificate is not trusted, the vault's or the login service's",
        "check the address; REQUESTS_CA_BUNDLE names a file of certificates to trust",
    )


def _refused(error: Any, problem: str, once: str | None) -> IcebergCryptoError:
    if error.status_code is None:  # an answer that broke off
        return KmsUnavailableError(
            f"{problem}: its answer cannot be read: {_jvm.first_line(error)}",
            once or "check the network and any proxy on the way, or try again",
        )
    code, inner, message = _told(error)
    text = f"{problem}: HTTP {error.status_code} {inner or code} {message}".rstrip()
    status = error.status_code
    if status == 404:
        return KeyNotFoundError(
            text, "check the name; a deleted key: az keyvault key recover --name ..."
        )
    if status == 409:
        return ConfigurationError(
            text, "choose another name, or recover the key: az keyvault key recover --name ..."
        )
    if status == 429 or status >= 500:
        return KmsUnavailableError(text, once or "try again later")
    if inner in _UNUSABLE:
        return KeyDisabledError(text, "az keyvault key set-attributes --enabled true ...")
    if inner in _NETWORK:
        return AccessDeniedError(text, "allow this host's network in the vault's firewall")
    if inner == "KeyOperationForbidden":
        return NotSupportedError(text, "az keyvault key set-attributes --ops wrapKey unwrapKey ...")
    if status == 403:
        return AccessDeniedError(
            text,
            "this login may not do that: managing keys takes the role 'Key Vault Crypto Officer' (Managed HSM:"
            " 'Managed HSM Crypto User')",
        )
    return ConfigurationError(text, "check the arguments and the vault")


def _told(error: Any) -> tuple[str, str, str]:
    """Return Azure's error code, inner code and message."""
    told = getattr(error, "error", None)
    if told is None:
        return "", "", _jvm.first_line(error)
    inner = told.innererror or {}
    message = " ".join(str(told.message or "").split())
    return str(told.code or ""), str(inner.get("code", "")), message


def _login_reason(error: BaseException) -> str:
    """Return what says most in the many lines of a chain of credentials: Entra ID's error, or a credential's."""
    found = re.search(
        r"AADSTS\d+[^\r\n]*|\w+Credential: Authentication failed: [^\r\n]*", str(error)
    )
    return found[0] if found else _jvm.first_line(error)
