"""REST servers that create no table in a transaction, as Glue's: CREATE ... AS SELECT all the same."""

from types import SimpleNamespace
from typing import Any
from urllib.parse import urlparse

import pytest
from doubles.faults import FaultProxy
from harness.files import MARKER, everything_below
from harness.lake import Lake
from harness.world import World
from pyspark.sql import SparkSession

PROPERTIES = "USING iceberg TBLPROPERTIES ('encryption.key-id'='k1')"


@pytest.fixture
def lake(spark: SparkSession, world: World) -> Lake:
    rest = Lake(spark, world, "rest", "enc_rest")
    return rest.with_options({"header.X-Refuse": "stage-create 400 InvalidInputException"})


@pytest.mark.nightly
def test_create_as_select(lake: Lake) -> None:
    rows = f"AS SELECT id, '{MARKER}' AS note FROM range(3)"
    for number, create in enumerate(("CREATE TABLE", "CREATE OR REPLACE TABLE")):
        table = lake.table(f"t{number}")
        lake.run(f"{create} {table} {PROPERTIES} {rows}")
        assert lake.ids(table) == [0, 1, 2]
        lake.run(f"INSERT INTO {table} SELECT 3, '{MARKER}'")
        lake.run(f"CREATE OR REPLACE TABLE {table} USING iceberg {rows}")
        assert lake.ids(table) == [0, 1, 2]
        assert lake.magics(f"t{number}") == {b"PARE", b"AGS1"}
    with pytest.raises(Exception, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        lake.sql(f"CREATE TABLE {lake.table('t0')} {PROPERTIES} {rows}")
    assert lake.ids(lake.table("t0")) == [0, 1, 2]


def test_a_statement_that_fails_leaves_nothing(lake: Lake) -> None:
    """In one task: Spark leaves the files of tasks that were done, as with any INSERT."""
    for create in ("CREATE TABLE", "CREATE OR REPLACE TABLE"):
        with pytest.raises(
            Exception, match=r"(\[USER_RAISED_EXCEPTION\]|RuntimeException:) on purpose"
        ):
            lake.sql(
                f"{create} {lake.table()} {PROPERTIES} "
                "AS SELECT id, IF(id > 5, raise_error('on purpose'), id) AS x FROM range(0, 9, 1, 1)"
            )
        assert not lake.tables()
        assert not everything_below(lake.folder)


def test_a_table_that_another_client_used_stays(lake: Lake) -> None:
    """What fails drops the table that it made, and no other."""
    other = lake.with_options({})
    with pytest.raises(
        Exception, match=r"(\[USER_RAISED_EXCEPTION\]|RuntimeException:) on purpose"
    ):
        lake.sql(f"CREATE TABLE {lake.table()} {PROPERTIES} AS SELECT raise_error('on purpose')")
    lake.sql(f"CREATE TABLE {lake.table()} (id BIGINT, note STRING) {PROPERTIES}")
    other.run(f"INSERT INTO {other.table()} VALUES (1, '{MARKER}')")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        lake.sql(f"CREATE TABLE {lake.table()} {PROPERTIES} AS SELECT raise_error('on purpose')")
    assert other.ids(other.table()) == [1]


class AnswersFirst(FaultProxy):
    """A gateway that answers a commit of rows with 504 before the server has made it."""

    late: Any = None
    body = b""

    def ask(self, request: Any, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        if self.late is not None or b'"add-snapshot"' not in body:
            return super().ask(request, body)
        headers = {k: v for k, v in request.headers.items() if k.lower() != "content-length"}
        self.late = SimpleNamespace(command="POST", path=request.path, headers=headers)
        self.body = body
        return 504, [], b""

    def arrive(self) -> None:
        assert super().ask(self.late, self.body)[0] == 200


def test_a_table_whose_commit_may_be_made_late_stays(lake: Lake) -> None:
    port = urlparse(lake.world.ours("rest")["uri"]).port
    assert port is not None
    proxy = AnswersFirst(port).start()
    refuses = {"header.X-Refuse": "stage-create 400 InvalidInputException", "uri": proxy.url}
    try:
        through = lake.with_options(refuses)
        with pytest.raises(Exception, match="CommitStateUnknownException"):
            through.sql(
                f"CREATE TABLE {through.table()} {PROPERTIES} AS SELECT 1 AS id, '{MARKER}' AS note"
            )
        proxy.arrive()
    finally:
        proxy.stop()
    fresh = lake.with_options({})
    assert fresh.ids(fresh.table()) == [1]
