"""What only our catalog has: the twin stays as it is, and both still agree."""

import shutil
from typing import Any

from harness.files import files_below, plaintext_problem

from pyspark_iceberg_crypto import IcebergCryptoError
from twin.operations.base import Draw, Operation
from twin.tables import Difference, Pair, Phase, Side, file_of, location_of
from twin.values import literal

PLAIN = frozenset({Phase.PLAIN, Phase.COPYING})
ENCRYPTED = frozenset({Phase.SWITCHED, Phase.ENCRYPTED})


class Encrypt(Operation):
    """Of the first snapshots only those stay that branches and tags show."""

    phases = PLAIN
    ours_alone = True

    def run(self, pair: Pair, draw: Draw) -> None:
        if pair.phase is Phase.PLAIN:
            pair.key = draw.pick(["k1", "k2"])
        done = pair.python(pair.ours, f"encrypt_table(spark, {{t}}, {pair.key!r}, progress=False)")
        if not done.committed:
            raise Difference(f"encrypt_table did not commit: {done}")
        switched(pair)
        pair.phase = Phase.SWITCHED


class EncryptPortion(Operation):
    """As a rule it does not commit; if all was copied by then, it does."""

    phases = PLAIN
    ours_alone = True

    def ready(self, pair: Pair) -> bool:
        return bool(pair.snapshots)

    def run(self, pair: Pair, draw: Draw) -> None:
        if pair.phase is Phase.PLAIN:
            pair.key = draw.pick(["k1", "k2"])
        size = draw.pick([1, 4000, 8000])
        done = pair.python(
            pair.ours,
            f"encrypt_table(spark, {{t}}, {pair.key!r}, max_bytes={size}, progress=False)",
        )
        pair.phase = Phase.SWITCHED if done.committed else Phase.COPYING
        if done.committed:
            switched(pair)


def switched(pair: Pair) -> None:
    """What encrypt_table has changed, by its documents, is changed in the twin, too."""
    properties = pair.twin.metadata()["properties"]
    new = {}
    if pair.version < 3:
        new["format-version"] = "3"
    if properties.get("write.format.default") == "orc":
        new["write.format.default"] = "parquet"
    if new:
        every = ", ".join(f"'{key}'='{value}'" for key, value in new.items())
        text = f"ALTER TABLE {pair.twin.table} SET TBLPROPERTIES ({every})"
        pair.script.append(f"spark.sql({text!r})")
        pair.twin.sql(text)
    pair.version = 3
    pair.staged.clear()
    pair.snapshots.clear()


class Purge(Operation):
    phases = frozenset({Phase.SWITCHED})
    ours_alone = True

    def run(self, pair: Pair, draw: Draw) -> None:
        if draw.flag():
            pair.python(pair.ours, "purge_plaintext(spark, {t}, dry_run=True, progress=False)")
        purge = "purge_plaintext(spark, {t}, progress=False)"
        try:
            pair.python(pair.ours, purge)
        except IcebergCryptoError as error:
            if not pair.orphaned or "its folders hold others" not in str(error):
                raise
            delete_orphans(pair)
            pair.python(pair.ours, purge)
        pair.orphaned = False
        pair.phase = Phase.ENCRYPTED


def delete_orphans(pair: Pair) -> None:
    """As the error says: data that is left in plaintext once that of the old tree is deleted is nobody's."""
    for folder in pair.folders:
        for path in files_below(folder / "data"):
            if plaintext_problem(path):
                pair.script.append(f"Path({str(path)!r}).unlink()")
                path.unlink()


class Decrypt(Operation):
    phases = frozenset({Phase.ENCRYPTED})
    ours_alone = True

    def run(self, pair: Pair, draw: Draw) -> None:
        pair.python(pair.ours, "decrypt_table(spark, {t}, confirm=True, progress=False)")
        pair.staged.clear()
        pair.snapshots.clear()
        pair.phase = Phase.PLAIN


class RotateKek(Operation):
    phases = ENCRYPTED

    def run(self, pair: Pair, draw: Draw) -> None:
        pair.python(pair.ours, "rotate_kek(spark, {t})")


class RotateMasterKey(Operation):
    phases = ENCRYPTED

    def run(self, pair: Pair, draw: Draw) -> None:
        key = draw.pick(["k2", "k1"])
        pair.python(pair.ours, f"rotate_master_key(spark, {{t}}, {key!r})")
        pair.key = key


class Reencrypt(Operation):
    phases = ENCRYPTED
    ours_alone = True

    def run(self, pair: Pair, draw: Draw) -> None:
        options = draw.pick([{}, {"partial-progress.enabled": "true"}])
        done = pair.python(pair.ours, f"reencrypt_table(spark, {{t}}, options={options})")
        if done.left:
            raise Difference(f"nobody else writes, and yet it says: {done}")


class Prune(Operation):
    phases = ENCRYPTED

    def run(self, pair: Pair, draw: Draw) -> None:
        pair.python(pair.ours, "prune_encryption_keys(spark, {t})")
        if left := needless(pair.ours.metadata()):
            raise Difference(f"prune_encryption_keys left keys that nothing needs: {left}")


def needless(metadata: dict[str, Any]) -> list[dict[str, Any]]:
    """Keys of no snapshot and no listed statistics file, of which a path's last counts, that are no KEKs either."""
    keys = [{"properties": {}, **key} for key in metadata["encryption-keys"]]
    of_path = {key["properties"].get("statistics-path"): key["key-id"] for key in keys}
    needed = {one.get("key-id") for one in metadata.get("snapshots", ())}
    for kind in ("statistics", "partition-statistics"):
        needed |= {of_path.get(file["statistics-path"]) for file in metadata.get(kind, ())}
    left = [key for key in keys if key["key-id"] not in needed]
    return [key for key in left if "KEY_TIMESTAMP" not in key["properties"]]


class Repair(Operation):
    phases = ENCRYPTED

    def run(self, pair: Pair, draw: Draw) -> None:
        report = pair.python(pair.ours, "repair_table(spark, {t}, confirm=True)")
        wrong = [one for one in report.findings if one.kind != "plaintext left"]
        if wrong or report.unchecked:
            raise Difference(f"nothing is wrong with it, and yet it finds: {report}")


class GoOnInCopy(Operation):
    """rewrite_table_path, the copy of the files that it lists, and register_table: from now on the copy is ours."""

    phases = frozenset({Phase.ENCRYPTED})

    def ready(self, pair: Pair) -> bool:
        return bool(pair.snapshots) and pair.kind != "hadoop"  # where a name is a folder

    def run(self, pair: Pair, draw: Draw) -> None:
        metadata = pair.ours.metadata()
        name = f"{pair.ours.name[:20]}-copy{pair.next()}".replace("-", "_")
        source, target = str(metadata["location"]), f"{pair.folder}/{name}"
        staging = f"{pair.folder}/staging{pair.next()}"
        [row] = pair.ours_alone(
            "CALL {catalog}.system.rewrite_table_path(table => {argument}, "
            f"source_prefix => {literal(source)}, target_prefix => {literal(target)}, "
            f"staging_location => {literal(staging)})"
        )
        pair.script.append(f"copied = copy_files({row.file_list_location!r})")
        copied = copy_files(row.file_list_location)
        copy = Side(pair.spark, pair.ours.catalog, pair.ours.namespace, name)
        text = (
            f"CALL {copy.catalog}.system.register_table(table => {copy.argument}, "
            f"metadata_file => {literal(copied)})"
        )
        pair.script.append(f"spark.sql({text!r})")
        copy.sql(text)
        pair.ours = copy
        pair.folders.append(location_of(copy.metadata()))


def copy_files(file_list: str) -> str:
    """Copies what rewrite_table_path lists; gives the metadata file, which is its last line."""
    line: Any = ""
    for line in file_of(file_list).read_text().splitlines():
        source, target = map(file_of, line.split(","))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    return str(line.split(",")[1])


OURS: list[type[Operation]] = [
    Encrypt,
    EncryptPortion,
    Purge,
    Decrypt,
    RotateKek,
    RotateMasterKey,
    Reencrypt,
    Prune,
    Repair,
    GoOnInCopy,
]
