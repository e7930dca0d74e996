"""What can go wrong. Each error says what is wrong, what it concerns, and what to do about it."""

from __future__ import annotations

from typing import Any

_PAGE = "https://github.com/iceberg-crypto/iceberg-crypto/blob/main/docs/errors.md"


class IcebergCryptoError(Exception):
    """The root of this package's errors.

    See docs/errors.md#icebergcryptoerror.

    Attributes:
        message: what is wrong; names the table and the file, the property or the key id.
        hint: what to do about it; empty if there is no advice.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    @property
    def url(self) -> str:
        """The section of docs/errors.md on errors of this type, with a heading for each message."""
        named = next(kind for kind in type(self).__mro__ if kind.__module__ == __name__)
        return f"{_PAGE}#{named.__name__.lower()}"

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class ConfigurationError(IcebergCryptoError):
    """A property or an argument is missing, wrong, or contradicts another.

    See docs/errors.md#configurationerror.
    """


class TableNotFoundError(ConfigurationError):
    """There is no Iceberg table of this name, or no such namespace.

    See docs/errors.md#tablenotfounderror.
    """


class KeyNotFoundError(IcebergCryptoError):
    """The KMS has no key with that id.

    See docs/errors.md#keynotfounderror.
    """


class KeyDisabledError(IcebergCryptoError):
    """The KMS has the key but does not allow its use: it is disabled, or pending deletion.

    See docs/errors.md#keydisablederror.
    """


class KmsUnavailableError(IcebergCryptoError):
    """The KMS could not be reached, or failed; the same call may work later.

    See docs/errors.md#kmsunavailableerror.

    Attributes:
        throttled: the KMS answered a client in Python that it is called too often.
    """

    def __init__(self, message: str, hint: str = "", *, throttled: bool = False) -> None:
        super().__init__(message, hint)
        self.throttled = throttled


class AccessDeniedError(IcebergCryptoError):
    """The KMS refused: the login may not do this, or the KMS does not say whether the login is at fault.

    See docs/errors.md#accessdeniederror.
    """


class LoginFailedError(AccessDeniedError):
    """The KMS does not accept the login: a password, token, pin or credential is wrong, missing or expired.

    See docs/errors.md#loginfailederror.
    """


class TamperedError(IcebergCryptoError):
    """An encrypted file or a wrapped key is not what was written.

    See docs/errors.md#tamperederror.
    """


class BadWrappedKeyError(TamperedError):
    """This master key did not wrap the key: it was altered, or belongs to another master key or KMS.

    See docs/errors.md#badwrappedkeyerror.
    """


class PlaintextFoundError(IcebergCryptoError):
    """A file of an encrypted table is, or would be, plaintext.

    See docs/errors.md#plaintextfounderror.
    """


class VerificationFailedError(IcebergCryptoError):
    """A report has problems, and the caller asked for one without.

    See docs/errors.md#verificationfailederror.

    Attributes:
        report: the report: what is wrong, file by file.
    """

    def __init__(self, message: str, hint: str = "", report: Any = None) -> None:
        super().__init__(message, hint)
        self.report = report


class VerificationIncompleteError(VerificationFailedError):
    """No problem was found, but something could not be checked: nothing is proved.

    See docs/errors.md#verificationincompleteerror.
    """


class CancelledError(IcebergCryptoError):
    """The call was cancelled: its Spark jobs, or its thread in the JVM.

    See docs/errors.md#cancellederror.
    """


class NotSupportedError(IcebergCryptoError):
    """It cannot be done with encryption, or not yet.

    See docs/errors.md#notsupportederror.
    """


class NotEncryptedError(NotSupportedError):
    """A table has no keys: it is not encrypted and, as far as its metadata shows, never was.

    See docs/errors.md#notencryptederror.
    """


class NoSessionError(IcebergCryptoError):
    """There is no Spark session to work with, or it was stopped.

    See docs/errors.md#nosessionerror.
    """


class SparkConnectError(IcebergCryptoError):
    """The session is a Spark Connect client, which has no JVM of its own.

    See docs/errors.md#sparkconnecterror.
    """


class JarMissingError(IcebergCryptoError):
    """Spark's JVM lacks a jar that is needed.

    See docs/errors.md#jarmissingerror.
    """


def first_line(error: BaseException) -> str:
    """Say in one line what an exception says, one of Java without its stack trace."""
    thrown = getattr(error, "java_exception", None)
    text = str(error if thrown is None else thrown.toString())
    return next(iter(text.strip().splitlines()), type(error).__name__)
