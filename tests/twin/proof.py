"""That a table which says it is encrypted is: by its bytes, and by verify_table, which finds what was changed, too."""

import json
from pathlib import Path

from harness.files import change, files_below, flipped, plaintext_problem

from pyspark_iceberg_crypto import TamperedError, verify_table
from twin.tables import Difference, Pair, Phase, file_of

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


def verified(pair: Pair, deep: bool = False) -> None:
    if not pair.encrypted:
        return
    everything = pair.phase is Phase.ENCRYPTED
    with verify_table(
        pair.spark,
        pair.ours.table,
        structure=True,
        deep=deep,
        all_snapshots=everything,
        strays=everything,
        progress=False,
    ) as report:
        left = [one for one in report.problems if "purge_plaintext" not in str(one)]
        if not report.ok and (everything or left):
            raise Difference(f"verify_table: {report}")


CHANGES = ("flip", "swap", "truncate", "gone", "metadata")
# What accuses someone (docs/tamper.md, "What is called tampered"); anything else is a failure of the check.
ACCUSING = {"plaintext", "missing", "truncated", "appended", "wrong-format", "tampered"}


def planted_change_is_found(pair: Pair, how: str, number: int) -> str | None:
    """Changes one file of the table, and verifies. For the end of a history: the table is damaged then.

    Returns:
        What was done: "flip" instead of "swap" where there is one file of a kind; None where nothing could be.
    """
    if pair.phase is not Phase.ENCRYPTED or (how == "metadata" and pair.kind not in SIGNED):
        return None
    files = reached(pair)
    if how == "metadata":
        path = file_of(pair.ours.metadata()["metadata-file"])
    elif files:
        path = files[number % len(files)]
    else:
        return None
    others = [one for one in files if one != path and one.suffix == path.suffix]
    if how == "swap" and not others:
        how = "flip"
    before = path.read_bytes()
    at = number * len(before) // 60
    content: bytes | None = None
    if how == "metadata":
        metadata = json.loads(before)
        metadata["last-updated-ms"] += 1
        content = json.dumps(metadata).encode()
    elif how == "swap":
        content = others[number % len(others)].read_bytes()
    elif how == "truncate":
        content = before[: len(before) * 2 // 3]
    elif how == "flip":
        content = flipped(before, at)
    pair.script.append(f"# changed ({how}): {path}")
    change(path, content)
    pair.ours.refresh()
    told = told_of(pair, path)
    later = how == "flip" and says_version(before, at)
    if not told & (ACCUSING | ({"unreadable"} if later else set())):
        raise Difference(f"verify_table does not find the change ({how}) of {path}: {told}")
    return how


def told_of(pair: Pair, path: Path) -> set[str]:
    """What verify_table says of a file, in words of its report."""
    try:
        with verify_table(
            pair.spark, pair.ours.table, deep=True, all_snapshots=True, progress=False
        ) as report:
            return {one.code for one in report.problems if file_of(one.path) == path}
    except TamperedError as error:  # the table cannot even be loaded
        return {"tampered"} if path.name in str(error) else set()


def says_version(content: bytes, at: int) -> bool:
    """Whether a byte tells a reader how to read the file: changed, it may be what a later version writes."""
    if content[:4] == b"PARE":
        return at == 3 or at >= len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    return at < 8  # of AGS1: magic and length of blocks


def reached(pair: Pair) -> list[Path]:
    """Manifest lists, manifests, data and delete files of all snapshots, as they were made."""
    table = pair.ours.table
    lists = [one["manifest-list"] for one in pair.ours.metadata().get("snapshots", ())]
    rows = pair.ours.sql(
        f"SELECT path FROM {table}.all_manifests UNION SELECT file_path FROM {table}.all_files"
    )
    found = {file_of(path) for path in (*lists, *(row[0] for row in rows))}
    return sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.name))
