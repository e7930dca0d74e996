"""Fixtures: all KMSs, and one JVM for their clients."""

import os
from collections.abc import Iterator

import pytest
from harness.backends import start
from harness.jvm import start_jvm
from harness.keystore import few_iterations
from harness.subject import EVERY, Subject, make_subject


@pytest.fixture(scope="session")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Subject]]:
    """All of them, and one JVM for their clients."""
    folder = tmp_path_factory.mktemp("contract")
    backends = {kind: start(kind, folder / kind) for kind in EVERY}
    with pytest.MonkeyPatch.context() as patch:
        few_iterations(patch)
        for backend in backends.values():
            for name, value in backend.environment.items():
                patch.setenv(name, value)
        options = [option for backend in backends.values() for option in backend.java]
        jvm = start_jvm(folder / "log", dict(os.environ), options)
        try:
            yield {kind: make_subject(backend, jvm) for kind, backend in backends.items()}
        finally:
            jvm.stop()
            for backend in backends.values():
                backend.stop()


@pytest.fixture(params=EVERY)
def kms(request: pytest.FixtureRequest, subjects: dict[str, Subject]) -> Iterator[Subject]:
    found = subjects[request.param]
    yield found
    if found.backend.proxy:
        found.backend.proxy.next.clear()
        found.backend.proxy.mode = "pass"
