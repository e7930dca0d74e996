"""Names that SQL quotes: each procedure, function and command means that table, and what is printed can be pasted."""

import json
import re
import shlex
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import pytest
from click.testing import CliRunner
from harness.files import MARKER
from harness.lake import Lake

import pyspark_iceberg_crypto
from pyspark_iceberg_crypto import IcebergCryptoError, encrypt_table, purge_plaintext
from pyspark_iceberg_crypto.cli import _session, main

# Below a namespace of the test. A table `files` is beside a table of which it could be the metadata table.
NAMES = {
    "all kinds": ("it's My-`x`.tàble 100%.files",),
    "a metadata table's": ("t", "files"),
    "reserved words": ("select", "table"),
    "hyphens": ("my-space", "my-table"),
    "dots": ("x.y",),
    "quotes": ('it\'s "a`b"',),
    "unicode": ("größe", "表 😀"),
    "upper case": ("DB", "Table"),
    "digits": ("2024",),
    "escapes": ("50%\\n",),
}
BY_DAY = [("all kinds", "sql")]
EVERY = [
    pytest.param(name, how, marks=[] if (name, how) in BY_DAY else pytest.mark.nightly)
    for name in NAMES
    for how in ("sql", "python", "command")
]
COMMANDS: dict[str, list[str]] = {
    "encrypt_table": ["encrypt"],
    "purge_plaintext": ["purge"],
    "verify_encryption": ["verify"],
    "encryption_keys": ["keys"],
    "rotate_kek": ["rotate", "--kek"],
    "rotate_master_key": ["rotate"],
    "prune_encryption_keys": ["prune"],
    "reencrypt_table": ["reencrypt"],
    "repair_table": ["repair"],
    "decrypt_table": ["decrypt"],
}
Verb = Callable[..., dict[str, Any]]
# Hive's metastore takes no such names.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.catalogs("jdbc"),
    pytest.mark.parametrize("lake", ["jdbc", "rest", "hadoop"], indirect=True),
]


def quoted(part: str) -> str:
    """As Spark's documents say, whether that is needed or not."""
    return "`" + part.replace("`", "``") + "`"


def shown(part: str) -> str:
    """As this project's messages have it."""
    return part if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", part) else quoted(part)


def by_sql(lake: Lake, name: str) -> Verb:
    literal = "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def call(verb: str, **given: Any) -> dict[str, Any]:
        said = [f"{key} => {json.dumps(value)}" for key, value in given.items()]
        statement = (
            f"CALL {lake.catalog}.system.{verb}({', '.join([f'table => {literal}', *said])})"
        )
        rows = lake.sql(statement)
        return rows[0].asDict() if rows else {}

    return call


def by_python(lake: Lake, name: str) -> Verb:
    def call(verb: str, **given: Any) -> dict[str, Any]:
        function = getattr(
            pyspark_iceberg_crypto, verb.replace("verify_encryption", "verify_table")
        )
        positional = [given.pop("key_id")] if "key_id" in given else []
        found: dict[str, Any] = function(lake.spark, name, *positional, **given).to_dict()
        return found

    return call


def by_command(lake: Lake, name: str) -> Verb:
    def call(verb: str, **given: Any) -> dict[str, Any]:
        words = [*COMMANDS[verb], name, "--output", "json"]
        is_dry = given.pop("dry_run", False)
        if not is_dry and verb not in ("verify_encryption", "encryption_keys"):
            given["confirm"] = True
        for key, value in given.items():
            words += [f"--{key.replace('_', '-')}"] + ([] if value is True else [value])
        ended = CliRunner().invoke(main, words, catch_exceptions=False)
        if ended.exit_code not in (0, 1) or not ended.stdout.strip():
            raise IcebergCryptoError(ended.output)
        found: dict[str, Any] = json.loads(ended.stdout)
        return found

    return call


@contextmanager
def session_of(lake: Lake) -> Any:
    with pytest.MonkeyPatch.context() as patched:

        @contextmanager
        def session(*_: Any, **__: Any) -> Any:
            yield lake.spark

        patched.setattr(_session, "session", session)
        yield


def paste(lake: Lake, text: str) -> None:
    """Runs the statement in a message, or the command."""
    if command := re.search(r"(?<!`)(`+)iceberg-crypto (.+?)(?<!`)\1(?!`)", text):
        ended = CliRunner().invoke(main, shlex.split(command[2]), catch_exceptions=False)
        assert ended.exit_code == 0, ended.output
        return
    found = re.search(r"CALL .*?\)(?=[ .,;]|$)", text, re.DOTALL)
    assert found, text
    lake.sql(found[0])


@pytest.mark.parametrize(("name", "how"), EVERY)
def test_a_life(lake: Lake, name: str, how: str) -> None:
    parts = NAMES[name]
    if lake.kind == "rest":  # the server's Jetty refuses them: "Ambiguous URI path encoding"
        parts = tuple(re.sub(r"[%\\]", "", part) for part in parts)
    *spaces, last = parts
    place = [lake.catalog, lake.namespace]
    for space in spaces:
        place.append(space)
        lake.sql(f"CREATE NAMESPACE {'.'.join(map(quoted, place))}")
    table = ".".join(map(quoted, [*place, last]))
    full = ".".join(map(shown, [*place, last]))
    lake.sql(f"CREATE TABLE {table} (id BIGINT, note STRING) TBLPROPERTIES ('format-version'='3')")
    lake.sql(f"INSERT INTO {table} VALUES (1, '{MARKER}')")
    if spaces == ["t"]:  # a table of which this could be a metadata table
        lake.create("t", key=None)
    make = {"sql": by_sql, "python": by_python, "command": by_command}[how]
    do = make(lake, table)
    with session_of(lake):
        for given in ({"dry_run": True}, {}):
            done = do("encrypt_table", key_id="k1", **given)
            assert done["table"] == full and done["committed"] is not bool(given), done
        with pytest.raises(Exception, match="already encrypted") as caught:
            do("encrypt_table", key_id="k1")
        assert full in str(caught.value)
        paste(lake, str(caught.value))
        purged = do("purge_plaintext")
        assert purged["table"] == full and purged["files"] > 0, purged
        report = do("verify_encryption")
        assert report.get("ok", report.get("encrypted")) is True, report
        assert do("encryption_keys")
        for verb in ("rotate_kek", "rotate_master_key", "prune_encryption_keys"):
            assert do(verb)["table"] == full
        assert do("repair_table", confirm=True).get("table", full) == full
        done = do("reencrypt_table")
        assert (done["table"], done["left"]) == (full, 0)
        lake.sql(done["expire_statement"])
        assert lake.value(f"SELECT sum(id) FROM {table}") == 1
        assert do("decrypt_table", confirm=True)["table"] == full
    assert lake.value(f"SELECT sum(id) FROM {table}") == 1


@pytest.mark.nightly
def test_what_sql_alone_has(lake: Lake) -> None:
    if lake.kind == "rest":
        pytest.skip("its metadata is not authenticated")
    [last] = NAMES["all kinds"]
    full = f"{lake.catalog}.{lake.namespace}.{quoted(last)}"
    lake.sql(f"CREATE TABLE {full} (id BIGINT) TBLPROPERTIES ('encryption.key-id'='k1')")
    lake.sql(f"INSERT INTO {full} VALUES (1)")
    do = by_sql(lake, f"{lake.namespace}.{quoted(last)}")
    source = lake.value(f"SELECT file FROM {full}.metadata_log_entries").rpartition("/metadata/")[0]
    assert do("rewrite_table_path", source_prefix=source, target_prefix=f"{lake.folder}/copy")
    for verb, given in (
        ("authenticate_metadata", {"metadata_file": "none", "metadata_sha256": "0"}),
        ("add_files", {"source_table": "none.none"}),
        ("purge_without_key", {}),  # its key is available
    ):
        with pytest.raises(Exception, match="hint:") as caught:
            do(verb, **given)
        assert full in str(caught.value)
    lake.sql(f"DROP TABLE {full} PURGE")
    with pytest.raises(Exception, match="does not exist") as caught:
        do("rotate_kek")
    assert full in str(caught.value)


@pytest.mark.nightly
def test_the_proof_is_of_the_purged_table(lake: Lake) -> None:
    """A table x.y is not the table y of a namespace x, which has nothing in plaintext."""
    lake.sql(f"CREATE NAMESPACE {lake.catalog}.{lake.namespace}.x")
    lake.sql(f"CREATE TABLE {lake.table('x.y')} (id INT) TBLPROPERTIES ('encryption.key-id'='k1')")
    table = f"{lake.catalog}.{lake.namespace}.`x.y`"
    lake.sql(f"CREATE TABLE {table} (id INT) TBLPROPERTIES ('format-version'='3')")
    lake.sql(f"INSERT INTO {table} VALUES (1)")
    encrypt_table(lake.spark, table, "k1")
    stray = lake.folder / "x.y" / "data" / "stray.parquet"
    stray.write_bytes(b"PAR1")
    with pytest.raises(IcebergCryptoError, match=r"stray\.parquet") as caught:
        purge_plaintext(lake.spark, table)
    assert f"Table {table}:" in str(caught.value)
