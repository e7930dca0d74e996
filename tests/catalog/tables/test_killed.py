"""kill -9 of encrypt_table, decrypt_table and reencrypt_table at random points, with a reader beside them."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import pytest
from harness.files import ENCRYPTED_MAGIC, MARKER, magic, path_of
from harness.lake import COLUMNS, Lake, tblproperties
from harness.sessions import OtherSession, process_id
from harness.world import World
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import (
    decrypt_table,
    encrypt_table,
    purge_plaintext,
    reencrypt_table,
    verify_table,
)

LOG = logging.getLogger(__name__)
KILLS = int(os.environ.get("ICEBERG_CRYPTO_KILLS", "3"))
FILES = 6
ONE_FILE_A_GROUP = ("spark.iceberg-crypto.encrypt.files-per-group", "1")
ALL = [*range(FILES), *range(100, 100 + FILES)]
EXPECTED = [i for i in ALL if i not in (3, 104)]

pytestmark = [pytest.mark.nightly, pytest.mark.drawn("kind")]
kinds = pytest.mark.parametrize("kind", ["hadoop", "jdbc", "rest"])


class Killed:
    """Tables t0, t1, ... of a catalog, each in use until an operation on it was done."""

    def __init__(self, spark: SparkSession, world: World, kind: str, folder: Path):
        self.lake = Lake(spark, world, kind, f"enc_{kind}")
        self.folder = folder
        self.random = Random(os.environ.get("ICEBERG_CRYPTO_SEED", "1"))
        self.reads = 0
        self.kills = 0
        self.tables = 0
        self.seconds = 0.0  # an operation that is left alone

    @property
    def table(self) -> str:
        return self.lake.table(self.name)

    @property
    def name(self) -> str:
        return f"t{self.tables}"

    def create(self, key: str | None) -> None:
        """Twelve rows in six files, of which two are deleted; a tag shows all."""
        properties = {"format-version": "3", "write.delete.mode": "merge-on-read"}
        if key is not None:
            properties["encryption.key-id"] = key
        self.tables += 1
        self.lake.sql(
            f"CREATE TABLE {self.table} ({COLUMNS}) USING iceberg {tblproperties(properties)}"
        )
        for i in range(FILES):
            self.lake.sql(
                f"INSERT INTO {self.table} SELECT /*+ COALESCE(1) */ * FROM VALUES "
                f"({i}, '{MARKER}-{i}', 'p'), ({100 + i}, '{MARKER}-{100 + i}', 'p')"
            )
        self.lake.sql(f"ALTER TABLE {self.table} CREATE TAG all_of_them")
        self.lake.sql(f"DELETE FROM {self.table} WHERE id IN (3, 104)")

    def kill(self, procedure: str, arguments: str = "") -> None:
        """Runs a procedure in a session of its own, which is killed at any time; then looks at the rows."""
        conf = {
            **self.lake.world.session_conf(self.folder / f"metastore{self.kills}"),
            ONE_FILE_A_GROUP[0]: ONE_FILE_A_GROUP[1],
        }
        call = f"CALL {self.lake.catalog}.system.{procedure}('{self.lake.namespace}.{self.name}'{arguments})"
        other = OtherSession(conf)
        process = other.do(process_id)
        ended = threading.Event()

        def run() -> None:
            with suppress(Exception):
                other.sql(call)
            ended.set()

        thread = threading.Thread(target=run)
        with self.read():
            began = time.monotonic()
            thread.start()
            if self.seconds == 0.0:  # the first one is left alone, and says how long it takes
                thread.join()
                self.seconds = time.monotonic() - began
            else:
                self.kills += 1
                ended.wait(self.random.random() * self.seconds)
            os.kill(process, signal.SIGKILL)
            thread.join()
        with suppress(Exception):
            other.__exit__(None, None, None)
        self.check()

    @contextmanager
    def read(self) -> Iterator[None]:
        """Meanwhile a reader in this session sees the same rows every time."""
        done = threading.Event()
        seen: list[list[int] | BaseException] = []

        def run() -> None:
            while not seen or not done.wait(0.2):  # the other session is to run, too
                try:
                    seen.append(self.ids())
                except BaseException as error:  # noqa: BLE001 (it is looked at below)
                    seen.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
        assert seen and all(rows == EXPECTED for rows in seen), seen
        self.reads += len(seen)

    def ids(self) -> list[int]:
        self.lake.sql(f"REFRESH TABLE {self.table}")
        return self.lake.ids(self.table)

    def check(self) -> None:
        assert self.ids() == EXPECTED
        assert self.lake.ids(self.table, "VERSION AS OF 'all_of_them'") == ALL

    def key_id(self) -> str | None:
        return self.lake.properties(self.table).get("encryption.key-id")

    def run(self, create: Callable[[], None], kill: Callable[[], None], done: Callable[[], bool],
            finish: Callable[[], object], prove: Callable[[], None]) -> None:  # fmt: skip
        """Kills until it was often enough; what was done is proved, and another table begun."""
        before_the_end = 0
        while self.kills < KILLS:
            create()
            while self.kills < KILLS and not done():
                kill()
                before_the_end += not done()
            if not done():
                finish()
            self.check()
            prove()
        LOG.info(
            "%s: %d kills within %.1f s, %d of them before the commit; %d tables; %d reads beside them",
            self.lake.kind,
            self.kills,
            self.seconds,
            before_the_end,
            self.tables,
            self.reads,
        )


@pytest.fixture
def killed(spark: SparkSession, world: World, kind: str, tmp_path: Path) -> Killed:
    return Killed(spark, world, kind, tmp_path)


@kinds
def test_encrypt_table_is_killed_and_goes_on(killed: Killed) -> None:
    lake = killed.lake

    def prove() -> None:
        with verify_table(lake.spark, killed.table, deep=True) as report:
            assert report.ok, str(report)
        purge_plaintext(lake.spark, killed.table)
        killed.check()
        log = (lake.folder / killed.name / "metadata").glob("_encryption-*/*")
        assert list(log) == []
        left = lake.plaintext_files(killed.name)
        assert not any(path.stat().st_size for path in left), left  # a kill may leave empty files
        with verify_table(lake.spark, killed.table, deep=True, strays=True) as report:
            assert report.ok, str(report)

    killed.run(
        lambda: killed.create(None),
        lambda: killed.kill("encrypt_table", ", 'k1'"),
        lambda: killed.key_id() == "k1",
        lambda: encrypt_table(lake.spark, killed.table, "k1"),
        prove,
    )


@kinds
def test_decrypt_table_is_killed_and_begins_anew(killed: Killed) -> None:
    lake = killed.lake

    def prove() -> None:
        files = lake.sql(f"SELECT DISTINCT file_path FROM {killed.table}.all_files")
        paths = [path_of(file.file_path) for file in files]
        assert paths and not any(magic(path) in ENCRYPTED_MAGIC for path in paths)
        encrypt_table(lake.spark, killed.table, "k2")
        killed.check()

    killed.run(
        lambda: killed.create("k1"),
        lambda: killed.kill("decrypt_table", ", true"),
        lambda: killed.key_id() is None,
        lambda: decrypt_table(lake.spark, killed.table, confirm=True),
        prove,
    )


@kinds
def test_reencrypt_table_is_killed_and_begins_anew(killed: Killed) -> None:
    """Its history shows what it did, and main has no earlier file."""
    lake = killed.lake
    before: dict[str, object] = {}

    def main() -> set[str]:
        return {row.file_path for row in lake.sql(f"SELECT file_path FROM {killed.table}.files")}

    def create() -> None:
        killed.create("k1")
        before.update(files=main(), history=lake.history(killed.table))

    def prove() -> None:
        after = lake.history(killed.table)
        assert {i: after[i] for i in before["history"]} == before["history"]  # type: ignore[attr-defined]
        assert all(rows == EXPECTED for i, rows in after.items() if i not in before["history"])  # type: ignore[operator]
        assert not main() & before["files"]  # type: ignore[operator]
        with verify_table(lake.spark, killed.table, deep=True, all_snapshots=True) as report:
            assert report.ok, str(report)

    killed.run(
        create,
        lambda: killed.kill("reencrypt_table"),
        lambda: not main() & before["files"],  # type: ignore[operator]
        lambda: reencrypt_table(lake.spark, killed.table),
        prove,
    )
