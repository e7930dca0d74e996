"""Fixtures: all KMSs, and one JVM for their clients."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness.backends import Backend, start
from harness.jvm import start_jvm
from harness.keystore import few_iterations
from harness.subject import EVERY, Subject, make_subject

BY_DAY = (
    "test_round_trip[hadoop-16]",
    "test_rotation[hadoop]",
    "test_cut_off_or_longer[hadoop]",
    "test_of_another_key[hadoop]",
    "test_a_key_that_is_missing[hadoop]",
    "test_no_secret_travels[hadoop]",
    "test_an_outage[unavailable-hadoop]",
    "test_rotated[hadoop]",
)
"""Of Hadoop KMS, whose server is slow to start and to answer; the others run by night, and so do all of Ranger KMS."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    require_named(config, items)
    for item in items:
        if kind_of(item) in ("hadoop", "ranger") and item.name not in BY_DAY:
            item.add_marker(pytest.mark.nightly)


def require_named(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where all tests of this folder are collected, those of BY_DAY must be among them."""
    here = Path(__file__).parent
    collected = [item for item in items if item.path.parent == here]
    modules = {item.path for item in collected}
    if modules == set(here.glob("test_*.py")) and not any("::" in arg for arg in config.args):
        gone = set(BY_DAY) - {item.name for item in collected}
        if gone:
            raise pytest.UsageError(f"{__file__} names what is not there: {', '.join(gone)}")


def kind_of(item: pytest.Item) -> str | None:
    """The KMS that a test is for, where it is for one."""
    return item.callspec.params.get("kms") if hasattr(item, "callspec") else None


@pytest.fixture(scope="session")
def backends(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Backend]]:
    """The servers. By day, Ranger KMS's jars may not be there."""
    folder = tmp_path_factory.mktemp("contract")
    chosen = set(map(kind_of, request.session.items))
    wanted = [kind for kind in EVERY if kind != "ranger" or kind in chosen]
    started = {kind: start(kind, folder / kind) for kind in wanted}
    yield started
    for backend in started.values():
        backend.stop()


@pytest.fixture(autouse=True)
def environment(backends: dict[str, Backend]) -> Iterator[None]:
    """What the backends want of their users' environment: only during these tests, as others share the process."""
    with users_of(backends):
        yield


@contextmanager
def users_of(backends: dict[str, Backend]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        few_iterations(patch)
        for backend in backends.values():
            for name, value in backend.environment.items():
                patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def subjects(
    backends: dict[str, Backend], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Subject]]:
    """All of them, and one JVM for their clients."""
    options = [option for backend in backends.values() for option in backend.java]
    with users_of(backends):
        jvm = start_jvm(tmp_path_factory.mktemp("jvm") / "log", dict(os.environ), options)
        made = {kind: make_subject(backend, jvm) for kind, backend in backends.items()}
    yield made
    jvm.stop()


@pytest.fixture(params=EVERY)
def kms(request: pytest.FixtureRequest, subjects: dict[str, Subject]) -> Iterator[Subject]:
    found = subjects[request.param]
    yield found
    if found.backend.proxy:
        found.backend.proxy.next.clear()
        found.backend.proxy.mode = "pass"
