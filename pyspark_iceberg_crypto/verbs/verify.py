"""The proof that a table's files are encrypted."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pyspark_iceberg_crypto._names import table_name
from pyspark_iceberg_crypto.errors import ConfigurationError
from pyspark_iceberg_crypto.evidence._evidence import Evidence, TableEvidence
from pyspark_iceberg_crypto.jvm import _connect, _jvm
from pyspark_iceberg_crypto.jvm._typed import typed_errors
from pyspark_iceberg_crypto.verbs import _progress, kept_reports


@dataclass(frozen=True)
class VerifyReport(TableEvidence):
    """A `TableReport`, which has the attributes; `Evidence` of what was found.

    The JVM keeps the list of files for ``files`` until ``close()``, or the end of a ``with`` block. Pickled, or copied
    to another process, a report is without that list.
    """

    _spark: SparkSession | None = field(default=None, repr=False, compare=False)
    _result: Any = field(default=None, repr=False, compare=False)

    @property
    def files(self) -> DataFrame:
        """Each file checked, a row each.

        Columns:
            kind string: what it is to the table: data, manifest, manifest list, ...
            path string: where it is.
            format string: what the table's metadata says it is, such as PARQUET.
            length bigint: its length in bytes, by the metadata.
            magic string: what its first bytes say; null: they could not be read.
            encrypted boolean: whether that is an encrypted format; null: they could not be read.
            problem string: what is wrong; null: nothing is.
            unchecked boolean: whether the problem is that it could not be checked.
            code string: the problem in one word, see `Problem`.

        Raises:
            ConfigurationError: the report holds no list: it was closed, read from JSON, or unpickled.
            SparkConnectError: the list is in the server.
        """
        if self._spark is None or self._result is None:
            raise ConfigurationError(
                "this report holds no list of files", "call verify_table again"
            )
        with typed_errors():
            return _jvm.data_frame(self._spark, self._result.files())

    def close(self) -> None:
        """Let the JVM forget the list of files. Calling it again does nothing."""
        if self._result is not None:
            with typed_errors():
                self._result.close()
            object.__setattr__(self, "_result", None)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_spark": None, "_result": None}

    def __enter__(self) -> VerifyReport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def verify_table(
    spark: SparkSession,
    table: str,
    *,
    structure: bool = False,
    deep: bool = False,
    all_snapshots: bool = False,
    sample: float = 1.0,
    seed: int = 0,
    strays: bool = False,
    resume: str | None = None,
    since: str | Path | Evidence | None = None,
    since_key_id: str | None = None,
    recheck: float = 0.01,
    progress: bool | None = None,
) -> VerifyReport:
    """Check that every file of a table's current snapshot, branches and tags is encrypted, or of all its snapshots.

    Args:
        spark: a session that knows the table's catalog.
        table: the table's name, such as "lake.db.t".
        structure: check each file's header, block layout, footer and length, not its first and last bytes only.
        deep: check each byte, by its authentication tag; that includes structure.
        all_snapshots: check what any metadata file of the table's log reaches, not only the current snapshot,
            branches and tags: all snapshots, and of expired ones what is still there; also what the table had before
            it was encrypted in place.
        sample: the share of data and delete files to check, more than 0, up to 1.
        seed: chooses which; the same seed chooses the same files again.
        strays: also look for files below the table's location that no metadata reaches. All snapshots are
            checked then.
        resume: the URI of a folder where outcomes are recorded. A second call with it skips the data and delete
            files that were found correct before. Anyone who can write to it can make files pass, so a new audit has
            a new folder, or `since`.
        since: an earlier report that was made with resume and signed, or its JSON file. The data and delete files that
            it vouches for are not read again, but a share of them. The KMS of the table's catalog checks its
            signature, and the outcomes are compared with what was signed. New ones go to the same folder, so leave
            resume out.
        since_key_id: the master key that must have signed it.
        recheck: the share of those files to check again, more than 0, up to 1. They are chosen at random each time.
        progress: whether to show progress on stderr; None: in a terminal and in a notebook.

    Raises:
        ConfigurationError: an argument is wrong, the folder to resume is of another table or depth, or since is a
            report that cannot vouch for the table's files, or what it vouches for was changed.
        TamperedError: since is not genuine.
        TableNotFoundError: there is no such Iceberg table.
        IcebergCryptoError: the check as a whole could not be done; see the error's type. What could not be
            checked of single files is in the report, which then is not ok.
    """
    table_name(table)
    options = checked_options(
        structure=structure,
        deep=deep,
        all_snapshots=all_snapshots,
        sample=sample,
        seed=seed,
        strays=strays,
        resume=resume,
        since=since,
        since_key_id=since_key_id,
        recheck=recheck,
    )
    with _progress.showing(spark, table, progress) as told:
        if _connect.is_connect(spark):
            return remote(spark, "verify_encryption", table=table, **options)
        return local(spark, _jvm.call(spark, "verifyTable", table, json.dumps(options), told))


def local(spark: SparkSession, result: Any) -> VerifyReport:
    """Make a report of the JVM's VerifyResult, which has the list of files."""
    with typed_errors():
        return VerifyReport.of(json.loads(result.json()), _spark=spark, _result=result)


def remote(spark: SparkSession, operation: str, **given: Any) -> VerifyReport:
    """Have a server of Spark Connect verify."""
    found = _jvm.run(spark, operation, **given)
    return VerifyReport.of(found, _spark=spark, _result=_connect.FilesInServer())


def checked_options(**given: Any) -> dict[str, Any]:
    """Return the options of `verify_table` as Java takes them.

    Raises:
        ConfigurationError: sample or recheck is not a share of the files, the seed is not a whole number, or since is
            not a report.
    """
    seed, since = given["seed"], given["since"]
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ConfigurationError(f"seed={seed!r} is not a whole number", "give one, such as 7")
    for name in ("sample", "recheck"):
        share = given[name]
        if isinstance(share, bool) or not isinstance(share, (int, float)):
            raise ConfigurationError(
                f"{name}={share!r} is not a number", "give more than 0, up to 1"
            )
        if share != share:  # JSON has no NaN
            raise ConfigurationError(
                f"{name} is {share}, which is not a share of the files", "0.01 is one"
            )
    for name in ("structure", "deep", "all_snapshots", "strays"):
        given[name] = bool(given[name])
    return {**given, "since": None if since is None else kept_reports.document(since)}
