"""Signatures of reports, made and checked with a KMS that is reached from Python (docs/verification.md).

A signature is an HMAC-SHA-256 over the canonical form of the document, all but the MAC itself. Its key is random, used
once, and stands in the signature, wrapped by the KMS.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from datetime import datetime, timezone
from typing import Any

from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    BadWrappedKeyError,
    ConfigurationError,
    NotSupportedError,
    TamperedError,
)
from pyspark_iceberg_crypto.kms import CachedKms
from pyspark_iceberg_crypto.reader import _document
from pyspark_iceberg_crypto.reader._allowed import PROPERTY, AllowedKeyIds
from pyspark_iceberg_crypto.verbs.kept_reports import SIGNATURE

_ALGORITHM = "HMAC-SHA-256"
_KEY_LENGTH = 32  # RFC 2104, section 3: the hash's length
_NO_TABLE = "none"  # what the KMS is told, which may bind keys to tables


def sign(document: str, key_id: str, allowed: AllowedKeyIds, kms: CachedKms) -> dict[str, str]:
    """Sign a document.

    Args:
        document: a JSON object; a signature that it has is replaced.
        key_id: the master key.
        allowed: the catalog's list of master keys.
        kms: what wraps the signature's key.

    Raises:
        AccessDeniedError: the catalog does not allow that key.
        ConfigurationError: others can wrap with that key, as with RSA.
        BadWrappedKeyError: the KMS does not give back what it wrapped.
        IcebergCryptoError: the KMS's own error.
    """
    _check_signer(key_id, allowed)
    _require_authenticated_wrapping(key_id, kms)
    key = os.urandom(_KEY_LENGTH)
    wrapped = _wrapped_or_denied(key, key_id, kms.for_table(_NO_TABLE))
    now = datetime.now(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
    signature = {
        "algorithm": _ALGORITHM,
        "key_id": key_id,
        "wrapped_key": base64.b64encode(wrapped).decode(),
        "signed_at": now,
    }
    return {**signature, "mac": _mac(_strict(document), signature, key)}


def _wrapped_or_denied(key: bytes, key_id: str, kms: CachedKms) -> bytes:
    """Wrap a key and ask the KMS to unwrap it; what whoever signs may not check counts."""
    wrapped = kms.wrap_key(key, key_id)
    kms.forget(wrapped, key_id)
    try:
        if hmac.compare_digest(kms.unwrap_key(wrapped, key_id), key):
            return wrapped
        kms.forget(wrapped, key_id)
    except AccessDeniedError:
        return wrapped
    except TamperedError:
        pass  # it takes it for none that it wrapped
    raise BadWrappedKeyError(
        f"{kms} unwraps other bytes than it wrapped under key '{key_id}'",
        "The key was not used. If that happens again, do not use this KMS: data written with it could not be read.",
    )


def check(document: str, key_id: str | None, allowed: AllowedKeyIds, kms: CachedKms) -> None:
    """Check that a document is as it was signed.

    Args:
        document: the signed JSON object, as it stands in its file.
        key_id: the master key that must have signed it; None: any that is allowed.
        allowed: the catalog's list of master keys, for when none is named.
        kms: what unwraps the signature's key.

    Raises:
        TamperedError: it, its signature or its wrapped key was changed, or another master key signed it.
        AccessDeniedError: none is named, and the catalog does not allow the one that signed it.
        ConfigurationError: it has no signature, or one that proves nothing.
        NotSupportedError: it is signed in a way that this version does not know.
        IcebergCryptoError: the KMS's own error: nothing is known.
    """
    signed = _strict(document)
    signature = signed.get("signature")
    if not isinstance(signature, dict):
        raise ConfigurationError(
            "It has no signature", "Only a report that was signed when it was made can be checked."
        )
    if _text(signature, "algorithm") != _ALGORITHM:
        raise NotSupportedError(
            f"It is signed with '{_text(signature, 'algorithm')}'",
            f"This version checks {_ALGORITHM} only. Use the version that signed it.",
        )
    if signature.keys() != SIGNATURE:
        raise _changed("its signature does not have the members of a signature")
    signer = _text(signature, "key_id")
    if key_id is not None and key_id != signer:
        raise _changed(f"it is signed with master key '{signer}', not '{key_id}'")
    if key_id is None:
        _check_signer(signer, allowed)
    _require_authenticated_wrapping(signer, kms)
    bound = kms.for_table(_NO_TABLE)
    if _is_signed(signed, signature, signer, bound):
        return
    bound.forget(
        _wrapped(signature), signer
    )  # before anyone is accused: the KMS may have been wrong once
    if not _is_signed(signed, signature, signer, bound):
        raise _changed("it is not what was signed")


def _is_signed(
    document: dict[str, Any], signature: dict[str, Any], signer: str, kms: CachedKms
) -> bool:
    try:
        key = kms.unwrap_key(_wrapped(signature), signer)
    except TamperedError as error:
        raise BadWrappedKeyError(
            f"The report is not genuine, or this is another KMS: {error.message}",
            "Check that the catalog has the KMS with which the report was signed. If it has, the report was changed: "
            "do not rely on it.",
        ) from error
    told = _text(signature, "mac")
    if not told.isascii():
        raise _changed("its signature is damaged")
    return len(key) == _KEY_LENGTH and hmac.compare_digest(told, _mac(document, signature, key))


def _mac(document: dict[str, Any], signature: dict[str, Any], key: bytes) -> str:
    without = {name: value for name, value in signature.items() if name != "mac"}
    try:
        signed = _document.canonical({**document, "signature": without}).encode()
    except UnicodeEncodeError:
        raise _changed("it has text that is not Unicode") from None
    return hmac.new(key, signed, hashlib.sha256).hexdigest()


def _strict(document: str) -> dict[str, Any]:
    try:
        return _document.strict(document.encode())
    except (ValueError, RecursionError) as error:
        raise _changed(str(error)) from None


def _wrapped(signature: dict[str, Any]) -> bytes:
    try:
        return base64.b64decode(_text(signature, "wrapped_key"), validate=True)
    except (binascii.Error, ValueError):
        raise _changed("its signature is damaged") from None


def _text(signature: dict[str, Any], name: str) -> str:
    value = signature.get(name)
    if isinstance(value, str) and not isinstance(value, _document.Number):
        return value
    raise _changed(f"its signature is damaged: no {name}")


def _changed(why: str) -> TamperedError:
    return TamperedError(
        f"The report is not genuine: {why}",
        "It was changed after it was signed, or not signed by the key it names. Do not rely on it; verify the table "
        "again.",
    )


def _check_signer(key_id: str, allowed: AllowedKeyIds) -> None:
    if not allowed.allows(key_id):
        raise AccessDeniedError(
            f"A report is not signed with master key '{key_id}': the catalog allows only {allowed.listed} ({PROPERTY})",
            "Sign with one of these, or ask whoever decides about the list to add this one. To check a report that an "
            "earlier list allowed, name its master key.",
        )


def _require_authenticated_wrapping(key_id: str, kms: CachedKms) -> None:
    if not kms.authenticates_wrapping(key_id):
        raise ConfigurationError(
            f"A signature with master key '{key_id}' would prove nothing: {kms} does not prove who wrapped a key with "
            "it (as with RSA, whose public half wraps)",
            "Use a symmetric master key. If you have your own KMS client, and only users of the key can wrap with it: "
            "CachedKms(client, authenticated_wrapping=True).",
        )
