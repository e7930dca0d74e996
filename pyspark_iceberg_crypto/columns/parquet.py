"""Keys for the footer and the columns of Spark's own Parquet files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark_iceberg_crypto.errors import ConfigurationError, NotSupportedError

FACTORY = "io.icebergcrypto.parquet.ParquetCryptoFactory"
ALGORITHMS = ("AES_GCM_V1", "AES_GCM_CTR_V1")
REQUIRE_INTEGRITY = "iceberg-crypto.parquet.require-integrity"
PLAINTEXT_READS = "iceberg-crypto.parquet.plaintext-reads"
_LENGTHS = (128, 192, 256)
_EXAMPLE = "ParquetKeys(footer='k1', columns={'ssn': 'k2'}), or ParquetKeys(uniform='k1')"


@dataclass(frozen=True)
class ParquetKeys:
    """Which master keys protect which parts of Parquet files that Spark writes.

    Either ``uniform``, or ``footer`` and ``columns``. With neither, the session can read encrypted files, and each
    write has to bring keys of its own: ``df.write.options(**keys.options())``.

    Attributes:
        footer: the master key of the footer; anyone who reads a file with an encrypted footer needs it.
        columns: the master keys of columns, by the columns' names: ``{"ssn": "k2", "address.street": "k3"}``. A
            struct, a list or a map stands for all that is in it.
        uniform: one master key for the footer and all columns.
        complete: encrypt columns that are not in ``columns`` with the footer's key. False: they are plaintext.
        plaintext_footer: leave the schema and the row counts readable, and columns without a key, to readers that
            know nothing of encryption; the footer is signed instead.
        algorithm: AES_GCM_V1, or AES_GCM_CTR_V1, which is faster on old processors, and whose pages can be changed
            without anyone noticing.
        require_integrity: refuse AES_GCM_CTR_V1.
        double_wrapping: wrap files' keys with key encryption keys, which are cached, so that the KMS is asked once,
            and not for each file and column.
        key_material_beside: keep wrapped keys in files beside the Parquet files, where `rotate_parquet_keys` can
            replace them, instead of in them.
        data_key_length: the length of files' keys, in bits: 128, 192 or 256.
        kek_length: the length of key encryption keys, in bits.
        plaintext_writes: allow files without any key, where none are named.
        plaintext_reads: allow reading files without any key.

    Raises:
        ConfigurationError: keys contradict each other, or a value is not one of those above.
        NotSupportedError: Parquet cannot name such a column.
    """

    footer: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    uniform: str | None = None
    complete: bool = True
    plaintext_footer: bool = False
    algorithm: str = "AES_GCM_V1"
    require_integrity: bool = False
    double_wrapping: bool = True
    key_material_beside: bool = False
    data_key_length: int = 128
    kek_length: int = 128
    plaintext_writes: bool = False
    plaintext_reads: bool = True

    def __post_init__(self) -> None:
        """Check what can be checked without a file and a KMS."""
        if self.uniform is not None and (self.footer is not None or self.columns):
            raise ConfigurationError("a uniform key cannot be combined with other keys", _EXAMPLE)
        if (self.footer is None) == bool(self.columns):
            raise ConfigurationError(
                "a footer key and column keys must be given together", f"for example {_EXAMPLE}"
            )
        for name, key in self.columns.items():
            if not isinstance(key, str) or not key.strip() or not name.strip():
                raise ConfigurationError(
                    f"columns has {key!r} as the key of column {name!r}", f"for example {_EXAMPLE}"
                )
            if re.search("[,:;]", name):
                raise NotSupportedError(
                    f"column {name!r} cannot have a key: Parquet's settings cannot express its name",
                    "rename it, or use a uniform key",
                )
        if self.algorithm not in ALGORITHMS:
            raise ConfigurationError(
                f"unknown algorithm {self.algorithm!r}", f"one of {', '.join(ALGORITHMS)}"
            )
        if self.require_integrity and self.algorithm != ALGORITHMS[0]:
            raise ConfigurationError(
                f"{self.algorithm} does not authenticate pages, and require_integrity is set",
                f"leave algorithm out: it is {ALGORITHMS[0]}",
            )
        for what, length in (("data", self.data_key_length), ("key encryption", self.kek_length)):
            if length not in _LENGTHS:
                raise ConfigurationError(
                    f"{what} keys of {length} bits", f"one of {', '.join(map(str, _LENGTHS))}"
                )

    def options(self) -> dict[str, str]:
        """Return these keys as options of one write: ``df.write.options(**keys.options())``.

        They stand in place of all that the session says of keys; empty ones take its away. ``require_integrity=True``
        and ``plaintext_reads=False`` are among them, but not their opposites: a table keeps its options, which must not
        be laxer than a session that uses it. The KMS is the session's, which ``configure_spark(parquet_columns=...)``
        has set: without one, the write fails.

        Spark does not give options to ``insertInto``, ``saveAsTable`` in mode append, and ``writeStream``.
        """
        return {
            "parquet.crypto.factory.class": FACTORY,
            "parquet.encryption.footer.key": _escaped(self.footer),
            "parquet.encryption.column.keys": self._column_keys(),
            "parquet.encryption.complete.columns": _text(self.complete and bool(self.columns)),
            "parquet.encryption.uniform.key": _escaped(self.uniform),
            "parquet.encryption.algorithm": self.algorithm,
            "parquet.encryption.plaintext.footer": _text(self.plaintext_footer),
            "parquet.encryption.double.wrapping": _text(self.double_wrapping),
            "parquet.encryption.key.material.store.internally": _text(not self.key_material_beside),
            "parquet.encryption.data.key.length.bits": str(self.data_key_length),
            "parquet.encryption.kek.length.bits": str(self.kek_length),
            "iceberg-crypto.parquet.plaintext-writes": _choice(self.plaintext_writes),
            **({REQUIRE_INTEGRITY: "true"} if self.require_integrity else {}),
            **({} if self.plaintext_reads else {PLAINTEXT_READS: "refuse"}),
        }

    def _column_keys(self) -> str:
        by_key: dict[str, list[str]] = {}
        for column, key in self.columns.items():
            by_key.setdefault(_escaped(key), []).append(column)
        return ";".join(f"{key}:{','.join(names)}" for key, names in by_key.items())


def _escaped(key_id: str | None) -> str:
    """Escape what has a meaning in Parquet's list of keys and columns; an ARN has colons."""
    return re.sub("[%,:;]", lambda found: f"%{ord(found[0]):02X}", key_id or "")


def _text(flag: bool) -> str:
    return "true" if flag else "false"


def _choice(allowed: bool) -> str:
    return "allow" if allowed else "refuse"


def session_conf(keys: ParquetKeys, prefix: str) -> dict[str, str]:
    """Return what makes these keys the default of all Parquet files of a session."""
    conf = {REQUIRE_INTEGRITY: "false", PLAINTEXT_READS: "allow", **keys.options()}
    return {prefix + name: value for name, value in conf.items()}
