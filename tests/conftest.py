"""Fixtures: a Spark session of a worker, with every catalog in it, ours and stock Iceberg's.

And which tests `make test` leaves to `make nightly`, and which share a worker.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for harness, servers and doubles
# Spark takes JAVA_HOME's JDK: then what looks for `java` on the PATH takes that one, too.
os.environ.setdefault(
    "PYSPARK_PYTHON", sys.executable
)  # Spark would take the first python3 of the path
if java_home := os.environ.get("JAVA_HOME"):
    os.environ["PATH"] = os.pathsep.join([f"{java_home}/bin", os.environ["PATH"]])

from harness import used
from harness.jars import BUILT
from harness.lake import Lake
from harness.world import KINDS, World, create_lock_tables, make_world
from pyspark.sql import SparkSession

TESTS = Path(__file__).parent

# A catalog whose metadata is signed: what all share is proved on it. What differs on another one says so by its mark.
BY_DAY = ("jdbc",)
# What differs on each: on one that signs and one that does not.
EACH_BY_DAY = ("jdbc", "rest")
# By night a test runs on one more catalog, which this draws; in `make soak` on all.
SEED = os.environ.get("ICEBERG_CRYPTO_SEED", "1")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    require_named()
    items.sort(key=lambda item: place(group(item.nodeid)))
    leave_to_the_night(items)
    for item in items:
        for why in too_old(item):
            item.add_marker(pytest.mark.skip(why))
        if "spark" in getattr(item, "fixturenames", ()) and group(item.nodeid) not in SESSIONS:
            raise pytest.UsageError(f"{item.nodeid} uses a Spark session: say so in WITH_SPARK")


def too_old(item: pytest.Item) -> Iterator[str]:
    """The reasons of marks `since` that the Spark of these tests, or its Iceberg, does not meet."""
    for mark in item.iter_markers("since"):
        for what, least in mark.kwargs.items():
            if version(getattr(BUILT, what)) < version(least):
                yield mark.args[0]


def version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def leave_to_the_night(items: list[pytest.Item]) -> None:
    """A test of `lake` runs by day on the catalogs of BY_DAY, or of its mark: none named is EACH_BY_DAY.

    By night it runs on one of the others, too, and a test with the mark nightly on one of all. So does a test with the
    mark drawn, with one value of that parameter.
    """
    others: dict[tuple[str, str], list[tuple[str, pytest.Item]]] = {}
    for item in items:
        mark = item.get_closest_marker("catalogs")
        by_day = (mark.args or EACH_BY_DAY) if mark else BY_DAY
        if not set(by_day) <= set(KINDS):
            raise pytest.UsageError(f"{item.nodeid} names a catalog that does not exist: {by_day}")
        params = getattr(getattr(item, "callspec", None), "params", {})
        drawn = item.get_closest_marker("drawn")
        name = drawn.args[0] if drawn else "lake"
        if name not in params:
            if drawn:
                raise pytest.UsageError(f"{item.nodeid} has no parameter {name} to draw")
            continue
        value = params[name]
        if name == "lake" and value not in by_day:
            item.add_marker(pytest.mark.elsewhere)
        if drawn or value not in by_day or item.get_closest_marker("nightly"):
            case = "-".join(part for part in item.callspec.id.split("-") if part != value)  # type: ignore[attr-defined]
            others.setdefault((item.nodeid.partition("[")[0], case), []).append((value, item))
    for test, variants in others.items():
        chosen = Random(f"{SEED} {test}").choice(sorted(value for value, _ in variants))
        for value, item in variants:
            if value != chosen:
                item.add_marker(pytest.mark.soak)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """On Iceberg 1.11 a test that makes deletion vectors ends with their refusal, and counts as skipped."""
    if call.excinfo is not None and BUILT.iceberg.startswith("1.11."):
        refusal = "loses the keys of deletion vectors"
        if refusal in str(call.excinfo.value):
            try:
                pytest.skip(f"Iceberg {BUILT.iceberg} {refusal}: refused")
            except pytest.skip.Exception:
                call.excinfo = pytest.ExceptionInfo.from_current()
    if call.when == "teardown":
        item.user_properties += used.told()  # into the report in JUnit's XML, also from a worker
    yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What long tests have counted, from whichever worker."""
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, value in report.user_properties if report.when == "call" else ():
                if name == "counts":
                    terminalreporter.write_line(str(value))


# Two workers have a Spark session each. Those who use one, but for programs that start one of their own in a world.
SESSIONS = ("spark", "spark of tables")
WITH_SPARK = ("tests/catalog/", "tests/tamper/", "tests/twin/", "tests/kms/test_outage.py")
OF_TABLES = ("tests/catalog/tables/", "tests/tamper/")  # about half, by their time
OF_THEIR_OWN = (
    "test_defaults.py",
    "test_delta.py",
    "test_hudi.py",
    "test_kryo.py",
    "test_keys_out_of_sight.py",
)


def group(nodeid: str) -> str:
    """Tests that share a server: of Spark's session, of its world, of a folder (a KMS), or of a module."""
    path = nodeid.partition("::")[0]
    folder, _, module = path.rpartition("/")
    if path.startswith(WITH_SPARK):
        if module in OF_THEIR_OWN:
            return "world"
        return SESSIONS[path.startswith(OF_TABLES)]
    return folder if folder.count("/") > 1 else path


# What takes longest begins first, or one worker would be left with it in the end.
LONGEST = (
    *SESSIONS,
    "world",
    "tests/test_examples.py",
    "tests/kms/contract",
    "tests/kms/test_every_kms.py",
)


def require_named() -> None:
    """What is named here must be there: a module with a new name would change its worker in silence."""
    paths = [*WITH_SPARK, *OF_TABLES, *(name for name in LONGEST if "/" in name)]
    gone = [path for path in paths if not (TESTS.parent / path).exists()]
    gone += [module for module in OF_THEIR_OWN if not any(TESTS.rglob(module))]
    if gone:
        raise pytest.UsageError(f"{__file__} names what is not there: {', '.join(gone)}")


def place(name: str) -> int:
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One of pytest-xdist's workers runs all tests of a group, so that there is one server for them."""
    from xdist.scheduler import LoadScopeScheduling

    class ByServer(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    return ByServer(config, log)


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Keystore, warehouses and the REST server."""
    made = make_world(tmp_path_factory.mktemp("world"))
    yield made
    made.rest.stop()


@pytest.fixture(scope="session")
def spark(world: World) -> Iterator[SparkSession]:
    """The worker's Spark session; it holds enc_KIND and stock_KIND catalogs, and ours as spark_catalog."""
    builder = SparkSession.builder.appName("iceberg-crypto tests")
    for key, value in world.session_conf().items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    create_lock_tables(session)
    used.used_spark(session)
    yield session
    session.stop()


@pytest.fixture(params=KINDS)
def lake(request: pytest.FixtureRequest, spark: SparkSession, world: World) -> Lake:
    """Our catalog over each of the four."""
    return Lake(spark, world, request.param, f"enc_{request.param}")


@pytest.fixture
def hive(spark: SparkSession, world: World) -> Lake:
    return Lake(spark, world, "hive", "enc_hive")


@pytest.fixture
def hadoop(spark: SparkSession, world: World) -> Lake:
    return Lake(spark, world, "hadoop", "enc_hadoop")
