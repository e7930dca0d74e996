"""The command `prune`."""

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
    result, asked = command("prune", "lake.db.t", answer=PRUNED)
    assert asked == ["pruneEncryptionKeys", "lake.db.t", False]
    assert result.exit_code == 0
    assert result.stdout.strip() == rf"✓ lake.db.t\x1b[31m: {PRUNED['message']}"
    result, asked = command("prune", "lake.db.t", "--dry-run", "--output", "json", answer=PRUNED)
    assert asked == ["pruneEncryptionKeys", "lake.db.t", True]
    assert json.loads(result.stdout) == PRUNED
    result, _ = command("prune", "lake.db.t", answer=NotSupportedError("it is not encrypted", "x"))
    assert result.exit_code == 2
    assert result.stderr == "error: it is not encrypted\nhint: x\n"
