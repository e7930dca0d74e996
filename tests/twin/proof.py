"""That a table which says it is encrypted is: by its bytes, and by verify_table, which finds what was changed, too."""

import json
from pathlib import Path

from harness.files import change, files_below, flipped, plaintext_problem

from pyspark_iceberg_crypto import IcebergCryptoError, verify_table
from twin.tables import Difference, Pair, Phase

SIGNED = ("jdbc", "hadoop")  # catalogs behind ours where metadata.json is authenticated


def no_plaintext(pair: Pair, seen: dict[Path, tuple[int, int]]) -> None:
    """By magic and marker, in all folders that the table has and had."""
    if pair.phase is not Phase.ENCRYPTED:
        return
    for folder in pair.folders:
        for path in files_below(folder):
            stat = path.stat()
            state = stat.st_size, stat.st_mtime_ns
            if seen.get(path) == state:
                continue
            if problem := plaintext_problem(path):
                raise Difference(problem)
            seen[path] = state


def verified(pair: Pair, depth: str = "structure") -> None:
    if not pair.encrypted:
        return
    everything = pair.phase is Phase.ENCRYPTED
    with verify_table(
        pair.spark,
        pair.ours.table,
        depth=depth,
        all_snapshots=everything,
        strays=everything,
        progress=False,
    ) as report:
        left = [one for one in report.problems if "purge_plaintext" not in str(one)]
        if not report.ok and (everything or left):
            raise Difference(f"verify_table: {report}")


CHANGES = ("flip", "swap", "truncate", "gone", "metadata")


def planted_change_is_found(pair: Pair, how: str, number: int) -> str | None:
    """Changes one file of the table, and verifies. For the end of a history: the table is damaged then.

    Returns:
        What was changed; None where nothing could be.
    """
    if pair.phase is not Phase.ENCRYPTED:
        return None
    files = reached(pair)
    if how == "metadata":
        if pair.kind not in SIGNED:
            return None
        path = Path(pair.ours.metadata()["metadata-file"].removeprefix("file:"))
        metadata = json.loads(path.read_bytes())
        metadata["last-updated-ms"] += 1
        content: bytes | None = json.dumps(metadata).encode()
    elif not files:
        return None
    else:
        path = files[number % len(files)]
        bytes_ = path.read_bytes()
        others = [one for one in files if one != path and one.suffix == path.suffix]
        if how == "swap" and others:
            content = others[number % len(others)].read_bytes()
        elif how == "truncate":
            content = bytes_[: len(bytes_) * 2 // 3]
        elif how == "gone":
            content = None
        else:
            content = flipped(bytes_, number * len(bytes_) // 60)
    pair.script.append(f"# changed ({how}): {path}")
    change(path, content)
    pair.ours.refresh()
    try:
        with verify_table(
            pair.spark, pair.ours.table, depth="deep", all_snapshots=True, progress=False
        ) as report:
            if report.ok:
                raise Difference(f"verify_table does not find the change ({how}) of {path}")
    except IcebergCryptoError:
        pass  # the table cannot even be loaded
    return how


def reached(pair: Pair) -> list[Path]:
    """Manifest lists, manifests, data and delete files of all snapshots, as they were made."""
    table = pair.ours.table
    lists = [one["manifest-list"] for one in pair.ours.metadata().get("snapshots", ())]
    rows = pair.ours.sql(
        f"SELECT path FROM {table}.all_manifests UNION SELECT file_path FROM {table}.all_files"
    )
    found = {Path(path.removeprefix("file:")) for path in (*lists, *(row[0] for row in rows))}
    return sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.name))
