"""A file as a table's metadata describes it, and the errors where the storage has another."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_iceberg_crypto.errors import (
    IcebergCryptoError,
    NotSupportedError,
    PlaintextFoundError,
    TamperedError,
)

_CHANGED = (
    "The file was cut off, overwritten or replaced after it was written, by accident or by someone who can write to "
    "the storage. Restore it from a backup or an object version; no row of it was returned that is not the table's."
)

_OF_OTHER_CLIENT = (
    "A client other than Iceberg's own wrote it, or put it in the place of the table's: find out who. Such a client "
    "has to write encrypted footers and AES_GCM_V1."
)


@dataclass(frozen=True)
class ExpectedFile:
    """A file of a table.

    Attributes:
        table: the table's full name.
        location: where the file is.
        length: its length in bytes as it is stored, from its key metadata; None if that has none.
    """

    table: str
    location: str
    length: int | None = None

    def changed(self, what: str) -> TamperedError:
        """The bytes are not those that were written."""
        return TamperedError(f"{self._name} is not what was written: {what}", _CHANGED)

    def of_other_length(self, stored: int) -> TamperedError:
        """The storage has fewer or more bytes than were written."""
        if self.length is not None and stored < self.length:
            return self.changed(
                f"it ends after {stored} bytes, expected {self.length}: it was cut off"
            )
        return self.changed(f"it has {stored} bytes, expected {self.length}: bytes were appended")

    def not_as_listed(self, listed: int, stored: int, as_content: int) -> TamperedError:
        """The storage has another length than what lists the file gives."""
        if not listed <= stored <= as_content:
            return ExpectedFile(self.table, self.location, listed).of_other_length(stored)
        return self.changed(
            f"it has {stored} bytes, expected {listed}, or {as_content} if what lists it gives the length of the "
            "content"
        )

    def cut_behind_a_block(self) -> TamperedError:
        """It ends behind a block, as a whole file may, and its content does not end there."""
        return self.changed(
            f"it ends after {self.length} bytes, at the end of a block but in the middle of its content: it was cut off"
        )

    def wrong_tag(self) -> TamperedError:
        """An authentication tag does not match."""
        return self.changed(
            "its authentication tag does not match its key: bytes were changed, or it is another file (of this table, "
            "of another one, or an older version)"
        )

    def malformed(self, what: str) -> TamperedError:
        """The bytes are not in the format that the table's metadata says."""
        return self.changed(f"expected an encrypted file of {self.length} bytes, but: {what}")

    def of_other_version(self, what: str) -> NotSupportedError:
        """It is encrypted in a way that this version cannot read."""
        return NotSupportedError(
            f"{self._name} cannot be read by this version: {what}",
            "Another program, or a later version of Iceberg, wrote it: read the table with that one, or update. "
            "Nothing indicates that the file was changed.",
        )

    def unreadable(self, what: object) -> IcebergCryptoError:
        """It cannot be read, for a reason that says nothing about its bytes."""
        return IcebergCryptoError(
            f"{self._name} could not be read: {what}",
            "Nothing indicates that the file was changed. Read it again.",
        )

    def with_plaintext_footer(self) -> PlaintextFoundError:
        """It is a Parquet file whose footer anyone can read."""
        return PlaintextFoundError(
            f"Table {self.table}: file {self.location} has a footer that is not encrypted: it reveals the schema and "
            "column statistics, if not more",
            _OF_OTHER_CLIENT,
        )

    def not_authenticated(self, problem: str) -> NotSupportedError:
        """It is a Parquet file that is not encrypted as Iceberg encrypts them."""
        return NotSupportedError(
            f"Table {self.table}: file {self.location} {problem}", _OF_OTHER_CLIENT
        )

    def of_later_key_metadata(self, version: int, known: int) -> NotSupportedError:
        """A later version of Iceberg wrote its key metadata."""
        return NotSupportedError(
            f"{self._name} cannot be read: its key metadata has version {version}, and this reader reads version "
            f"{known}",
            "A later version of Iceberg wrote it: update. Nothing indicates that the file was changed.",
        )

    def unreadable_key_metadata(self, what: str) -> IcebergCryptoError:
        """Its key metadata was encrypted, and its tag was checked: it is what a writer wrote."""
        return IcebergCryptoError(
            f"{self._name} cannot be read: its key metadata cannot be read ({what})",
            "It is as its writer wrote it: find out which program did, and read the table with that one.",
        )

    def length_unknown(self) -> NotSupportedError:
        """A file that was cut off behind a block would look like a whole one."""
        return NotSupportedError(
            f"{self._name} is not read: its key metadata gives no length, so bytes could be missing at its end",
            "iceberg-rust wrote it, or another client that records no length; nothing indicates that it was changed. "
            "CALL <catalog>.system.repair_table(table => ..., confirm => true) gives the files of the current "
            "snapshot, and all manifest lists, their lengths. To read such files as they are, set the catalog property "
            "encryption.files-without-length=accept.",
        )

    def plaintext(self) -> PlaintextFoundError:
        """The table has no key for it."""
        return PlaintextFoundError(
            f"Table {self.table}: file {self.location} is not encrypted: the table has no key for it",
            "A client without encryption, or someone with access to catalog and storage, put it there: find out who, "
            "and verify the table. If its rows are the table's, a catalog with encryption.plaintext-files=allow reads "
            "them, to write them again. A snapshot without the file also lacks what was committed since.",
        )

    @property
    def _name(self) -> str:
        return f"Table {self.table}: {self.location}"
