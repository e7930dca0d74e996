"""Fixtures: all KMSs, and one JVM for their clients."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from harness.backends import Backend, start
from harness.jvm import start_jvm
from harness.keystore import few_iterations
from harness.subject import EVERY, Subject, make_subject

BY_NIGHT = ("hadoop", "ranger", "keystore", "ministack")
"""Their servers are slow to start and to answer, and by day their jars may not be there.

A keystore's changes start JVMs, and by day kms/keystore and all tests on tables use one. Ministack is a second AWS,
which kms/aws uses by day for what moto has not.
"""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if kind_of(item) in BY_NIGHT:
            item.add_marker(pytest.mark.nightly)


def kind_of(item: pytest.Item) -> str | None:
    """The KMS that a test is for, where it is for one."""
    return item.callspec.params.get("kms") if hasattr(item, "callspec") else None


@pytest.fixture(scope="session")
def backends(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Backend]]:
    """The servers."""
    folder = tmp_path_factory.mktemp("contract")
    chosen = {
        kind_of(item)
        for item in request.session.items
        if "backends" in getattr(item, "fixturenames", ())
    }
    wanted = [kind for kind in EVERY if kind not in BY_NIGHT or kind in chosen]
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
