"""Keys for the columns of Spark's own ORC files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark_iceberg_crypto import _names
from pyspark_iceberg_crypto.errors import ConfigurationError, NotSupportedError

PROVIDER = "iceberg-crypto"
MASKS = ("nullify", "redact", "sha256")
_LENGTHS = (128, 256)
_EXAMPLE = "OrcKeys(columns={'ssn': 'k1'}, masks={'ssn': 'redact'})"


@dataclass(frozen=True)
class OrcKeys:
    """Which master keys protect which columns of ORC files that Spark writes, and what others see in place of them.

    Without columns, the session can read encrypted files, and each write has to bring keys of its own:
    ``df.write.options(**keys.options())``.

    Attributes:
        columns: the master keys of columns, by the columns' names: ``{"ssn": "k1", "address.street": "k2"}``. A
            struct, a list or a map stands for all that is in it; their parts are ``tags._elem``, ``map._key`` and
            ``map._value``. A name with a dot in it stands in back quotes. Columns that are not named are plaintext.
        masks: what a reader without the key sees of a column: "nullify" (null, the default), "redact" (characters
            and digits replaced) or "sha256". Masked values are in the files in plaintext.
        data_key_length: the length of files' keys, in bits: 128 or 256.
        missing_keys: what reading a column does whose key may not be used: "mask", or "fail".
        require_integrity: refused: ORC has only AES-CTR, under which nobody notices changed data.
        plaintext_writes: allow files without any key, where none are named.

    Raises:
        ConfigurationError: keys and masks contradict each other, a value is not one of those above, or
            require_integrity.
        NotSupportedError: ORC cannot name such a column.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    masks: Mapping[str, str] = field(default_factory=dict)
    data_key_length: int = 128
    missing_keys: str = "mask"
    require_integrity: bool = False
    plaintext_writes: bool = False

    def __post_init__(self) -> None:
        """Check what can be checked without a file and a KMS."""
        if self.require_integrity:
            raise ConfigurationError(
                "ORC does not authenticate data: it has only AES-CTR, and require_integrity is set",
                "use ParquetKeys, or encrypted Iceberg tables",
            )
        for name, key in self.columns.items():
            if not isinstance(key, str) or not key.strip():
                raise ConfigurationError(
                    f"columns has {key!r} as the key of column {name!r}", f"for example {_EXAMPLE}"
                )
        for name, mask in self.masks.items():
            if not isinstance(mask, str) or mask.partition(",")[0] not in MASKS:
                raise ConfigurationError(
                    f"masks has {mask!r} as the mask of column {name!r}",
                    f"one of {', '.join(MASKS)}",
                )
            if not any(_is_in(name, column) for column in self.columns):
                raise ConfigurationError(
                    f"column {name!r} has a mask and no key: it would be plaintext, and not masked",
                    f"for example {_EXAMPLE}",
                )
        for name in (*self.columns, *self.masks):
            _quoted(name)
        if self.data_key_length not in _LENGTHS:
            raise ConfigurationError(
                f"data keys of {self.data_key_length} bits",
                f"one of {', '.join(map(str, _LENGTHS))}",
            )
        if self.missing_keys not in ("mask", "fail"):
            raise ConfigurationError(f"missing_keys is {self.missing_keys!r}", "one of mask, fail")

    def options(self) -> dict[str, str]:
        """Return these keys as options of one write: ``df.write.options(**keys.options())``.

        They stand in place of what the session says of columns and masks; empty ones take its away. How missing keys
        are read is the session's.

        Spark does not give options to ``insertInto``, ``saveAsTable`` in mode append, and ``writeStream``.
        """
        return {
            "orc.encrypt": _listed({name: _text(key) for name, key in self.columns.items()}),
            "orc.mask": _listed({name: _mask(mask) for name, mask in self.masks.items()}),
            "iceberg-crypto.orc.data-key-length": str(self.data_key_length),
            "iceberg-crypto.orc.plaintext-writes": "allow" if self.plaintext_writes else "refuse",
        }


def _mask(mask: str) -> str:
    """Return a mask's name for ORC, whose own redact fails on text."""
    name, *parameters = mask.split(",")
    return ",".join(["redact_any" if name == "redact" else name, *parameters])


def _is_in(name: str, column: str) -> bool:
    return name == column or name.startswith(f"{column}.")


def _listed(by_column: Mapping[str, str]) -> str:
    """Return ORC's list: ``what:column,column;what:column``."""
    columns: dict[str, list[str]] = {}
    for name, what in by_column.items():
        columns.setdefault(what, []).append(_quoted(name))
    return ";".join(f"{what}:{','.join(names)}" for what, names in columns.items())


def _quoted(path: str) -> str:
    """Return the name of a column as ORC reads it.

    Raises:
        ConfigurationError: it is not one.
        NotSupportedError: ORC takes it for a column's number.
    """
    parts = _names.parts(path)
    if not all(map(str.strip, parts)):
        raise ConfigurationError(
            f"{path!r} is not a column's name", "for example 'ssn', 'address.street' or '`a.b`'"
        )
    if len(parts) == 1 and re.fullmatch("[0-9]+", parts[0]):
        raise NotSupportedError(
            f"column {path!r} cannot have a key: ORC takes a number for a column's position",
            "rename it",
        )
    return ".".join(map(_text, parts))


def _text(name: str) -> str:
    """Put into back quotes what has other characters than ORC takes without them."""
    return name if re.fullmatch("[A-Za-z0-9_]+", name) else _names.quoted(name)


def session_conf(keys: OrcKeys, kms: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return what makes these keys the default of all ORC files of a session.

    ORC keeps a key provider for all of a JVM, by its name alone: sessions with other settings get another name.

    Args:
        keys: the keys.
        kms: the KMS's settings.
        prefix: what goes before each name.
    """
    conf = {**keys.options(), "iceberg-crypto.orc.missing-keys": keys.missing_keys}
    own = sorted({**kms, "length": str(keys.data_key_length), "missing": keys.missing_keys}.items())
    scope = hashlib.sha256(repr(own).encode()).hexdigest()[:12]
    conf["orc.key.provider"] = f"{PROVIDER}-{scope}"
    return {prefix + name: value for name, value in conf.items()}
