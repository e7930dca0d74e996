"""What a person sees: in terminals of 60, 80 and 100 columns names and hints stay whole, help is sentences."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from doubles.in_process import commands, evidence_json, verify_json

from pyspark_iceberg_crypto import VerifyReport, VerifyTablesReport, cli
from pyspark_iceberg_crypto.cli import _advice, _shared
from pyspark_iceberg_crypto.doctor import DoctorReport, DoctorTablesReport
from pyspark_iceberg_crypto.doctor._report import DoctorStep, Status
from pyspark_iceberg_crypto.errors import KeyNotFoundError
from pyspark_iceberg_crypto.kms import BY_TYPE, KeyInfo
from pyspark_iceberg_crypto.reports import _terminal
from pyspark_iceberg_crypto.reports._finding import TableFinding
from pyspark_iceberg_crypto.reports._text import SPEECH
from pyspark_iceberg_crypto.verbs.keys import of as keys_of
from pyspark_iceberg_crypto.verbs.repair import RepairReport

ROOT = Path(__file__).resolve().parents[2]
WIDTHS = (60, 80, 100)
TABLE = "lake.warehouse_north_europe.customer_orders_with_returns_2026"
KEY = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
KEK = "0f3c1b9e-7d7a-4a53-9d3e-2f6f0f1b2c3d"
FILE = f"s3://company-lake/{TABLE}/data/00000-0-1b2c3d4e-5f60-7a8b-9c0d-1e2f3a4b5c6d-00001.parquet"
STATEMENT = f"CALL lake.system.repair_table(table => '{TABLE}', confirm => true)"
REPAIR = f"iceberg-crypto repair {TABLE} --confirm"
ROTATE = f"CALL lake.system.rotate_value_key(name => '{KEK}', new_version => true)"


def show() -> None:
    """Print a screen of each kind, in the width of the terminal; runs in a process of its own."""
    SPEECH.set(_advice.spoken)
    problem = {**evidence_json()["problems"][0], "path": FILE, "hint": f"{STATEMENT} repairs it."}
    report = VerifyReport.of(evidence_json(table=TABLE, key_id=KEY, problems=[problem]))
    left = [{"table": TABLE, "problem": f"no key {KEY}", "hint": f"{ROTATE} makes one."}]
    finding = TableFinding(TABLE, "no kek", "it is gone", "nobody reads it", STATEMENT, True, False)
    step = DoctorStep("key", Status.FAILED, f"no key {KEY}", "create it", KEY)
    row = {"key_id": KEY, "kind": "master", "encrypted_by": None, "created_at": None}
    row |= {"age_days": 900, "snapshots": 1, "overdue": True, "kms_answers": True}
    row |= {"authenticated_wrapping": False, "problem": None, "used_for": None, "key_length": 32}
    kek = {**row, "key_id": KEK, "kind": "kek", "problem": f"{FILE} is damaged"}
    keys = {"table": TABLE, "key_id": KEY, "data_key_length": "32", "kek_max_age_days": 730}
    keys |= {"kms": "AWS KMS", "kms_calls": 1, "kms_problem": None, "rows": [row, kek]}
    info = KeyInfo(
        key_id=KEY, algorithm="SYMMETRIC_DEFAULT", version="1", state="enabled", versions=1
    )
    tables = DoctorTablesReport(40, 39, 1, {"no kek": 1}, [finding], [])
    for shown in (
        report,
        VerifyTablesReport("lake", [report, VerifyReport.of(verify_json(table=TABLE))], left),
        DoctorReport("lake", [DoctorStep("jars", Status.OK, FILE), step], tables),
        RepairReport(TABLE, False, [finding]),
        keys_of(keys),
        _terminal.keys([info]),
        _terminal.key(info),
    ):
        _shared.show(shown)
    try:
        with _shared.errors_told():
            raise KeyNotFoundError(f"no key {KEY} for {TABLE}", f"{STATEMENT}, then {ROTATE}.")
    except SystemExit:
        pass
    for words in ("--help", "kms --help", "rotate-parquet --help", "kms create-key --help"):
        cli.main(words.split(), prog_name="iceberg-crypto", standalone_mode=False)


@pytest.fixture(scope="module")
def screens() -> dict[int, str]:
    """The same screens at each width, from one process whose pseudo-terminal changes its size."""
    script = (
        "import fcntl, struct, sys, termios\nfrom unit.test_cli_terminal import show, WIDTHS\n"
        "for width in WIDTHS:\n    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('4H', 50, width, 0, 0))\n"
        "    print('\\f', flush=True)\n    show()\n    sys.stdout.flush()\n"
    )
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
    environment |= {
        "TERM": "xterm",
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests"))),
    }
    screen, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=environment,
    )
    os.close(terminal)
    shown = b"".join(iter(lambda: _read(screen), b""))
    os.close(screen)
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).replace("\r", "")
    assert process.wait() == 0, text
    found = text.split("\f")[1:]
    return dict(zip(WIDTHS, found, strict=True))


def _read(screen: int) -> bytes:
    try:
        return os.read(screen, 65536)
    except OSError:  # how Linux says that the other end is closed
        return b""


@pytest.mark.parametrize("width", WIDTHS)
def test_names_and_hints_are_whole(screens: dict[int, str], width: int) -> None:
    lines = screens[width].splitlines()
    for name, times in ((TABLE, 12), (KEY, 9), (KEK, 3), (FILE, 4), (REPAIR, 5), (ROTATE, 2)):
        assert sum(line.count(name) for line in lines) >= times, name
    assert "system.repair_table" not in screens[width]
    for (
        line
    ) in lines:  # what is longer is one word, or one command: there was no other place to break it
        rest = line.replace(f"`{REPAIR}`", "x").replace(REPAIR, "x").replace(ROTATE, "x")
        assert len(line) <= width or len(rest.replace("✗ ", "").replace("! ", "").split()) <= 2, (
            line
        )
    shown = " ".join(screens[width].split())
    for said in (
        "hint: create it",
        "it is gone",
        "overdue: older than 730 days",
        "SYMMETRIC_DEFAULT",
    ):
        assert said in shown


@pytest.mark.parametrize("width", WIDTHS)
def test_help_is_grouped_and_whole(screens: dict[int, str], width: int) -> None:
    lines = screens[width][screens[width].index("Usage: iceberg-crypto [") :].splitlines()
    for title in ("Start:", "Audit:", "Migrate:", "Operate:", "Spark and catalog options:"):
        assert title in lines
    assert max(map(len, lines)) <= width
    for name in ("--catalog-conf", "spark-defaults.conf", "~/.config/iceberg-crypto.yaml"):
        assert any(name in line for line in lines)
    assert not any(line.endswith("...") for line in lines[1:] if not line.startswith("Usage"))


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_reader_that_has_seen_enough_stops_nothing(output: str) -> None:
    """Such as `head`: all tables get their turn, and the exit code is theirs."""
    code = f"""
import sys
from types import SimpleNamespace
from pyspark_iceberg_crypto.cli import _shared, _targets
with _shared.errors_told():
    def do(target):
        print(target.name, file=sys.stderr)
        return SimpleNamespace(exit_code=0, to_dict=dict, __rich__=lambda: "done")
    targets = [_targets._Target(name) for name in ("a", "b", "c")]
    code, _ = _targets._each(targets, do, {output!r}, lambda _: "", lambda _: True, False)
sys.exit(code)
"""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr.split()) == (0, ["a", "b", "c"])


def test_help_is_sentences() -> None:
    for words, command in commands(cli.main):
        first = command.get_short_help_str(1000)
        assert re.fullmatch(r"[A-Z].*\.", first), (words, first)
        for kind in BY_TYPE:
            context = click.Context(command)
            context.meta["kms"] = kind
            for one in command.get_params(context):
                if isinstance(one, click.Option):
                    assert re.fullmatch(r"[A-Z\"].*[.)]", str(one.help), re.DOTALL), (
                        words,
                        one.opts,
                        one.help,
                    )


SQL = (  # what a command would not do
    ROTATE,
    "CALL lake.system.encrypt_table(table => 'other.db.t', key_id => 'k')",
    "CALL lake.system.encrypt_table(table => 'lake.db.t', max_bytes => 9)",
    "CALL lake.system.repair_table(table => 'lake.db.t', other => 'x')",
    "table lake.db.encrypt_table of 'repair_table'",
    "CALL lake.system.purge_plaintext(table => '/data/t', dry_run => true) lists, without dry_run deletes",
    "CALL lake.system.drop_value_key(name => 'k', confirm => true) drops it; keep => array('...')",
    "CALL lake.system.f(m => map('a)', array('x')), confirm => true)",
    "expire the earlier snapshots, and call this with confirm => true",
    "create one: configure_spark(SparkSession.builder, ...).getOrCreate()",
    "call configure_spark before the first Spark session",
)
SAID = {
    STATEMENT: REPAIR,
    "CALL lake.system.rotate_kek(table => 'lake.db.t', rewrap => true)": (
        "iceberg-crypto rotate lake.db.t --kek --rewrap --confirm"
    ),
    "CALL lake.system.encrypt_table(table => 'lake.db.t', key_id => '<key id>')": (
        "iceberg-crypto encrypt lake.db.t --key-id '<key id>' --confirm"
    ),
    "CALL lake.system.purge_plaintext(table => 'lake.db.t', dry_run => true) lists, without dry_run deletes": (
        "`iceberg-crypto purge lake.db.t` lists, with --confirm deletes"
    ),
    r"CALL `my-lake`.system.repair_table(table => '`my-lake`.db.`it\'s`') x": (
        "``iceberg-crypto repair '`my-lake`.db.`it'\"'\"'s`'`` x"
    ),
    "CALL lake.system.encryption_keys(table => 'lake.db.`a``b c`') x": (
        "```iceberg-crypto keys 'lake.db.`a``b c`'``` x"
    ),
    "CALL <catalog>.system.repair_table(table => ..., confirm => true) gives": (
        "`iceberg-crypto repair TABLE --confirm` gives"
    ),
    "Call purge_plaintext, then decrypt_table.": (
        "Run `iceberg-crypto purge`, then `iceberg-crypto decrypt`."
    ),
    "call purge_plaintext again, or call it with accept_missing => true: it": (
        "run `iceberg-crypto purge` again, or run it with --accept-missing: it"
    ),
    "purge_plaintext with dry_run => true lists. Set spark.x.keep=true, and folders => array('...').": (
        "`iceberg-crypto purge` without --confirm lists. Set spark.x.keep=true, and --folder URI."
    ),
    "purge_plaintext lists them (dry_run) and deletes": (
        "`iceberg-crypto purge` lists them (without --confirm) and deletes"
    ),
    "verify_table(strays=True) lists files": "`iceberg-crypto verify --strays` lists files",
    "or pyspark_iceberg_crypto.Vault(...).create_key('k 1').": (
        "or `iceberg-crypto kms create-key 'k 1'`."
    ),
    "make one: Keystore.create(path, keys=[...], ...)": (
        "make one: `iceberg-crypto kms create-key NAME`"
    ),
    "make it: create_key('k')": "make it: `iceberg-crypto kms create-key k`",
    "rotate_key makes versions": "`iceberg-crypto kms rotate-key` makes versions",
    'set it up: configure_spark(..., catalog="lake") in Python, or': "set it up in the profile, or",
    "Set a=b, as configure_spark(parquet_columns=...) does.": "Set a=b.",
    **{sql: sql for sql in SQL},
}


@pytest.mark.parametrize(("told", "said"), SAID.items())
def test_advice_names_commands(told: str, said: str) -> None:
    assert _advice.spoken(told) == said
    assert _advice.spoken(said) == said, "an error may be told twice"
    for line in re.findall(r"`(iceberg-crypto [a-z][^`]*)`(?!`)", said):
        assert line.split()[1] in cli.main.list_commands(click.Context(cli.main))


def java() -> str:
    """The sources of Java, with the pieces of each text joined."""
    return "\n".join(
        re.sub(r'"\s*\+\s*"', "", file.read_text())
        for file in (ROOT / "jvm").glob("*/**/src/main/java/**/*.java")
    )


NO_COMMAND = {
    "authenticate_metadata",
    "create_value_key",
    "drop_value_key",
    "operation",
}
NO_COMMAND |= {"purge_without_key", "rotate_value_key", "value_keys"}


def test_every_procedure_has_a_command_or_none() -> None:
    """A new operation is either put into words of the command line, or known to have none."""
    sources = java()
    procedures = set(re.findall(r'Operation\.procedure\(\s*"(\w+)"', sources))
    assert procedures - NO_COMMAND <= set(_advice.COMMANDS)
    assert procedures >= NO_COMMAND
    operations = set(re.findall(r'Operation\.(?:procedure|call)\(\s*"(\w+)"', sources))
    assert set(_advice.COMMANDS) - operations == {"verify_table"}, "Python's own name"


def test_no_advice_of_java_names_python() -> None:
    """Whatever a text says of operations or functions of Python, the command line says with commands."""
    names = re.compile(
        rf"\b(?:{'|'.join(_advice.COMMANDS)}|configure_spark|pyspark_iceberg_crypto)\b"
    )
    texts = [
        t for t in re.findall(r'"((?:[^"\\\n]|\\.)*)"', java()) if " " in t and names.search(t)
    ]
    assert len(texts) > 30
    for text in texts:
        left = names.search(_advice.spoken(text.replace('\\"', '"').replace("%s", "x")))
        assert left is None, text
