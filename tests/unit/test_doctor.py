"""What doctor says of each thing that can be wrong. Spark and the KMS are doubles."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from doubles.in_process import DoubleKms, JavaThrowable, answering, metrics
from py4j.protocol import Py4JJavaError

from pyspark_iceberg_crypto import cli, errors
from pyspark_iceberg_crypto.cli import _session
from pyspark_iceberg_crypto.doctor import DoctorReport, diagnose
from pyspark_iceberg_crypto.doctor import _session as doctor
from pyspark_iceberg_crypto.doctor._session import (
    BEFORE_KMS,
    CACHE,
    CATALOG,
    CHAIN,
    DISKS,
    ENVIRONMENT,
    IGNORE_CORRUPT,
    JARS,
    JAVA,
    KEY,
    LOGIN,
    NETWORK,
    ORC,
    PARQUET,
    PERMISSION,
    ROUND_TRIP,
    SETTINGS,
    WIRE,
    Status,
)
from pyspark_iceberg_crypto.settings import EXTENSIONS, ORC_EXTENSION, PARQUET_EXTENSION

PREFIX = "spark.sql.catalog.lake."


class World:
    """A session whose catalog, keys and errors a test sets."""

    def __init__(self) -> None:
        self.conf = {"spark.master": "local[2]", "spark.io.encryption.enabled": "true"}
        self.environment: dict[str, str] = {}
        self.keys: dict[str, Exception | None] = {"k1": None}
        self.jars: Exception | None = None
        self.catalog: Exception | None = None
        self.columns: dict[str, dict[str, Any] | Exception] = {}
        self.retries = 0
        self.calls = 0

    @property
    def spark(self) -> Any:
        return SimpleNamespace(version="4.1.4", conf=SimpleNamespace(getAll=self.conf))

    def require_jars(self, _: Any) -> None:
        if self.jars:
            raise self.jars

    def kms_metrics(self, *_: Any) -> Any:
        if self.catalog:
            raise self.catalog
        took = {"wrap_ms": 7 * self.calls, "unwrap_ms": 3 * self.calls}
        return metrics(retries=self.retries * self.calls, **took)

    def answer(self, method: str, catalog: str = "", key_id: str = "") -> Any:
        if method.startswith("examine"):
            found = self.columns.get(method)
            if isinstance(found, Exception):
                raise found
            return deepcopy(found)
        assert (method, catalog) == ("check_key", "lake")
        self.calls += 1
        error = self.keys[key_id]
        if error:
            raise error
        return None


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    made = World()
    monkeypatch.setattr(doctor._jvm, "require_session", lambda _: None)
    monkeypatch.setattr(doctor._jvm, "require_jars", made.require_jars)
    monkeypatch.setattr(doctor._jvm, "java_version", lambda _: "17.0.9")
    monkeypatch.setattr(doctor._jvm, "jar_versions", lambda _: {"iceberg-crypto": "0.1.0"})
    monkeypatch.setattr(doctor._jvm, "cipher_provider", lambda _: "SunJCE")
    monkeypatch.setattr(doctor._jvm, "environment", lambda _, name: made.environment.get(name))
    monkeypatch.setattr(doctor._jvm, "run", answering(made.answer))
    monkeypatch.setattr(doctor, "kms_metrics", made.kms_metrics)
    monkeypatch.setattr(Py4JJavaError, "__str__", lambda self: self.errmsg)
    return made


def statuses(found: DoctorReport, key_id: str | None = "k1") -> dict[str, str]:
    return {s.name: s.status.value for s in found.steps if s.key_id in (None, key_id)}


def step(found: DoctorReport, name: str) -> doctor.DoctorStep:
    (one,) = [step for step in found.steps if step.name == name]
    return one


def java_error(text: str) -> Py4JJavaError:
    error = Py4JJavaError.__new__(Py4JJavaError)
    error.java_exception = JavaThrowable("java.net.ConnectException", text)
    error.errmsg = text
    return error


def test_all_is_well(world: World) -> None:
    found = diagnose(world.spark, key_ids=["k1"])
    assert set(statuses(found).values()) == {"ok"}
    assert list(statuses(found)) == [*BEFORE_KMS, *CHAIN]
    assert found.ok
    assert step(found, JAVA).detail == "Java 17.0.9, Spark 4.1.4"
    assert step(found, JARS).detail == "iceberg-crypto 0.1.0, AES-GCM of SunJCE"
    assert "Double at https://kms" in step(found, CATALOG).detail
    assert step(found, ROUND_TRIP).detail == "wrapped in 7 ms, unwrapped in 3 ms"
    assert "✓ lake can use 'k1'" in str(found)


def test_one_name_is_no_list(world: World) -> None:
    with pytest.raises(
        errors.ConfigurationError, match="key_ids must be a list of key ids, not 'sales'"
    ):
        diagnose(world.spark, key_ids="sales")
    assert world.calls == 0


@pytest.mark.parametrize(
    ("name", "method", "extension", "unchecked"),
    [
        (PARQUET, "examine_parquet", PARQUET_EXTENSION, Status.WARNING),
        (ORC, "examine_orc", ORC_EXTENSION, Status.FAILED),
    ],
)
def test_keys_of_columns(
    world: World, name: str, method: str, extension: str, unchecked: Status
) -> None:
    world.conf[EXTENSIONS] = f"a.b.C,{extension}"
    world.columns[method] = {"keys": ["k1", "k2"], "warnings": []}
    found = diagnose(world.spark, key_ids=["k1"])
    assert found.ok
    assert (step(found, name).status, step(found, name).detail) == (Status.OK, "k1, k2")
    world.conf[EXTENSIONS] = "a.b.C"
    found = diagnose(world.spark, key_ids=["k1"])
    assert step(found, name).status is unchecked
    assert extension in step(found, name).hint
    world.conf[EXTENSIONS] = extension
    world.conf[IGNORE_CORRUPT] = "true"
    found = diagnose(world.spark, key_ids=["k1"])
    assert step(found, name).status is Status.WARNING
    assert IGNORE_CORRUPT in step(found, name).detail
    del world.conf[IGNORE_CORRUPT]
    warning = {"problem": "AES-CTR", "hint": "leave out"}
    world.columns[method] = {"keys": [], "warnings": [warning]}
    found = diagnose(world.spark, key_ids=["k1"])
    assert step(found, name).status is Status.WARNING
    assert step(found, name).hint == "leave out"
    world.columns[method] = errors.ConfigurationError("There is no property x", "Did you mean y?")
    found = diagnose(world.spark, key_ids=["k1"])
    assert step(found, name).status is Status.FAILED
    assert step(found, ROUND_TRIP).status is Status.OK, "the catalog's keys are another matter"


@pytest.mark.parametrize(
    ("error", "at"),
    [
        (errors.ConfigurationError("no token file", "write it"), SETTINGS),
        (errors.KmsUnavailableError("no route to https://kms", "is it up?"), NETWORK),
        (errors.LoginFailedError("token expired", "renew it"), LOGIN),
        (errors.AccessDeniedError("may not encrypt with k1", "allow it"), PERMISSION),
        (
            errors.AccessDeniedError("the catalog allows only k2 (encryption.allowed-key-ids)"),
            SETTINGS,
        ),
        (errors.KeyNotFoundError("no key k1", "create it"), KEY),
        (errors.KeyDisabledError("k1 is disabled", "enable it"), KEY),
        (errors.BadWrappedKeyError("other bytes", "do not use it"), ROUND_TRIP),
        (errors.IcebergCryptoError("something else"), ROUND_TRIP),
        (java_error("a defect"), ROUND_TRIP),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value,
)
def test_an_errors_type_tells_the_step(world: World, error: Exception, at: str) -> None:
    world.keys["k1"] = error
    found = diagnose(world.spark, key_ids=["k1"])
    place = CHAIN.index(at)
    assert statuses(found) == {
        **dict.fromkeys(BEFORE_KMS, "ok"),
        **dict.fromkeys(CHAIN[:place], "ok"),
        at: "failed",
        **dict.fromkeys(CHAIN[place + 1 :], "not reached"),
    }
    assert not found.ok
    if isinstance(error, errors.IcebergCryptoError):
        assert (step(found, at).detail, step(found, at).hint) == (error.message, error.hint)
    assert f"{at} of 'k1' failed" in str(found)


def test_each_key_has_its_own_steps(world: World) -> None:
    world.keys = {"good": None, "bad": errors.KeyNotFoundError("no key bad", "create it")}
    found = diagnose(world.spark, key_ids=["bad", "good", "bad"])
    assert statuses(found, "good")[ROUND_TRIP] == "ok"
    assert statuses(found, "bad")[KEY] == "failed"
    assert len(found.steps) == len(BEFORE_KMS) + 2 * len(CHAIN)
    assert found.exit_code == 1


def test_a_missing_jar(world: World) -> None:
    world.jars = errors.JarMissingError("no iceberg-crypto jar", "add it")
    found = diagnose(world.spark, key_ids=["k1"])
    assert statuses(found)[JARS] == "failed"
    assert {s.status for s in found.steps[2:]} == {Status.NOT_REACHED}


@pytest.mark.parametrize("there", [True, False])
def test_the_library_of_a_cloud(world: World, monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    monkeypatch.setitem(doctor.BY_TYPE, "aws", DoubleKms)
    monkeypatch.setattr(doctor._jvm, "has_class", lambda _, name: there and "awssdk" in name)
    world.conf[PREFIX + "encryption.kms-type"] = "AWS"
    found = diagnose(world.spark, key_ids=["k1"])
    assert found.ok == there
    told = step(found, JARS)
    if there:
        assert told.detail == "iceberg-crypto 0.1.0, the AWS SDK, AES-GCM of SunJCE"
    else:
        assert told.status is Status.FAILED
        assert "--packages org.double:double-bundle:1.0" in told.hint


@pytest.mark.parametrize(
    "error",
    [errors.ConfigurationError("no KMS is configured", "set it"), java_error("connection refused")],
    ids=["ours", "of the catalog behind"],
)
def test_a_catalog_that_does_not_load(world: World, error: Exception) -> None:
    world.catalog = error
    found = diagnose(world.spark, key_ids=["k1"])
    assert statuses(found)[CATALOG] == "failed"
    assert step(found, CATALOG).hint
    after = found.steps[found.steps.index(step(found, CATALOG)) + 1 :]
    assert {s.status for s in after} == {Status.NOT_REACHED}
    assert world.calls == 0


def test_a_kms_that_refuses_the_login_when_the_catalog_is_loaded(world: World) -> None:
    world.catalog = errors.LoginFailedError("the password is wrong", "check it")
    found = diagnose(world.spark, key_ids=["k1", "k2"])
    failed = [step for step in found.steps if step.status is Status.FAILED]
    assert [(step.name, step.key_id) for step in failed] == [(LOGIN, None)]
    assert statuses(found)[CATALOG] == statuses(found)[NETWORK] == "ok"


def test_an_error_of_the_catalog_behind_says_what_to_check(world: World) -> None:
    world.catalog = java_error("connection refused")
    told = step(diagnose(world.spark), CATALOG)
    assert told.detail.endswith("connection refused")
    assert "spark.sql.catalog.lake.type" in told.hint


@pytest.mark.parametrize(
    ("ttl", "status", "says"),
    [
        (None, "ok", "for 60 min"),
        ("90000", "ok", "for 1.5 min"),
        ("0", "warning", "asks the KMS"),
    ],
)
def test_the_cache(world: World, ttl: str | None, status: str, says: str) -> None:
    if ttl is not None:
        world.conf[PREFIX + "encryption.kms.cache.ttl-ms"] = ttl
    found = diagnose(world.spark, key_ids=["k1"])
    assert (step(found, CACHE).status.value, says in step(found, CACHE).detail) == (status, True)
    assert found.ok, "a warning is no failure"


def test_a_secret_that_travels_is_a_warning(world: World) -> None:
    world.environment["AWS_SECRET_ACCESS_KEY"] = "never shown"
    found = diagnose(world.spark, key_ids=["k1"])
    assert step(found, ENVIRONMENT).status is Status.WARNING
    assert "AWS_SECRET_ACCESS_KEY is set" in step(found, ENVIRONMENT).detail
    assert "never shown" not in json.dumps(found.to_dict())
    assert found.ok


@pytest.mark.parametrize(
    "setting",
    [
        "spark.executorEnv.VAULT_TOKEN",
        "spark.yarn.appMasterEnv.VAULT_TOKEN",
        "spark.kubernetes.driverEnv.VAULT_TOKEN",
        f"{PREFIX}credential",
    ],
)
def test_a_secret_in_sparks_settings_is_a_warning(world: World, setting: str) -> None:
    world.conf[PREFIX + "encryption.kms.vault.token-env"] = "VAULT_TOKEN"
    world.conf[PREFIX + "token"] = "never shown"  # Spark redacts it
    assert step(diagnose(world.spark), ENVIRONMENT).status is Status.OK
    world.conf[setting] = "never shown"
    found = diagnose(world.spark)
    assert step(found, ENVIRONMENT).status is Status.WARNING
    named = setting.removeprefix(PREFIX)
    assert f"{named} holds a secret" in step(found, ENVIRONMENT).detail
    assert "never shown" not in json.dumps(found.to_dict())


def test_plaintext_on_local_disks_is_a_warning(world: World) -> None:
    assert step(diagnose(world.spark), DISKS).status is Status.OK
    for setting in ({}, {"spark.io.encryption.enabled": "false"}):
        world.conf = {"spark.master": "local", **setting}
        found = diagnose(world.spark, key_ids=["k1"])
        told = step(found, DISKS)
        assert told.status is Status.WARNING
        assert "spark.io.encryption.enabled=true" in told.hint
        assert found.ok, "a warning is no failure"


@pytest.mark.parametrize(
    ("master", "setting", "status", "says"),
    [
        ("local", {}, "ok", "only process"),
        ("local[*]", {}, "ok", "only process"),
        ("local[2,3]", {}, "ok", "only process"),
        ("local-cluster[2,1,768]", {}, "warning", "(spark.network.crypto.enabled=false)"),
        ("yarn", {"spark.authenticate": "true"}, "warning", "(spark.network.crypto.enabled=false)"),
        (
            "spark://h:1",
            {"network.crypto.enabled": "true"},
            "warning",
            "without spark.authenticate",
        ),
        ("k8s://h", {"authenticate": "true", "network.crypto.enabled": "true"}, "ok", "encrypts"),
        ("yarn", {"authenticate": "TRUE", "authenticate.enableSaslEncryption": "true"}, "ok", ""),
        ("spark://h:1", {"ssl.rpc.enabled": "true"}, "ok", "encrypts what"),
    ],
)
def test_plaintext_between_processes_is_a_warning(
    world: World, master: str, setting: dict[str, str], status: str, says: str
) -> None:
    world.conf["spark.master"] = master
    world.conf |= {f"spark.{name.removeprefix('spark.')}": v for name, v in setting.items()}
    found = diagnose(world.spark, key_ids=["k1"])
    told = step(found, WIRE)
    assert (told.status.value, says in told.detail) == (status, True), told
    assert bool(told.hint) == (status == "warning")
    assert found.ok


def test_a_round_trip_that_needed_retries_is_a_warning(world: World) -> None:
    world.retries = 2
    told = step(diagnose(world.spark, key_ids=["k1"]), ROUND_TRIP)
    assert told.status is Status.WARNING
    assert told.detail.endswith("after 2 failed attempts")


def test_the_key_of_new_tables_is_tried_by_itself(world: World) -> None:
    world.conf[PREFIX + "table-default.encryption.key-id"] = "k1"
    found = diagnose(world.spark)
    assert found.ok
    assert world.calls == 1


def test_without_a_key_it_says_so(world: World) -> None:
    found = diagnose(world.spark)
    assert not found.ok
    assert found.exit_code == 2
    assert (step(found, KEY).detail, "--key-id" in step(found, KEY).hint) == (
        "no key was named",
        True,
    )
    assert "not everything was checked" in str(found)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, world: World) -> Callable[..., Result]:
    seen: list[tuple[Any, ...]] = []

    @contextmanager
    def session(*arguments: Any) -> Iterator[Any]:
        given = click.get_current_context().obj
        seen.append((given.conf, *arguments, given.catalog_conf))
        yield world.spark

    def invoke(*arguments: str, start: Any = session) -> Result:
        monkeypatch.setattr(_session, "session", start)
        result = CliRunner().invoke(cli.main, ["doctor", *arguments])
        result.seen = seen  # type: ignore[attr-defined]
        return result

    return invoke


def test_the_command_gives_0_when_all_is_well(run: Callable[..., Result]) -> None:
    result = run("--catalog-conf", "type=rest", "--conf", "a=b", "--key-id", "k1")
    assert result.exit_code == 0
    assert "✓ lake can use 'k1'" in result.stdout
    assert result.seen == [(("a=b",), "lake", ("type=rest",))]  # type: ignore[attr-defined]


def test_the_command_gives_1_when_a_step_failed(run: Callable[..., Result], world: World) -> None:
    world.keys["k1"] = errors.KmsUnavailableError("no route", "is it up?")
    result = run("--key-id", "k1")
    assert result.exit_code == 1
    assert "hint: is it up?" in result.stdout
    assert result.stderr == ""


def test_the_command_gives_2_when_no_key_is_named(run: Callable[..., Result]) -> None:
    assert run().exit_code == 2


def test_the_command_as_json(run: Callable[..., Result], world: World) -> None:
    world.keys["k1"] = errors.KeyNotFoundError("no key k1", "create it")
    found = json.loads(run("--key-id", "k1", "--output", "json").stdout)
    assert (found["ok"], found["catalog"]) == (False, "lake")
    assert {
        "name": KEY,
        "status": "failed",
        "detail": "no key k1",
        "hint": "create it",
        "key_id": "k1",
    } in found["steps"]


@pytest.mark.parametrize(
    "error",
    [
        _session.SparkNotStartedError("Spark did not start: no java", "see"),
        errors.JarMissingError(""),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_spark_that_does_not_start_is_a_failed_step(
    run: Callable[..., Result], error: Exception
) -> None:
    @contextmanager
    def session(*_: Any) -> Iterator[Any]:
        raise error
        yield

    result = run("--key-id", "k1", "--output", "json", start=session)
    assert result.exit_code == 1
    steps = json.loads(result.stdout)["steps"]
    assert [s["status"] for s in steps] == ["failed"] + ["not reached"] * (
        len(BEFORE_KMS) - 1 + len(CHAIN)
    )


def test_wrong_arguments_are_64(run: Callable[..., Result]) -> None:
    result = run("--catalog-conf", "type", start=_session.session)
    assert result.exit_code == 64
    assert result.stderr.startswith("error: 'type' is not KEY=VALUE")
