"""No test in this folder starts a JVM for Spark."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
from click.testing import CliRunner, Result
from doubles.in_process import answering
from pyspark import SparkContext
from pyspark.sql import SparkSession

from pyspark_iceberg_crypto import cli
from pyspark_iceberg_crypto.cli import _session
from pyspark_iceberg_crypto.jvm import _jvm


@pytest.fixture(autouse=True)
def no_jvm() -> Iterator[None]:
    """A process as it is before Spark starts, whatever other tests have left running in this one."""
    with pytest.MonkeyPatch.context() as patch:  # its own: a test may undo the one that it gets
        patch.setattr(SparkContext, "_gateway", None)
        patch.setattr(SparkContext, "_jvm", None)
        patch.setattr(SparkContext, "_active_spark_context", None)
        patch.setattr(SparkSession, "_instantiatedSession", None)
        for name in (
            "PYSPARK_SUBMIT_ARGS",
            "PYSPARK_GATEWAY_PORT",
            "SPARK_REMOTE",
            "SPARK_CONF_DIR",
        ):
            patch.setenv(name, "")  # what a test sets goes with it
            patch.delenv(name)
        yield
        assert SparkContext._gateway is None, "a unit test has started a JVM"


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Result, list[Any]]]:
    """Run a command with an answer of the JVM; gives the command's result, and what the JVM was asked."""

    def invoke(*arguments: str, answer: Any = None) -> tuple[Result, list[Any]]:
        asked: list[Any] = []

        def run(*given: Any) -> Any:
            asked.extend(given)
            if isinstance(answer, Exception):
                raise answer
            return deepcopy(answer(*given) if callable(answer) else answer)

        monkeypatch.setattr(_jvm, "run", answering(run))
        monkeypatch.setattr(_session, "session", lambda *_: nullcontext("spark"))
        return CliRunner().invoke(cli.main, arguments), asked

    return invoke


@pytest.fixture
def jvm(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the JVM answers or raises, by method of PythonApi and by operation; and `calls`: what it was asked."""
    answers: dict[str, Any] = {"calls": [], "check_report": None}

    def call(_: object, method: str, *given: Any) -> Any:
        answers["calls"].append((method, *given))
        if isinstance(answers[method], Exception):
            raise answers[method]
        return answers[method]

    monkeypatch.setattr(_jvm, "call", call)
    monkeypatch.setattr(_jvm, "run", answering(partial(call, None)))
    monkeypatch.setattr(_jvm, "data_frame", lambda spark, dataset: (spark, dataset))
    return answers
