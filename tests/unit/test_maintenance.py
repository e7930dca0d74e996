"""The commands `prune` and `reencrypt`."""

import json
from collections.abc import Callable
from typing import Any

from click.testing import Result

from pyspark_iceberg_crypto import NotSupportedError

Command = Callable[..., tuple[Result, list[Any]]]

PRUNED = {
    "table": "lake.db.t\x1b[31m",
    "keys_before": 5,
    "removed": 3,
    "kept": 2,
    "bytes_before": 4000,
    "bytes_after": 3000,
    "committed": True,
    "message": "3 of 5 keys removed: the metadata has 3,000 bytes instead of 4,000",
}


def test_prune(command: Command) -> None:
    result, asked = command("prune", "lake.db.t", "--confirm", answer=PRUNED)
    assert asked == ["prune_encryption_keys", "lake.db.t", False]
    assert result.exit_code == 0
    assert result.stdout.strip() == rf"✓ lake.db.t\x1b[31m: {PRUNED['message']}"
    result, asked = command("prune", "lake.db.t", "--output", "json", answer=PRUNED)
    assert asked == ["prune_encryption_keys", "lake.db.t", True]
    assert json.loads(result.stdout) == {"ok": True, **PRUNED}
    result, _ = command("prune", "lake.db.t", answer=NotSupportedError("it is not encrypted", "x"))
    assert result.exit_code == 2
    assert result.stderr == "error: it is not encrypted\nhint: x\n"


REENCRYPTED = {
    "table": "lake.db.t",
    "data_files": 3,
    "delete_files": 1,
    "bytes": 12345,
    "left": 0,
    "snapshots": 1,
    "refs": "audit",
    "expire_statement": "CALL ...",
    "committed": True,
    "message": "3 data files rewritten",
}


def test_reencrypt(command: Command) -> None:
    option = ("--option", "target-file-size-bytes=1000")
    result, asked = command("reencrypt", "lake.db.t", *option, "--confirm", answer=REENCRYPTED)
    assert asked == ["reencrypt_table", "lake.db.t", {"target-file-size-bytes": "1000"}, False]
    assert result.exit_code == 0
    assert result.stdout.strip() == "✓ lake.db.t: 3 data files rewritten"
    left = {**REENCRYPTED, "left": 2}
    result, asked = command("reencrypt", "lake.db.t", "--confirm", "--output", "json", answer=left)
    assert asked == ["reencrypt_table", "lake.db.t", {}, False]
    assert (result.exit_code, json.loads(result.stdout)) == (1, {"ok": False, **left})
    result, asked = command("reencrypt", "lake.db.t", "--option", "x")
    assert result.exit_code == 64 and not asked
    assert "target-file-size-bytes=536870912" in result.stderr
    result, asked = command("reencrypt", "lake.db.t", answer=REENCRYPTED)
    assert asked[-1] is True
