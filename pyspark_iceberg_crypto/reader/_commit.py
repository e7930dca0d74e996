"""Commits of an encrypted table: PyIceberg's updates, with the keys and members that its models drop, and the MAC.

A change is JSON as of Iceberg's REST specification. A REST server gets the changes; where a catalog keeps a pointer,
they are applied to the document of the metadata file, of which all else stays as it is.
"""

from __future__ import annotations

import copy
import gzip
import json
import logging
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from errno import EACCES, EDQUOT, EMLINK, ENOENT, ENOSPC, ENOTSUP, EPERM, EROFS, EXDEV
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    CommitStateUnknownException,
    ForbiddenError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnauthorizedError,
)
from pyiceberg.io import FileIO
from pyiceberg.schema import Schema
from pyiceberg.table.update import AddSnapshotUpdate

from pyspark_iceberg_crypto.errors import IcebergCryptoError, NotSupportedError
from pyspark_iceberg_crypto.reader import _mac, _pyiceberg, _schemas
from pyspark_iceberg_crypto.reader._checks import KEY_ID
from pyspark_iceberg_crypto.reader._hadoop import current_metadata
from pyspark_iceberg_crypto.reader._io import refuse_writing, writing
from pyspark_iceberg_crypto.reader._manifests import EncryptedSnapshot
from pyspark_iceberg_crypto.reader._pyiceberg import Pointer

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from pyspark_iceberg_crypto.reader._keys import EncryptedKey, TableKeys
    from pyspark_iceberg_crypto.reader._table import EncryptedTable, OpenedTable

_ALLOWED = ("add-snapshot", "set-snapshot-ref", "add-schema", "set-current-schema")
_LOG = logging.getLogger(__name__)
_NOT_LINKED = (EACCES, EDQUOT, EMLINK, ENOENT, ENOSPC, ENOTSUP, EPERM, EROFS, EXDEV)
_BEFORE = "_before_the_commit"
_REFUSALS = (
    *(CommitFailedException, NoSuchTableError),
    *(BadRequestError, ForbiddenError, UnauthorizedError),
)
_NAME_MAPPING = "schema.name-mapping.default"
_ORDER = (  # in which Iceberg's Java writes what a table has from the beginning
    *("format-version", "table-uuid", "location", "last-sequence-number", "last-updated-ms"),
    *("last-column-id", "current-schema-id", "schemas", "default-spec-id", "partition-specs"),
    *("last-partition-id", "default-sort-order-id", "sort-orders", "properties"),
    *("current-snapshot-id", "next-row-id", "encryption-keys", "refs", "snapshots", "statistics"),
    *("partition-statistics", "snapshot-log", "metadata-log"),
)


@contextmanager
def before_the_commit() -> Iterator[None]:
    """Mark errors as ones that came before anything was sent: no commit refers to the files of the change."""
    try:
        yield
    except Exception as error:
        error.__dict__[_BEFORE] = True
        raise


def is_before(error: Exception) -> bool:
    """Whether an error came before anything was sent."""
    return _BEFORE in vars(error)


def is_refusal(error: Exception) -> bool:
    """Whether a catalog said that it did not commit; who asked it twice may tell of the second answer."""
    return isinstance(error, _REFUSALS)


def snapshots_in(updates: Sequence[Any]) -> list[EncryptedSnapshot]:
    """Return the snapshots that updates add."""
    added = [one.snapshot for one in updates if isinstance(one, AddSnapshotUpdate)]
    return [one for one in added if isinstance(one, EncryptedSnapshot)]


def _snapshots_of(changes: Sequence[Any]) -> list[EncryptedSnapshot]:
    return [
        EncryptedSnapshot.model_validate(one["snapshot"]) for one in changes if "snapshot" in one
    ]


def refuse_others(table: str, updates: Sequence[Any]) -> None:
    """Refuse updates other than snapshots, their branches, and schemas."""
    for update in updates:
        is_mapping = update.action == "set-properties" and update.updates.keys() == {_NAME_MAPPING}
        if update.action not in _ALLOWED and not is_mapping:
            refuse_writing(table)


def changes_of(table: EncryptedTable, updates: Sequence[Any], keys: TableKeys) -> list[Any]:
    """Return updates as changes, with the keys that are new in them."""
    refuse_others(table.loaded.table, updates)
    _schemas.require_changes(table.loaded.table, table.metadata, updates)
    known = {one["key-id"] for one in table.loaded.document.get("encryption-keys") or []}
    changes: list[Any] = []
    for update in updates:
        change = json.loads(update.model_dump_json())
        if isinstance(update, AddSnapshotUpdate):
            snapshot = update.snapshot
            if not isinstance(snapshot, EncryptedSnapshot):
                refuse_writing(table.loaded.table)
            change["snapshot"] = json.loads(snapshot.model_dump_json())
            entry = keys.entries[snapshot.key_id or ""]
            for one in (keys.entries[entry.by or ""], entry):
                if one.key_id not in known:
                    changes.append(added_key(one))
                    known.add(one.key_id)
        elif change["action"] == "set-snapshot-ref":
            before = (table.loaded.document.get("refs") or {}).get(change["ref-name"], {})
            change = {**before, **change}  # how long it is kept
        changes.append(change)
    return changes


def added_key(key: EncryptedKey) -> dict[str, Any]:
    """Return the change that adds a key."""
    return {"action": "add-encryption-key", "encryption-key": key.json()}


def changed(table: str) -> str:
    """Say that a change was made for a table that is another by now."""
    return (
        f"Table {table} has been changed since this change began. Nothing was committed. Refresh it, and make the "
        "change again, with another pa.RecordBatchReader if its rows came from one"
    )


def apply(table: str, document: dict[str, Any], changes: Sequence[Any]) -> None:
    """Apply changes to the document of a metadata file.

    Raises:
        CommitFailedException: they were made for another state of the table.
    """
    document["last-updated-ms"] = max(int(time.time() * 1000), document["last-updated-ms"])
    for change in changes:
        match change["action"]:
            case "add-encryption-key":
                document.setdefault("encryption-keys", []).append(change["encryption-key"])
            case "add-snapshot":
                snapshot = change["snapshot"]
                if (
                    snapshot["sequence-number"] <= document["last-sequence-number"]
                    or snapshot["first-row-id"] < document["next-row-id"]
                ):
                    raise CommitFailedException(changed(table))
                document.setdefault("snapshots", []).append(snapshot)
                document["last-sequence-number"] = snapshot["sequence-number"]
                document["next-row-id"] = snapshot["first-row-id"] + snapshot["added-rows"]
            case "set-snapshot-ref":
                told = {k: v for k, v in change.items() if k not in ("action", "ref-name")}
                document.setdefault("refs", {})[change["ref-name"]] = told
                if change["ref-name"] == "main":
                    current = document["current-snapshot-id"] = told["snapshot-id"]
                    entry = {"timestamp-ms": document["last-updated-ms"], "snapshot-id": current}
                    document.setdefault("snapshot-log", []).append(entry)
            case "add-schema":
                added = change["schema"]["schema-id"]
                if any(one["schema-id"] == added for one in document["schemas"]):
                    raise CommitFailedException(changed(table))
                document["schemas"].append(change["schema"])
                highest = Schema.model_validate(change["schema"]).highest_field_id
                document["last-column-id"] = max(document["last-column-id"], highest)
            case "set-current-schema":
                last = document["schemas"][-1]["schema-id"]
                chosen = change["schema-id"]
                document["current-schema-id"] = last if chosen == -1 else chosen
            case "set-properties":
                document["properties"].update(change["updates"])


class Committer:
    """How a kind of catalog commits."""

    def check(self, table: EncryptedTable) -> None:
        """Check that a table can be committed, before anything is written."""

    def prepare(
        self, table: EncryptedTable, changes: list[Any], requirements: Sequence[Any]
    ) -> Callable[[], OpenedTable]:
        """Prepare a commit; an error here means that nothing was committed.

        Returns:
            What commits, and returns the table as it is then. Its errors are refusals of the catalog, or marked as
            `before_the_commit`, or say what is known, and name the snapshots.
        """
        raise NotImplementedError


class Rest(Committer):
    """Sends changes to a REST server."""

    def prepare(
        self, table: EncryptedTable, changes: list[Any], requirements: Sequence[Any]
    ) -> Callable[[], OpenedTable]:
        """See `Committer`. The server knows nothing of KEKs, so the table's are looked at before and after."""
        loaded, keys, made = table.loaded, table.keys, _snapshots_of(changes)
        try:
            now = table.again()  # with credentials that may be newer
        except (IcebergCryptoError, *_REFUSALS):
            raise
        except Exception as error:
            raise IcebergCryptoError(
                f"Table {loaded.table}: its REST server could not be asked for it before the commit: {error}",
                "Nothing was committed. Make the change again once the server answers.",
            ) from error
        had = {one["key-id"] for one in loaded.document.get("encryption-keys") or []}
        keks = [keys.entries[keys.entries[one.key_id or ""].by or ""] for one in made]
        if now.loaded.key_id != loaded.key_id or any(
            one.key_id in had and now.keys.entries.get(one.key_id) != one for one in keks
        ):
            raise CommitFailedException(f"{changed(loaded.table)}: its keys are others")

        def finish() -> OpenedTable:
            location, document = self.post(loaded.table, table, changes, requirements)
            problem = None
            try:
                if (problem := not_kept(loaded.table, made, document, loaded.location)) is None:
                    at = Pointer(table.name(), location, {}, document, now.stored, now.config)
                    return table.loaded_again(at, None)
            except Exception as error:
                raise committed(loaded.table, error, made) from error
            raise problem

        return finish

    def post(
        self, name: str, table: Table, changes: Sequence[Any], requirements: Sequence[Any]
    ) -> tuple[str, dict[str, Any]]:
        """Send changes; returns where the metadata file is, and the metadata."""
        try:
            answer = json.loads(_pyiceberg.post_commit(table, changes, requirements))
            document, location = answer["metadata"], answer["metadata-location"]
        except _REFUSALS:
            raise
        except Exception as error:
            raise unknown(name, error, _snapshots_of(changes)) from error
        return location, document


class InStorage(Committer):
    """Writes metadata files, and has a catalog point to them.

    Attributes:
        signs: whether they have MACs.
    """

    def __init__(self, signs: bool) -> None:
        """Make it of the catalog's settings."""
        self.signs = signs

    def prepare(
        self, table: EncryptedTable, changes: list[Any], requirements: Sequence[Any]
    ) -> Callable[[], OpenedTable]:
        """See `Committer`."""
        for requirement in requirements:
            requirement.validate(table.metadata)
        loaded, keys = table.loaded, table.keys
        document = copy.deepcopy(dict(loaded.document))
        kek = table.writing_kek()
        if kek.key_id not in {one["key-id"] for one in document.get("encryption-keys") or []}:
            added = added_key(kek)
            changes = [added, *(one for one in changes if one != added)]
        apply(loaded.table, document, changes)
        entry = {
            "timestamp-ms": loaded.document["last-updated-ms"],
            "metadata-file": loaded.location,
        }
        log = [*document.get("metadata-log", []), entry]
        most = max(1, int(document["properties"].get("write.metadata.previous-versions-max", 100)))
        document["metadata-log"] = log[-most:]
        version = _mac.Place.of(loaded.location).version + 1
        location, stored = self.made(document, version, keys, kek)
        fresh = table.loaded_again(Pointer(table.name(), location), stored)
        old = [one["metadata-file"] for one in log[:-most]]
        if document["properties"].get("write.metadata.delete-after-commit.enabled") != "true":
            old = []
        folder = _mac.Place.of(location).folder  # who edited the log names no other file
        old = [one for one in old if _mac.Place.of(one).folder == folder]

        def finish() -> OpenedTable:
            try:
                self.swap(table, loaded.location, location, stored)
            except Exception as error:
                if is_before(error) or is_refusal(error):
                    raise
                raise unknown(loaded.table, error, _snapshots_of(changes)) from error
            for one in old:
                delete(table.stored, one)
            return fresh

        return finish

    def made(
        self, document: dict[str, Any], version: int, keys: TableKeys, kek: EncryptedKey
    ) -> tuple[str, bytes]:
        """Make a metadata file; returns where it will be, and its bytes."""
        properties = document["properties"]
        zips = properties.get("write.metadata.compression-codec", "none").lower() == "gzip"
        if self.signs:
            properties.setdefault(_mac.PROPERTY, "")
        location = self.location(
            document, version, ".gz.metadata.json" if zips else ".metadata.json"
        )
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
        if self.signs:
            key = _mac.key(keys.kek(kek), document["table-uuid"])
            text = _mac.sign(text, _mac.Place.of(location), key, kek.key_id)
        return location, gzip.compress(text) if zips else text

    def location(self, document: dict[str, Any], version: int, ending: str) -> str:
        """Return where a version of the metadata will be."""
        raise NotImplementedError

    def swap(self, table: EncryptedTable, old: str, new: str, stored: bytes) -> None:
        """Write a metadata file, and point to it, if the table still has the old one; see `Committer.prepare`."""
        raise NotImplementedError


class Sql(InStorage):
    """Has a row of a SQL database point to the metadata file, as Iceberg's JdbcCatalog does."""

    def location(self, document: dict[str, Any], version: int, ending: str) -> str:
        """See `InStorage`; authenticated metadata is in a folder that says which table it is of."""
        properties = document["properties"]
        if self.signs:
            properties[_mac.METADATA_PATH] = _mac.folder(document)
        folder = properties.get(_mac.METADATA_PATH, f"{document['location']}/metadata")
        return f"{folder.rstrip('/')}/{version:05d}-{uuid.uuid4()}{ending}"

    def swap(self, table: EncryptedTable, old: str, new: str, stored: bytes) -> None:
        """See `InStorage`."""
        name = table.loaded.table
        with before_the_commit():
            write(name, table.stored, new, stored)
        try:
            swapped = _pyiceberg.swap_pointer(table.catalog, table.name(), old, new)
        except CommitStateUnknownException:
            raise
        except Exception as error:
            delete(table.stored, new)
            with before_the_commit():
                raise IcebergCryptoError(
                    f"Table {name}: the database of its catalog could not be changed: {error}",
                    "Nothing was committed. Make the change again once the database can be written.",
                ) from error
        if not swapped:
            delete(table.stored, new)
            raise CommitFailedException(f"Table {name} has been updated by another process")

    def create(
        self, table: str, catalog: Any, identifier: Any, io: FileIO, location: str, stored: bytes
    ) -> None:
        """Create a table with a metadata file.

        Raises:
            TableAlreadyExistsError: there is one of this name.
        """
        write(table, io, location, stored)
        try:
            _pyiceberg.register(catalog, identifier, location)
        except (TableAlreadyExistsError, NoSuchNamespaceError):
            delete(io, location)
            raise


class Hadoop(InStorage):
    """Names the next version's metadata file, which fails if there is one, as Iceberg's HadoopCatalog does.

    That needs a storage where one of two clients fails: a local file system, where a link is made.
    """

    def location(self, document: dict[str, Any], version: int, ending: str) -> str:
        """See `InStorage`."""
        return f"{document['location']}/metadata/v{version}{ending}"

    def check(self, table: EncryptedTable) -> None:
        """See `Committer`: a copy of a folder would be committed in the folder of which it is one."""
        if _mac.METADATA_PATH in table.metadata.properties:
            raise refused_path(table.loaded.table)
        place = _mac.Place.of(f"{table.metadata.location}/metadata/")
        if place.folder != _mac.Place.of(table.loaded.location).folder:
            raise NotSupportedError(
                f"Table {table.loaded.table} is not written in Python: its metadata is of the table in "
                f"{table.metadata.location}",
                "Nothing was written. Open that table; of a copy elsewhere, CALL <catalog>.system.rewrite_table_path "
                "makes a table.",
            )

    def swap(self, table: EncryptedTable, old: str, new: str, stored: bytes) -> None:
        """See `InStorage`."""
        with before_the_commit():
            now = current_metadata(table.stored, old.rpartition("/metadata/")[0])
            with table.stored.new_input(now).open() as stream:
                # a table made again has the same versions
                is_same = now == old and stream.read() == table.loaded.stored
        if not is_same:
            raise CommitFailedException(
                f"Table {table.loaded.table} has been updated by another process"
            )
        self.create(table.loaded.table, new, stored)

    def create(self, table: str, location: str, stored: bytes) -> None:
        """Put a version in place, and write the version hint.

        Raises:
            CommitFailedException: there is this version already.
        """
        path = local(location)
        if path is None:
            raise refused_storage(table, location)
        unnamed = path.with_name(f"{uuid.uuid4()}.metadata.json")
        try:
            with before_the_commit(), writing(table, location):
                path.parent.mkdir(parents=True, exist_ok=True)
                _write_local(unnamed, stored)
            named = _link(table, unnamed, path)
        finally:
            with suppress(OSError):
                unnamed.unlink()
        if not named:
            raise CommitFailedException(f"Table {table}: another process wrote {location}")
        version = _mac.Place.of(location).version
        hint = path.with_name(f"{uuid.uuid4()}-version-hint.temp")
        try:
            _write_local(hint, str(version).encode())
            hint.replace(path.with_name("version-hint.text"))
            path.with_name(".version-hint.text.crc").unlink(
                missing_ok=True
            )  # Hadoop's, of the last
        except OSError as error:  # readers look for later versions than that of the hint
            _LOG.warning("The version hint of %s could not be written: %s", table, error)


def local(location: str) -> Path | None:
    """Return the path of a local file; None if it is in another storage."""
    if not location.startswith("file:"):
        return None if "://" in location else Path(location)
    path = location.removeprefix("file:").removeprefix("//")
    return Path(path) if path.startswith("/") else None


def refused_path(table: str) -> NotSupportedError:
    """Of a Hadoop catalog's table whose metadata would be elsewhere: Iceberg's Java could not commit to it."""
    return NotSupportedError(
        f"Table {table} is not written in Python: it has {_mac.METADATA_PATH}, and is of a Hadoop catalog, which has "
        "none",
        "Nothing was written. Leave that property out.",
    )


def refused_storage(table: str, location: str) -> NotSupportedError:
    """Where two clients could both commit the same version."""
    return NotSupportedError(
        f"Table {table} is not written in Python: {location} is not in a local file system, where a commit of a Hadoop "
        "catalog fails if another one was made at the same time",
        "Nothing was written. Use a REST or SQL catalog, or Spark.",
    )


def refused_file(table: str) -> NotSupportedError:
    """Of a table that was opened as one state of it."""
    return NotSupportedError(
        f"Table {table} is not written in Python: it was opened by a metadata file, which no commit changes",
        "Nothing was written. Open it by its name in its catalog, or the folder of a Hadoop catalog's table.",
    )


def refused_catalog(table: str, catalog: object) -> NotSupportedError:
    """Of catalogs that are only read."""
    return NotSupportedError(
        f"Table {table} is not written in Python: its catalog is of class {type(catalog).__name__}",
        "Nothing was written. Catalogs whose tables are written are RestCatalog, SqlCatalog and the folder of a Hadoop "
        "catalog's warehouse; use Spark for others.",
    )


def refused_server(
    table: str, made: str = "The table was created, and cannot be used: drop it."
) -> NotSupportedError:
    """Make the error of a server that drops keys; without what was made of a table that is new."""
    return NotSupportedError(
        f"Table {table}: its REST server did not keep the encryption keys that it was sent",
        f"{made} Update the server to one that supports encryption-keys of format version 3.",
    )


def _undo(snapshot: EncryptedSnapshot, document: Mapping[str, Any]) -> str:
    """Say how to take a snapshot out of its branch, which may have later commits by now."""
    refs = document.get("refs") or {}
    names = [name for name in refs if refs[name]["snapshot-id"] == snapshot.snapshot_id]
    branch = f"branch '{names[0]}'" if names else "its branch"
    if snapshot.parent_snapshot_id is not None:
        back = f"roll {branch} back to snapshot {snapshot.parent_snapshot_id}"
        return f"{back}; commits to it since are lost with that"
    return "use another table" if names in ([], ["main"]) else f"drop {branch}"


def not_kept(
    table: str,
    made: Sequence[EncryptedSnapshot],
    document: Mapping[str, Any],
    before: str,
) -> IcebergCryptoError | None:
    """Return the error of a table that lacks the keys of snapshots that were committed; None if all is well.

    Args:
        table: its name.
        made: the snapshots.
        document: its metadata now.
        before: its metadata file from before the commit.
    """
    keys = {one["key-id"]: one for one in document.get("encryption-keys") or []}
    by_id = {one["snapshot-id"]: one.get("key-id") for one in document.get("snapshots") or []}
    master_key = document["properties"].get(KEY_ID)
    if master_key is None:
        return None  # other checks say more
    for one in made:
        entry = keys.get(one.key_id)
        if entry is None or by_id.get(one.snapshot_id, one.key_id) != one.key_id:
            return refused_server(
                table,
                f"Snapshot {one.snapshot_id} was committed, and cannot be read; the rows from before it can. Do not "
                "drop the table, as the server may delete its files: keep the source of the rows, save "
                f"{before or 'its metadata file from before'}, {_undo(one, document)}; if its keys are gone, too, "
                "register that file in a catalog that keeps keys.",
            )
        kek = keys.get(entry["encrypted-by-id"])
        if kek is None or kek["encrypted-by-id"] != master_key:
            return IcebergCryptoError(
                f"Table {table}: snapshot {one.snapshot_id} was committed, and its KEK {entry['encrypted-by-id']} is "
                f"not among the keys of '{master_key}'",
                "Another client changed the table's keys at the same time. If the snapshot can be read, run "
                "rotate_master_key again, and keep the former master key until then. If it cannot be read, "
                f"{_undo(one, document)}, and make the change again.",
            )
    return None


def unknown(table: str, why: object, made: Sequence[Snapshot] = ()) -> CommitStateUnknownException:
    """Make the error of a commit of which nobody knows whether it was made, of these snapshots."""
    return CommitStateUnknownException(
        f"Table {table}: it is not known whether the change was committed: {_problem(why)}\n"
        "  hint: Nothing was deleted: the table may have the files that were written. Open it again before anything "
        f"else. {_look_for(made)}"
    )


def unknown_of_plaintext(
    table: str, why: str, made: Sequence[int], written: Sequence[str]
) -> CommitStateUnknownException:
    """Make the error of a refused commit of a plaintext table that cannot be written or loaded here any more."""
    if not made:
        return unknown(table, why)
    ids, files = ", ".join(map(str, made)), ", ".join(written)
    return CommitStateUnknownException(
        f"Table {table}: it is not known whether the change was committed: its catalog refused it, perhaps because "
        f"it was asked twice. {why}\n"
        f"  hint: Nothing was deleted. The change was made if the table has, or had, snapshot {ids}. Look in the table "
        "itself; if it was encrypted, also in the metadata file that its property encryption.plaintext-metadata names; "
        "if it was renamed, in the table under its other name. Only if it never had it, delete "
        f"{files}, which have rows in plaintext, and make the change again."
    )


def committed(
    table: str, why: object, made: Sequence[Snapshot] = ()
) -> CommitStateUnknownException:
    """Make the error of a commit that was made, of a table that is refused since."""
    named = f" as snapshot {_ids(made)}" if made else ""
    return CommitStateUnknownException(
        f"Table {table}: the change was committed{named}, but the table as it is now is refused: "
        f"{_problem(why)}\n  hint: Do not make the change again. Find out what is wrong with the table."
    )


def _problem(why: object) -> object:
    """What went wrong: not the hint of an error that says that nothing was committed."""
    return why.message if isinstance(why, IcebergCryptoError) else why


def _look_for(made: Sequence[Snapshot]) -> str:
    if not made:
        return "Make the change again only if the table does not have it."
    return (
        f"The change was made if the table has, or had, snapshot {_ids(made)}: its snapshots are listed until they "
        "expire. If it never had it, make the change again."
    )


def _ids(made: Sequence[Snapshot]) -> str:
    return ", ".join(str(one.snapshot_id) for one in made)


def in_order(document: dict[str, Any]) -> dict[str, Any]:
    """Return a new table's document with its members in the order of Iceberg's Java, with none missing."""
    whole: dict[str, Any] = {
        **{"refs": {}, "snapshots": [], "statistics": [], "partition-statistics": []},
        **{"snapshot-log": [], "metadata-log": [], "next-row-id": 0},
        **document,
    }
    return {name: whole[name] for name in _ORDER if name in whole}


def write(table: str, io: FileIO, location: str, stored: bytes) -> None:
    """Write a metadata file, which must not be there."""
    with writing(table, location), io.new_output(location).create() as stream:
        stream.write(stored)


def _link(table: str, unnamed: Path, path: Path) -> bool:
    """Give a file its name; False if there is one of this name."""
    try:
        os.link(unnamed, path)
    except FileExistsError:
        return path.samefile(unnamed)  # of NFS, which may do it twice
    except OSError as error:
        if error.errno not in _NOT_LINKED:
            raise
        with before_the_commit(), writing(table, str(path)):
            raise
    return True


def _write_local(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def delete(io: FileIO, location: str) -> bool:
    """Delete a file that no table refers to; says whether it is gone.

    An error is logged: another one led here, or a commit was made.
    """
    try:
        io.delete(location)
    except FileNotFoundError:
        pass  # nothing was written yet
    except Exception as error:  # noqa: BLE001 (see above)
        _LOG.warning("%s could not be deleted: %s", location, error)
        return False
    return True
