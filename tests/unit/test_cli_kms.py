"""The commands that manage keys, on a double of a KMS."""

import functools
import inspect
import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result
from doubles.in_process import DoubleKms

from pyspark_iceberg_crypto import cli, errors
from pyspark_iceberg_crypto.cli import _options
from pyspark_iceberg_crypto.kms import BY_TYPE

DOUBLE = ("--kms", "double", "--address", "https://kms")


@pytest.fixture(autouse=True)
def double(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setitem(BY_TYPE, "double", DoubleKms)
    DoubleKms.keys.clear()
    yield
    DoubleKms.keys.clear()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli.main, ["kms", *arguments])


def test_a_new_key_comes_with_what_spark_needs() -> None:
    result = run("create-key", *DOUBLE, "sales")
    assert result.exit_code == 0
    for line in (
        "✓ created sales",
        "spark.sql.catalog.lake.encryption.kms-type=double",
        "spark.sql.catalog.lake.encryption.kms.double.address=https://kms",
        "spark.jars.packages=org.double:double-bundle:1.0",
        "CREATE TABLE lake.db.t (...) TBLPROPERTIES ('encryption.key-id'='sales')",
        "# for Spark's driver",
        "allow sales",
    ):
        assert line in result.stdout.splitlines()


def test_a_new_key_as_json() -> None:
    found = json.loads(run("create-key", *DOUBLE, "sales", "--output", "json").stdout)
    assert found["key"]["key_id"] == "sales"
    assert found["properties"]["encryption.kms-type"] == "double"
    assert found["policy"].startswith("# for Spark's driver")


def test_a_new_key_is_told_even_if_its_policy_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> str:
        raise errors.AccessDeniedError("may not describe it", "ask for the right")

    monkeypatch.setattr(DoubleKms, "driver_policy", refuse)
    result = run("create-key", *DOUBLE, "sales")
    assert result.exit_code == 0
    assert "✓ created sales" in result.stdout
    assert "# not known: may not describe it\n# hint: ask for the right" in result.stdout


def test_options_are_the_fields_and_the_methods_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[DoubleKms] = []
    create = DoubleKms.create_key

    @functools.wraps(create)
    def spy(self: DoubleKms, name: str, **settings: object) -> object:
        made.append(self)
        return create(self, name, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(DoubleKms, "create_key", spy)
    settings = ("--token-env", "T", "--timeout", "3", "--no-plain", "--bits", "128", "--label", "x")
    context = ("--context", "team=hr", "--context", "eq=a=b")
    result = run("create-key", *DOUBLE, *settings, *context, "hr", "--output", "json")
    assert json.loads(result.stdout)["key"]["algorithm"] == "aes128"
    assert json.loads(result.stdout)["key"]["detail"] == {"label": "x"}
    assert made == [DoubleKms("https://kms", "T", {"team": "hr", "eq": "a=b"}, 3, False)]


def complete(*words: str) -> list[str]:
    """What a shell offers for the last word."""
    parameters = ShellComplete(cli.main, {}, "iceberg-crypto", "_COMPLETE")
    return [item.value for item in parameters.get_completions(list(words[:-1]), words[-1])]


def test_completion() -> None:
    command = ("kms", "create-key")
    assert complete(*command, "--kms", "") == [*BY_TYPE]
    assert complete(*command, "--kms", "key") == ["keystore"]
    assert complete(*command, "") == []
    assert complete(*command, "--k") == ["--kms"]
    assert {"--path", "--password-env"} <= {*complete(*command, "--kms", "keystore", "--p")}
    assert complete("kms", "list-keys", "--kms", "nobody", "--o") == ["--output"]


def test_help_shows_the_options_of_the_kms_that_is_named() -> None:
    shown = " ".join(run("create-key", "--kms=double", "--help").output.split())
    assert "--address TEXT Where it is, such as https://kms. [required]" in shown
    assert "--token-env TEXT The environment variable that holds the token." in shown
    assert "--context NAME=VALUE What to bind each key to." in shown
    assert "--timeout INTEGER Seconds. [default: 10]" in shown
    assert "--plain / --no-plain Whether to do without." in shown
    assert "--bits INTEGER Its length in bits. [default: 256]" in shown


def test_help_without_a_kms() -> None:
    shown = run("create-key", "--help").output
    assert "--kms [" in shown
    assert "--address" not in shown


def test_options_of_create_key_are_not_those_of_other_commands() -> None:
    assert "--bits" not in run("list-keys", "--kms", "double", "--help").output


def test_list_describe_rotate() -> None:
    assert run("list-keys", *DOUBLE).stdout == "no keys\n"
    for name in ("b", "a"):
        run("create-key", *DOUBLE, name)
    listed = run("list-keys", *DOUBLE).stdout
    assert listed.index(" a ") < listed.index(" b ") if " a " in listed else "a" in listed
    keys = json.loads(run("list-keys", *DOUBLE, "--output", "json").stdout)
    assert [key["key_id"] for key in keys] == ["a", "b"]
    assert "versions 2" in " ".join(run("rotate-key", *DOUBLE, "a").stdout.split())
    found = json.loads(run("describe-key", *DOUBLE, "a", "--output", "json").stdout)
    assert (found["version"], found["versions"]) == ("2", 2)


PROFILE = """
catalogs:
  lake: {type: hadoop, warehouse: /w, kms: {type: double, address: "https://of-lake"}}
  archive: {kms: {type: double, address: "https://of-archive"}}
  plain: {type: hadoop, warehouse: /w}
  unset: {kms: {type: double, address: "${NOT_SET}"}}
"""


def test_the_kms_of_the_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "iceberg-crypto.yaml").write_text(PROFILE)
    made = json.loads(run("create-key", "--bits", "128", "a", "--output", "json").stdout)
    assert made["properties"]["encryption.kms.double.address"] == "https://of-lake"
    assert DoubleKms.keys["a"].algorithm == "aes128"
    for words in (["--catalog", "archive"], ["--catalog=archive"]):
        other = json.loads(run("create-key", f"b{len(words)}", *words, "--output", "json").stdout)
        assert other["properties"]["encryption.kms.double.address"] == "https://of-archive"
    assert run("list-keys").exit_code == run("rotate-key", "a").exit_code == 0
    assert run("policy", "a").stdout == "# for Spark's driver\nallow a\n"

    for words, says in (
        (("--catalog", "plain"), "under kms of the catalog plain"),
        (("--catalog", "nobody"), "Missing option '--kms'"),
        (("--address", "x"), "No such option '--address'"),
    ):
        result = run("list-keys", *words)
        assert (result.exit_code, says in result.stderr) == (64, True), result.stderr
    result = run("list-keys", "--catalog", "unset", "--output", "json")
    assert result.exit_code == 2
    assert "NOT_SET, which is not set" in json.loads(result.stdout)["problem"]

    # --kms wins, and another profile is another file.
    assert run("list-keys", *DOUBLE).exit_code == 0
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nowhere")
    assert run("list-keys").exit_code == 64
    assert run("list-keys", "--config", str(tmp_path / "iceberg-crypto.yaml")).exit_code == 0
    assert run("list-keys", "--config", str(tmp_path / "none.yaml")).exit_code == 2


def test_the_policy_of_several_keys() -> None:
    result = run("policy", *DOUBLE, "a", "b")
    assert result.stdout == "# for Spark's driver\nallow a\nallow b\n"
    found = json.loads(run("policy", *DOUBLE, "a", "--output", "json").stdout)
    assert found["policy"] == "# for Spark's driver\nallow a"


def test_an_error_is_two_lines_and_code_2() -> None:
    run("create-key", *DOUBLE, "sales")
    result = run("create-key", *DOUBLE, "sales")
    assert result.exit_code == 2
    assert result.stderr == "error: https://kms already has a key 'sales'\nhint: choose another\n"
    assert result.stdout == ""


def test_a_context_of_another_form_is_refused() -> None:
    result = run("list-keys", *DOUBLE, "--context", "team")
    assert result.exit_code == 64
    assert "error: 'team' is not KEY=VALUE\nhint: for example --context" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("list-keys",), "Missing option '--kms'"),
        (("list-keys", "--address", "x"), "Missing option '--kms'"),
        (("list-keys", "--kms", "hsm9000", "--address", "x"), "'hsm9000' is not one of"),
        (("list-keys", "--kms"), "Missing option '--kms'"),
        (("list-keys", "--kms", "double"), "Missing option '--address'"),
        (("list-keys", *DOUBLE, "--region", "x"), "No such option"),
        (("create-key", *DOUBLE), "Missing argument 'NAME'"),
        (("policy", *DOUBLE), "Missing argument 'KEY_IDS"),
        (("create-key", *DOUBLE, "--bits", "many", "k"), "'many' is not a valid integer"),
    ],
    ids=str,
)
def test_bad_arguments_are_64(arguments: tuple[str, ...], says: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 64
    assert says in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize("name", sorted(BY_TYPE))
@pytest.mark.parametrize("method", ["create_key", "rotate_key"])
def test_every_argument_of_a_method_has_an_option(name: str, method: str) -> None:
    parameters = inspect.signature(getattr(BY_TYPE[name], method)).parameters.values()
    defaults = {one.name: one.default for one in parameters if one.default is not one.empty}
    options = _options.arguments(name, method)
    assert click.Command("c", params=[*options]).make_context("c", []).params == defaults
    assert all(option.help for option in options)


@pytest.mark.parametrize("name", sorted(BY_TYPE))
def test_every_kms_explains_every_option(name: str) -> None:
    for command in ("create-key", "list-keys"):
        lines = run(command, "--kms", name, "--help").output.splitlines()
        bare = [line for line in lines if line.startswith("  --") and len(line.split()) < 3]
        following = [lines[lines.index(line) + 1] for line in bare]
        assert all(line.startswith(" " * 10) for line in following), bare


def test_a_missing_client_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: DoubleKms) -> None:
        raise errors.ConfigurationError("no 'hvac'", "pip install 'pyspark-iceberg-crypto[vault]'")

    monkeypatch.setattr(DoubleKms, "list_keys", missing)
    result = run("list-keys", *DOUBLE)
    assert (result.exit_code, "pip install" in result.stderr) == (2, True)
