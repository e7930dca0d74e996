"""OpenSC's pkcs11-tool, which makes and lists the keys of a token."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass

from pyspark_iceberg_crypto.errors import (
    AccessDeniedError,
    ConfigurationError,
    IcebergCryptoError,
    KmsUnavailableError,
    LoginFailedError,
    NotSupportedError,
)
from pyspark_iceberg_crypto.kms._errors import ErrorTable, Rule
from pyspark_iceberg_crypto.kms._secrets import missing, read_secret

TIMEOUT_SECONDS = 60

_PIN_VARIABLE = "ICEBERG_CRYPTO_PKCS11_PIN"
_FIELD = re.compile(r"  (?P<name>label|ID|Usage|Access): +(?P<value>.*)")
_AES = re.compile(r"Secret Key Object; AES length (?P<bytes>\d{1,4})\b")


@dataclass(frozen=True)
class TokenKey:
    """A secret AES key of a token; a handle's description, not the key."""

    label: str
    bits: int
    id: str
    usage: str
    access: str


@dataclass(frozen=True)
class Pin:
    """Where a pin is; never the pin itself."""

    env: str | None
    file: str | os.PathLike[str] | None

    def read(self) -> str:
        """Read the pin.

        Raises:
            ConfigurationError: it is not set, or others may read the file.
        """
        held, where = read_secret(self.env, self.file, "the token's", "pin")
        pin = held.strip()
        if not pin:
            raise missing("the token's", "pin", where)
        return pin


@dataclass(frozen=True)
class Token:
    """A token and how to log in to it.

    Attributes:
        module: the PKCS#11 library.
        where: pkcs11-tool's options that choose the token.
        name: the token, for errors.
        pin: of the token's user.
    """

    module: str
    where: tuple[str, str]
    name: str
    pin: Pin

    def aes_keys(self) -> list[TokenKey]:
        """List the AES keys that the token shows after login, sorted by label."""
        told = self._run("--list-objects", "--type", "secrkey")
        return sorted(_parse(told), key=lambda key: key.label)

    def generate(self, label: str, bits: int, key_id: str) -> None:
        """Make an AES key that never leaves the token, and that only the login lets use."""
        kind = ("--keygen", "--key-type", f"AES:{bits // 8}", "--label", label, "--id", key_id)
        self._run(*kind, "--sensitive", "--private")

    def delete(self, key_id: str) -> None:
        """Destroy a key, by the id (CKA_ID) that it was made with."""
        self._run("--delete-object", "--type", "secrkey", "--id", key_id)

    def _run(self, *arguments: str) -> str:
        """Log in, do one thing, and return pkcs11-tool's output.

        The pin is in the environment of that process, never on its command line.

        Raises:
            IcebergCryptoError: it failed; see the error's type.
        """
        command = [_find(), "--module", self.module, *self.where, "--login"]
        try:
            done = subprocess.run(  # noqa: S603 (a program of OpenSC, without a shell)
                [*command, "--pin", f"env:{_PIN_VARIABLE}", *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                env={**os.environ, _PIN_VARIABLE: self.pin.read()},
                timeout=TIMEOUT_SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            raise KmsUnavailableError(
                f"{self.name} did not answer within {TIMEOUT_SECONDS} s",
                "check that the HSM is up and reachable",
            ) from error
        if done.returncode != 0:
            raise self._error(done.stderr)
        return done.stdout

    def _error(self, said: str) -> IcebergCryptoError:
        answer = re.search(r"CKR_\w+", said)
        codes = [answer[0]] if answer else []
        codes += [code for code, words in _TOOLS_OWN.items() if words in said]
        codes += ["CKR"] if answer else []
        lines = [line for line in said.splitlines() if line.strip() and line != "Aborting."]
        last = lines[-1] if lines else "no message"
        told = answer[0] if answer else last
        return ERRORS.find(codes, self.name, told, library=self.module) or ConfigurationError(
            f"pkcs11-tool refused for {self.name}: {last}",
            "try the same by hand: pkcs11-tool --help",
        )


_TOOLS_OWN = {"library": "Failed to load pkcs11 module", "token": "No slot with token named"}
# By PKCS#11's return values, and errors of pkcs11-tool's own.
ERRORS = ErrorTable(
    [
        Rule(
            "CKR_PIN_INCORRECT CKR_PIN_INVALID CKR_PIN_LEN_RANGE",
            LoginFailedError,
            "check it before the next try: a token locks itself after a few wrong ones",
            "{what} refused the login: the pin is wrong ({code})",
        ),
        Rule(
            "CKR_PIN_LOCKED CKR_PIN_EXPIRED CKR_USER_PIN_NOT_INITIALIZED",
            LoginFailedError,
            "the token's security officer sets a new one: pkcs11-tool --login-type so --init-pin",
            "{what} refused the login: its pin is locked, expired or not set ({code})",
        ),
        Rule(
            "CKR_TOKEN_WRITE_PROTECTED CKR_SESSION_READ_ONLY CKR_ACTION_PROHIBITED",
            AccessDeniedError,
            "log in as a user that may make keys on this token",
            "{what} may not be changed with this login ({code})",
        ),
        Rule(
            "CKR_SLOT_ID_INVALID CKR_TOKEN_NOT_RECOGNIZED",
            ConfigurationError,
            "see the slots there are: pkcs11-tool --list-slots; or name the token by its label",
            "{what} has no such slot, or no initialized token in it ({code})",
        ),
        Rule(
            "CKR_MECHANISM_INVALID CKR_KEY_SIZE_RANGE",
            NotSupportedError,
            "the token must do CKM_AES_KEY_GEN and CKM_AES_GCM: pkcs11-tool --list-mechanisms",
            "{what} cannot make such a key ({code})",
        ),
        Rule(
            "library",
            ConfigurationError,
            "library= is the path of the HSM's PKCS#11 library (a .so file)",
            "{library} cannot be loaded as a PKCS#11 library",
        ),
        Rule(
            "token",
            ConfigurationError,
            "see the labels there are: pkcs11-tool --module {library} --list-slots",
            "there is no {what}",
        ),
        Rule(
            "CKR",
            KmsUnavailableError,
            "check that the HSM is up and reachable; the log of its library says more",
            "{what}: the token failed ({said})",
        ),
    ]
)


def _parse(told: str) -> list[TokenKey]:
    """Read a list of objects. It also shows the values of extractable keys; they are skipped."""
    found: list[TokenKey] = []
    for block in re.split(r"^(?=\S)", told, flags=re.MULTILINE):
        aes = _AES.match(block)
        if aes is None:
            continue
        fields = {m["name"]: m["value"].strip() for m in map(_FIELD.match, block.splitlines()) if m}
        found.append(
            TokenKey(
                label=fields.get("label", ""),
                bits=int(aes["bytes"]) * 8,
                id=fields.get("ID", ""),
                usage=fields.get("Usage", ""),
                access=fields.get("Access", ""),
            )
        )
    return found


def _find() -> str:
    found = shutil.which("pkcs11-tool")
    if found is None:
        raise ConfigurationError(
            "there is no program pkcs11-tool on the PATH",
            "install OpenSC: apt-get install -y opensc",
        )
    return found
