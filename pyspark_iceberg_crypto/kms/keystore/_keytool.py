"""The JDK's keytool, which makes and lists PKCS12 keystores."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pyspark_iceberg_crypto.errors import (
    ConfigurationError,
    KmsUnavailableError,
    LoginFailedError,
)
from pyspark_iceberg_crypto.kms._secrets import missing, read_secret
from pyspark_iceberg_crypto.kms._settings import AnyPath

MIN_PASSWORD = 6  # keytool's own limit
TIMEOUT = 120  # seconds

# How often a password is hashed to get the key of an entry (PBKDF2 with HMAC-SHA256): NIST SP 800-132, 5.2
# asks for as many as users can bear, OWASP's Password Storage Cheat Sheet for 600,000. Java's default is 10,000.
ITERATIONS = 600_000
# The file's MAC (RFC 7292, appendix B) tells a guess from the password, too, and costs one hash an iteration
# where PBKDF2 costs two: so it gets twice as many.
MAC_ITERATIONS = 2 * ITERATIONS

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_ENTRY = re.compile(
    rf"^(?P<name>.+?), (?P<month>{'|'.join(_MONTHS)}) (?P<day>\d{{1,2}}), (?P<year>\d{{4}}), SecretKeyEntry,",
    re.MULTILINE,
)
# In English, because the output is parsed. The optimizing compiler stays on: it halves the time of hashing.
_JVM = ("-J-Duser.language=en", "-J-Duser.country=US", "-J-XX:+UseSerialGC")


@dataclass(frozen=True)
class Password:
    """Where a password is, as keytool's options say it; never the password itself."""

    option: str
    place: str

    @classmethod
    def of(cls, env: str | None, file: AnyPath | None) -> Password:
        """Check that there is a password in the variable or file.

        Raises:
            ConfigurationError: it is not set, it cannot be a keystore's password, its file has more than one
                line, or others may read it.
        """
        secret, where = _held(env, file)
        if len(secret) < MIN_PASSWORD:
            raise ConfigurationError(
                f"the keystore's password, in {where}, is too short",
                f"a PKCS12 keystore needs at least {MIN_PASSWORD} characters",
            )
        if secret != secret.strip():
            raise ConfigurationError(
                f"the keystore's password, in {where}, has leading or trailing spaces",
                "remove them: Spark reads it without them",
            )
        if env is not None:
            return cls("-storepass:env", env)
        return cls("-storepass:file", str(Path(file or "").absolute()))


def password(env: str | None, file: AnyPath | None) -> tuple[str, str]:
    """Read the password as Spark's client does, without spaces around it.

    Returns:
        The password, and in words where it is.

    Raises:
        ConfigurationError: it is not set, it cannot be a keystore's password, its file has more than one line, or
            others may read it.
    """
    secret, where = _held(env, file)
    return secret.strip(), where


def _held(env: str | None, file: AnyPath | None) -> tuple[str, str]:
    secret, where = read_secret(env, file, "the keystore's", "password")
    if env is None:
        secret, *more = secret.splitlines() or [""]
        if any(line.strip() for line in more):
            raise ConfigurationError(
                f"the keystore's password file has more than one line: {Path(file or '').absolute()}",
                "write the password into it and nothing else; Spark refuses it otherwise",
            )
    if not secret:
        raise missing("the keystore's", "password", where)
    if not re.fullmatch(r"[ -~]+", secret):  # Java's PBE keys take nothing else
        raise ConfigurationError(
            f"the keystore's password, in {where}, has characters that no PKCS12 keystore of Java accepts",
            "use ASCII letters, digits and punctuation, as many as you like",
        )
    return secret, where


def generate(store: Path, name: str, bits: int, password: Password) -> None:
    """Add a new random AES key to a keystore file, which is made when it is missing.

    The file's MAC keeps the iterations that it has, the new key gets today's.
    """
    _run(
        f"-J-Dkeystore.pkcs12.keyPbeIterationCount={ITERATIONS}",
        f"-J-Dkeystore.pkcs12.certPbeIterationCount={ITERATIONS}",
        f"-J-Dkeystore.pkcs12.macIterationCount={MAC_ITERATIONS}",
        *("-genseckey", "-alias", name, "-keyalg", "AES", "-keysize", str(bits)),
        *("-storetype", "PKCS12", "-keystore", str(store), password.option, password.place),
    )


def entries(store: Path, password: Password) -> dict[str, str]:
    """List the secret keys in a keystore file: their names, and the days they were made (ISO 8601)."""
    told = _run("-list", "-keystore", str(store), password.option, password.place)
    return {
        found[
            "name"
        ]: f"{found['year']}-{_MONTHS.index(found['month']) + 1:02}-{int(found['day']):02}"
        for found in _ENTRY.finditer(told)
    }


def _run(*arguments: str) -> str:
    """Run keytool in English and return what it says.

    Raises:
        LoginFailedError: the password is wrong.
        KmsUnavailableError: it does not end.
        ConfigurationError: there is no keytool, or it refused.
    """
    command = [_find(), *_JVM, *arguments]
    try:
        done = subprocess.run(  # noqa: S603 (a program of the JDK, without a shell)
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired as error:
        raise KmsUnavailableError(
            f"keytool did not end within {TIMEOUT} s",
            "nothing was changed; is this machine overloaded, or does the file's storage hang? try again",
        ) from error
    if done.returncode == 0:
        return done.stdout
    said = (done.stdout + done.stderr).strip().partition("\n")[0]
    said = said.removeprefix("keytool error: ").removeprefix("java.io.IOException: ")
    if "password was incorrect" in said or "Integrity check failed" in said:
        raise LoginFailedError(
            "the keystore's password is wrong (or the file is damaged)",
            f"check the password in {arguments[-1]}",
        )
    raise ConfigurationError(f"keytool refused: {said}", "is the file a PKCS12 keystore?")


def _find() -> str:
    home = os.environ.get("JAVA_HOME")
    by_home = Path(home) / "bin" / "keytool" if home else None
    found = str(by_home) if by_home and by_home.is_file() else shutil.which("keytool")
    if found is None:
        raise ConfigurationError(
            "there is no keytool, under JAVA_HOME or on the PATH",
            "install Java: apt-get install -y default-jdk-headless",
        )
    return found
