"""The secret keys of a PKCS12 file (RFC 7292), without Java.

`cryptography` has no parser for secret bags: asn1crypto takes the file apart, and `cryptography` checks the file's MAC
and decrypts. Read is what keytool of Java 17 and later writes: PBES2 (RFC 8018) with PBKDF2 and AES.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pyspark_iceberg_crypto.errors import NotSupportedError
from pyspark_iceberg_crypto.kms._extras import READER, load
from pyspark_iceberg_crypto.kms.keystore import _keytool

_SHROUDED_KEY = "1.2.840.113549.1.12.10.1.2"  # what is in a secret bag of Java
_AES = "2.16.840.1.101.3.4.1"
_AES_KEY_BYTES = (16, 24, 32)
_DIGESTS = ("sha1", "sha224", "sha256", "sha384", "sha512")
_CIPHERS = ("aes128_cbc", "aes192_cbc", "aes256_cbc")
_MOST_ITERATIONS = 5_000_000  # Java's own limit


class NoKeystoreError(Exception):
    """It is not a PKCS12 file."""


class WrongPasswordError(Exception):
    """The file's MAC does not fit the password, or an entry does not decrypt with it."""


class NotAesError(Exception):
    """An entry is not an AES secret key."""


@dataclass(frozen=True)
class Entry:
    """An entry of a file.

    Attributes:
        name: in lower case, as Java has it.
        encrypted: the secret key, as asn1crypto's EncryptedPrivateKeyInfo; None for an entry of another kind.
        path: the file's, for errors.
    """

    name: str
    encrypted: Any = field(repr=False)
    path: object

    def key(self, password: str) -> bytes:
        """Decrypt the AES key, which is slow by design.

        Raises:
            NotAesError: it is not one.
            WrongPasswordError: it has another password.
            NotSupportedError: it is encrypted by an algorithm that is not read here.
        """
        if self.encrypted is None:
            raise NotAesError(self.name)
        algorithm = self.encrypted["encryption_algorithm"]
        _require_known(algorithm, f"entry '{self.name}'", self.path)
        plain = _decrypted(algorithm, self.encrypted["encrypted_data"].native, password)
        try:
            # A PrivateKeyInfo (RFC 5208); asn1crypto's own knows no secret keys.
            info = load("asn1crypto.core", READER).Sequence.load(plain, strict=True)
            kind, key = info[1][0].dotted, bytes(info[2].native)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise WrongPasswordError(self.name) from None
        if kind != _AES or len(key) not in _AES_KEY_BYTES:
            raise NotAesError(self.name)
        return key


def read(content: bytes, password: str, path: object) -> dict[str, Entry]:
    """Check a file's MAC, and return its entries by their names.

    Args:
        content: the file.
        password: the file's, in ASCII.
        path: the file's, for errors.

    Raises:
        NoKeystoreError: it is not a PKCS12 file.
        WrongPasswordError: the password is wrong, or the file was changed.
        NotSupportedError: it has no MAC, or is written by algorithms that are not read here.
    """
    try:
        file = load("asn1crypto.pkcs12", READER).Pfx.load(content, strict=True)
        mac = file["mac_data"].native
        bags = list(_bags(file, path))
        entries = [entry for bag in bags for entry in _entries(bag, path)]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise NoKeystoreError from error
    if mac is None:
        raise NotSupportedError(
            f"keystore {path} has no MAC: anyone could have changed it",
            "make a keystore with a password: Keystore.create(...)",
        )
    if mac["mac"]["digest_algorithm"]["algorithm"] not in _DIGESTS:
        raise _unknown(path, "its MAC", mac["mac"]["digest_algorithm"]["algorithm"])
    _require_iterations(mac["iterations"], path)
    _check_mac(content, password)
    return {entry.name: entry for entry in entries}


def _check_mac(content: bytes, password: str) -> None:
    """Have `cryptography` read the file, which it does once the MAC fits, and leave it at that."""
    pkcs12 = load("cryptography.hazmat.primitives.serialization.pkcs12", READER)
    try:
        pkcs12.load_pkcs12(content, password.encode())
    except ValueError:
        raise WrongPasswordError from None


def _bags(file: Any, path: object) -> Iterator[Any]:
    """Take the parts of a file apart that are not encrypted as a whole: Java has secret keys in these alone."""
    contents = load("asn1crypto.pkcs12", READER).SafeContents
    for part in file.authenticated_safe:
        if part["content_type"].native == "data":
            yield from contents.load(part["content"].native)
        else:
            info = part["content"]["encrypted_content_info"]
            _require_known(info["content_encryption_algorithm"], "its certificates", path)


def _entries(bag: Any, path: object) -> Iterator[Entry]:
    names = [
        name.native
        for attribute in bag["bag_attributes"]
        if attribute["type"].native == "friendly_name"
        for name in attribute["values"]
    ]
    encrypted = None
    kind, value = bag["bag_id"].native, bag["bag_value"]
    if kind == "pkcs8_shrouded_key_bag":
        _require_known(value["encryption_algorithm"], "a private key", path)
    elif kind == "secret_bag" and value["secret_type_id"].dotted == _SHROUDED_KEY:
        encrypted = load("asn1crypto.keys", READER).EncryptedPrivateKeyInfo.load(
            value["secret_value"].native
        )
    for name in names:
        yield Entry(name.lower(), encrypted, path)


def _require_known(algorithm: Any, what: str, path: object) -> None:
    """Refuse what is not encrypted by PBES2 with PBKDF2 and AES."""
    name = algorithm["algorithm"].native
    if name != "pbes2":
        raise _unknown(path, what, name)
    if algorithm.kdf != "pbkdf2" or algorithm.kdf_hmac not in _DIGESTS:
        raise _unknown(path, what, f"{algorithm.kdf} with {algorithm.kdf_hmac}")
    cipher = algorithm["parameters"]["encryption_scheme"]["algorithm"].native
    if cipher not in _CIPHERS:
        raise _unknown(path, what, cipher)
    _require_iterations(algorithm.kdf_iterations, path)


def _require_iterations(count: int, path: object) -> None:
    if count > _MOST_ITERATIONS:
        raise _unknown(path, "a key", f"{count} iterations, more than {_MOST_ITERATIONS}")


def _unknown(path: object, what: str, algorithm: str) -> NotSupportedError:
    return NotSupportedError(
        f"keystore {path} cannot be read in Python: {what} uses {algorithm}",
        "keytool of Java 17 or later writes what can be read: (umask 077; keytool"
        f" -J-Dkeystore.pkcs12.keyPbeIterationCount={_keytool.ITERATIONS}"
        f" -J-Dkeystore.pkcs12.macIterationCount={_keytool.MAC_ITERATIONS} -importkeystore -srckeystore OLD"
        " -srcstorepass:env PASSWORD -destkeystore NEW -deststoretype PKCS12 -deststorepass:env PASSWORD)",
    )


def _decrypted(algorithm: Any, data: bytes, password: str) -> bytes:
    """Decrypt by PBES2; empty with another password."""
    hashes = load("cryptography.hazmat.primitives.hashes", READER)
    kdf = load("cryptography.hazmat.primitives.kdf.pbkdf2", READER).PBKDF2HMAC(
        algorithm=getattr(hashes, algorithm.kdf_hmac.upper())(),
        length=algorithm.key_length,
        salt=algorithm.kdf_salt,
        iterations=algorithm.kdf_iterations,
    )
    ciphers = load("cryptography.hazmat.primitives.ciphers", READER)
    cipher = ciphers.Cipher(
        ciphers.algorithms.AES(kdf.derive(password.encode())),
        ciphers.modes.CBC(algorithm.encryption_iv),
    )
    unpadder = load("cryptography.hazmat.primitives.padding", READER).PKCS7(128).unpadder()
    decryptor = cipher.decryptor()
    try:
        padded = decryptor.update(data) + decryptor.finalize()
        plain: bytes = unpadder.update(padded) + unpadder.finalize()
    except ValueError:  # another password
        return b""
    return plain
