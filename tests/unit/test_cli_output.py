"""What all commands have in common: JSON by its schema, help with examples, exit codes, several targets, completion."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from copy import deepcopy
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest
from click.shell_completion import get_completion_class
from click.testing import CliRunner, Result
from doubles.in_process import (
    ANSWERS,
    DoubleKms,
    SparkDouble,
    answering,
    commands,
    evidence_json,
)

from pyspark_iceberg_crypto import (
    KeyNotFoundError,
    NotEncryptedError,
    PruneReport,
    VerifyReport,
    cli,
    settings,
)
from pyspark_iceberg_crypto.cli import _session, _verify
from pyspark_iceberg_crypto.cli._options import KmsCommand
from pyspark_iceberg_crypto.cli._session import SessionCommand
from pyspark_iceberg_crypto.jvm import _jvm
from pyspark_iceberg_crypto.jvm.artifacts import BUILDS
from pyspark_iceberg_crypto.kms import BY_TYPE
from pyspark_iceberg_crypto.kms._settings import settings as settings_of
from pyspark_iceberg_crypto.schemas import output_commands, output_schema

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "dev"))
import output_schemas  # noqa: E402

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command whose JVM answers by ANSWERS; `fails` are the tables that it fails on."""

    def invoke(
        *arguments: str,
        fails: tuple[str, ...] = (),
        plain: tuple[str, ...] = (),
        answers: Any = None,
    ) -> Result:
        def answer(method: str, *given: Any) -> Any:
            if given and given[0] in plain and method != "encrypt_table":
                raise NotEncryptedError("it is not encrypted")
            if given and given[0] in fails:
                raise KeyNotFoundError(f"no key for {given[0]}", "create it")
            return deepcopy({**ANSWERS, **(answers or {})}[method])

        monkeypatch.setattr(_jvm, "run", answering(answer))
        monkeypatch.setattr(_session, "session", lambda *_: nullcontext(SparkDouble()))
        monkeypatch.setattr(
            _verify, "verify_table", lambda *_, **__: VerifyReport.of(evidence_json())
        )
        return CliRunner().invoke(cli.main, arguments)

    return invoke


def valid(command: str, result: Result) -> Any:
    found = json.loads(result.stdout)
    jsonschema.Draft202012Validator(output_schema(command)).validate(found)
    return found


ALL = {w: c for w, c in commands(cli.main) if not isinstance(c, click.Group)}
WITH_JSON = {words: c for words, c in ALL.items() if "--output" in
             {o for p in c.get_params(click.Context(c)) for o in p.opts}}  # fmt: skip


def test_the_schemas_are_those_of_the_classes() -> None:
    """Otherwise run dev/output_schemas.py, and see that nothing goes."""
    assert json.loads(output_schemas.FILE.read_text()) == output_schemas.output()


def test_every_command_with_json_has_a_schema(run: Run) -> None:
    static = {words for words in WITH_JSON if words[0] == "kms" and len(words) == 3}
    assert {" ".join(words) for words in {*WITH_JSON} - static} == set(output_commands())
    without = {words[0] for words in ALL if words not in WITH_JSON}
    assert without == {"completion", "report", "schema"}  # report schema prints one
    check = jsonschema.Draft202012Validator.check_schema
    for name in output_commands():
        printed = json.loads(run("schema", name).stdout)
        assert printed == output_schema(name)
        definitions = printed.pop("$defs")
        check(printed)
    check({"$defs": definitions})  # those of all commands are the same
    assert all(output_schema(name)["$defs"] == definitions for name in output_commands())


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("encrypt lake.db.t --key-id k", 0),
        ("purge lake.db.t", 0),
        ("encrypt lake.db.* --key-id k", 2),
        ("decrypt lake.db.t --confirm", 0),
        ("prune lake.db.t", 0),
        ("prune lake.db.t lake.db.u", 0),
        ("reencrypt lake.db.t", 0),
        ("repair lake.db.t", 1),
        ("repair lake", 1),
        ("rotate lake.db.t", 0),
        ("rotate lake --again", 1),
        ("keys lake.db.t", 0),
        ("keys lake.db.t lake.db.u", 0),
        ("verify lake.db.t", 1),
        ("verify lake.db.t lake.db.u", 1),
        ("jar", 0),
    ],
)
def test_json_is_by_its_schema(
    run: Run, line: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "__file__", str(tmp_path / "settings.py"))
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / f"{BUILDS[0].artifact}-0.jar").touch()
    result = run(*line.split(), "--output", "json")
    valid(line.split()[0], result)
    assert result.exit_code == code


def test_json_of_inspect_and_report(run: Run, tmp_path: Path) -> None:
    for name, text in (("a", b"PARE"), ("b", b"AGS1"), ("c", b"PAR1xxxx")):
        (tmp_path / name).write_bytes(text)
    files = [str(tmp_path / name) for name in "abcd"]
    found = valid("inspect", run("inspect", *files, "--output", "json"))
    assert {True, False} <= {one.get("unchecked") for one in found}
    report = tmp_path / "r.json"
    signature = {"key_id": "k", "algorithm": "HMAC-SHA-256", "signed_at": "2026-01-01T00:00:00Z"}
    signature |= {"wrapped_key": "AA==", "mac": "0a" * 32}
    report.write_text(VerifyReport.of(evidence_json(signature=signature)).to_json())
    result = run("report", "check", str(report), "--output", "json")
    assert valid("report check", result)["genuine"]


def test_json_of_kms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BY_TYPE, "double", DoubleKms)
    DoubleKms.keys.clear()
    for words in ("create-key k", "list-keys", "describe-key k", "rotate-key k", "policy k"):
        command = [
            "kms",
            *words.split(),
            *["--kms", "double", "--address", "x", "--output", "json"],
        ]
        valid(f"kms {words.split()[0]}", CliRunner().invoke(cli.main, command))
    DoubleKms.keys.clear()


def test_json_of_the_demo(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark_iceberg_crypto.cli._demo.run", lambda **_: Path("/kept"))
    assert valid("demo", run("demo", "--output", "json"))["folder"] == "/kept"


@pytest.mark.parametrize(
    "line",
    [
        *("encrypt lake.db.t --key-id k", "purge lake.db.t", "decrypt lake.db.t --confirm"),
        *("prune lake.db.t", "reencrypt lake.db.t", "repair lake.db.t", "rotate lake.db.t"),
        *("rotate lake.db.t --kek", "keys lake.db.t"),
    ],
)
def test_what_could_not_be_done_is_2(run: Run, line: str) -> None:
    result = run(*line.split(), fails=("lake.db.t",))
    told = "error: no key for lake.db.t\nhint: create it\n"
    assert (result.exit_code, result.stderr) == (2, told)


def test_an_error_as_json(run: Run) -> None:
    result = run("prune", "lake.db.t", "--output", "json", fails=("lake.db.t",))
    assert result.exit_code == 2
    assert valid("prune", result) == {
        "error": "KeyNotFoundError",
        "problem": "no key for lake.db.t",
        "hint": "create it",
        "url": "https://github.com/iceberg-crypto/iceberg-crypto/blob/main/docs/errors.md#keynotfounderror",
    }
    assert result.stderr.startswith("error: no key for lake.db.t\nhint: create it\n")


def test_a_schema_tells_wrong_from_right(run: Run) -> None:
    told = json.loads(run("prune", "lake.db.t", "--output", "json").stdout)
    for wrong in ({**told, "removed": "1"}, {k: v for k, v in told.items() if k != "kept"}, []):
        is_valid = jsonschema.Draft202012Validator(output_schema("prune")).is_valid(wrong)
        assert is_valid is (wrong == [])


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_help_has_examples_that_parse_and_exit_codes(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = tmp_path / "profile.yaml"
    profile.write_text("catalogs: {lake: {kms: {type: keystore, path: k.p12, password-env: P}}}\n")
    monkeypatch.setenv("ICEBERG_CRYPTO_CONFIG", str(profile))
    command = ALL[words]
    shown = " ".join((command.help or "").split())
    if words != ("report", "schema"):
        assert re.search(r"Exit codes: 0 .*\b2 .*\b64 the command is wrong", shown), words
    if words[0] in ("doctor", "inspect", "keys", "verify"):
        assert re.search(r"Exit codes: 0 .*\b1 \w.*\b2 ", shown), words
    told = re.sub(r"\\\n *", "", command.help or "")
    lines = re.findall(r"iceberg-crypto ((?:[^\n|)\"]|\"[^\"]*\")+)", told.partition("Example")[2])
    assert lines or words == ("report", "schema")
    for line in lines:
        arguments = shlex.split(re.sub(r"  +.*", "", line.strip()))
        below = cli.main
        while isinstance(below, click.Group):
            name = arguments.pop(0)
            found = below.get_command(click.Context(below), name)
            assert found is not None, line
            below = found  # type: ignore[assignment]
        below.make_context(name, arguments)


def test_every_command_that_opens_a_session_takes_every_kms() -> None:
    """And no option of a KMS has the name of one of the command's own."""
    sessions = {words: one for words, one in ALL.items() if isinstance(one, SessionCommand)}
    assert {words[0] for words in sessions} == {
        *("decrypt", "doctor", "encrypt", "inspect", "keys", "prune", "purge", "reencrypt"),
        *("repair", "report", "rotate", "rotate-parquet", "verify"),
    }
    for command in sessions.values():
        own = {
            name for p in command.get_params(click.Context(command)) for name in (p.name, *p.opts)
        }
        for kind in BY_TYPE.values():
            names = settings_of(kind)
            flags = {f"--{name.replace('_', '-')}" for name in names}
            assert not own & {*names, *flags}


def test_static_commands_of_a_kms_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in BY_TYPE:
        for name in ("create-key", "list-keys", "describe-key", "rotate-key", "policy"):
            one = ALL[("kms", kind, name)]
            assert isinstance(one, KmsCommand)
            context = click.Context(one)
            context.meta["kms"] = kind
            flags = {p.name for p in one.get_params(context)}
            other = ALL[("kms", name)]
            assert flags | {"kms", "catalog", "config"} == {
                p.name for p in other.get_params(context)
            }
    arguments = ["kms", "keystore", "create-key", "--path", "keys.p12", "k"]
    result = CliRunner().invoke(cli.main, arguments)
    assert result.exit_code == 2 and "password" in result.stderr


def test_several_tables(run: Run) -> None:
    """One that fails does not stop the rest; the worst is the exit code."""
    result = run("prune", "lake.db.t", "lake.db.u", fails=("lake.db.t",))
    assert result.exit_code == 2
    shown = "✗ lake.db.t: no key for lake.db.t\nhint: create it\n✓ lake.db.t: done"
    assert shown in result.stdout
    assert result.stdout.endswith("2 tables, 1 failed, nothing changed\n")
    result = run("prune", "lake.db.t", "lake.db.u", "--confirm", fails=("lake.db.t",))
    assert result.stdout.endswith("2 tables, 1 not done\n")
    result = run("rotate", "lake.db.t", "lake.db.u")
    assert result.stdout.endswith("2 tables, 0 failed, nothing changed\n")
    result = run("repair", "lake.db.t", "lake.db.u", fails=("lake.db.t",), answers={})
    assert result.exit_code == 1, "a finding, whatever could not be looked at"


def test_a_person_is_asked_before_a_change(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no one can be asked, nothing is changed without --confirm."""
    dry = []
    note = "Nothing was changed. Add --confirm to do this."

    def asked(_: Any, table: str, dry_run: bool) -> PruneReport:
        dry.append(dry_run)
        return PruneReport(
            **{
                **ANSWERS["prune_encryption_keys"],
                "committed": not dry_run,
                "removed": len(table) - 9,
            }
        )

    monkeypatch.setattr("pyspark_iceberg_crypto.cli._prune.prune_encryption_keys", asked)
    result = run("prune", "lake.db.tt")
    assert (result.exit_code, dry, result.stderr) == (0, [True], f"{note}\n")
    assert run("prune", "lake.db.t").stderr == "", "there is nothing to remove"
    assert run("prune", "lake.db.tt", "--confirm").stderr == ""
    assert dry == [True, True, False]
    answers = iter([False, True])
    monkeypatch.setattr(click, "confirm", lambda *_, **__: next(answers))
    terminals = {"<stdin>", "<stdout>"}
    is_terminal = lambda stream: stream.name in terminals  # noqa: E731
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", is_terminal)
    assert run("prune", "lake.db.tt").stderr == f"{note}\n", "nobody would see the question"
    assert dry.pop()
    terminals.add("<stderr>")
    assert "✓" not in run("prune", "lake.db.tt").stdout
    assert run("prune", "lake.db.tt").stdout.count("lake.db.t: done") == 2
    assert dry[3:] == [True, True, False]
    assert run("prune", "lake.db.tt", "--output", "json").stderr.endswith(f"{note}\n")


def test_all_tables_of_a_namespace(run: Run) -> None:
    found = json.loads(run("prune", "lake.db.*", "--output", "json").stdout)
    assert [one["table"] for one in found] == ["lake.db.t", "lake.db.t", "lake.no"]
    assert found[2] == {"table": "lake.no", "problem": "may not list it", "hint": "ask"}
    result = run("prune", "lake.db.*", "--output", "json", plain=("lake.db.t",))
    assert valid("prune", result)[0] == {"table": "lake.db.t", "skipped": "it is not encrypted"}
    result = run("encrypt", "lake", "--key-id", "k", plain=("lake.db.u",))
    assert "· lake.db.t: skipped: it is already encrypted\n✓ lake.db.t: done" in result.stdout
    result = run(
        "purge",
        "lake.db.*",
        "--confirm",
        plain=("lake.db.u",),
        answers={"list_tables": ANSWERS["list_tables"][:2]},
    )
    assert (result.exit_code, result.stdout.splitlines()) == (
        0,
        [
            "· lake.db.t: skipped: it has no plaintext to purge",
            "· lake.db.u: skipped: it is not encrypted",
            "2 tables, 0 not done",
        ],
    )
    purgeable = {"master_key_use": {"key_id": "k", "has_old_plaintext": True}}
    assert "✓ lake.db.t: done" in run("purge", "lake.db.*", answers=purgeable).stdout
    found = json.loads(
        run("prune", "lake.db.*", "--output", "json", answers={"list_tables": []}).stdout
    )
    assert found == []


@pytest.mark.parametrize(
    ("left_open", "options", "code", "offered"),
    [
        ({}, (), 0, True),
        ({"outside": {"/old": 1}, "outside_paths": ["/old/a"]}, (), 1, False),
        ({"gaps": ["/m.avro is missing"]}, (), 1, False),
        ({"gaps": ["/m.avro is missing"]}, ("--accept-missing",), 1, True),
    ],
)
def test_a_purge_that_would_be_refused_is_not_offered(
    run: Run, left_open: dict[str, Any], options: tuple[str, ...], code: int, offered: bool
) -> None:
    would = {**ANSWERS["purge_plaintext"], "committed": False, **left_open}
    result = run("purge", "lake.db.t", *options, answers={"purge_plaintext": would})
    assert (result.exit_code, "Add --confirm" in result.output) == (code, offered)


def test_names_of_files_are_shown_as_they_are(run: Run) -> None:
    """Whoever may write to the storage has chosen them: they are no markup, and stop nothing."""
    names = ["/t/[/x]/a", "/t/a[b]c", "/t/:smile:", "/t/\x1b[31m"]
    would = {**ANSWERS["purge_plaintext"], "committed": False, "paths": names, "left_paths": names}
    targets = ("lake.db.t", "lake.db.u")
    result = run("purge", *targets, answers={"purge_plaintext": would})
    assert result.exit_code == 0, result.output
    shown = [*names[:3], r"/t/\x1b[31m"]
    lines = result.stdout.splitlines()
    for line in [*shown, *(f"left: {name}" for name in shown)]:
        assert lines.count(line) == len(targets), line


def test_usage_errors_of_groups_are_64() -> None:
    for words in (
        ["--no"],
        ["kms", "vault"],
        ["kms", "no"],
        ["schema", "no"],
        ["completion", "no"],
    ):
        assert CliRunner().invoke(cli.main, words).exit_code == 64, words


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(run: Run, shell: str) -> None:
    result = run("completion", shell)
    assert result.exit_code == 0
    assert "_ICEBERG_CRYPTO_COMPLETE" in result.stdout and "iceberg-crypto" in result.stdout
    kind = get_completion_class(shell)
    assert kind is not None
    maker = kind(cli.main, {}, "iceberg-crypto", "_ICEBERG_CRYPTO_COMPLETE")
    assert [one.value for one in maker.get_completions(["kms"], "va")] == ["vault"]
    assert [one.value for one in maker.get_completions(["verify"], "--dee")] == ["--deep"]
    assert [one.value for one in maker.get_completions(["verify", "--kms"], "key")] == ["keystore"]
    flags = [one.value for one in maker.get_completions(["keys", "--kms", "vault"], "--addr")]
    assert flags == ["--address"]


def test_bash_completes(tmp_path: Path) -> None:
    """The real shell, with the printed script, asks the real command."""
    program = tmp_path / "iceberg-crypto"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from pyspark_iceberg_crypto.cli import main\nmain(prog_name='iceberg-crypto')\n"
    )
    program.chmod(0o755)
    script = f"""
PATH="{tmp_path}:$PATH"; eval "$(iceberg-crypto completion bash)"
COMP_WORDS=(iceberg-crypto kms va); COMP_CWORD=2
_iceberg_crypto_completion iceberg-crypto va kms; echo "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "vault", done.stderr
