"""A real Prometheus, and promtool. `make nightly-tools` brings both."""

import json
import re
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.jars import ROOT
from harness.programs import free_port, start_logging, wait_for_end, wait_until_it_listens
from harness.used import used


def programs() -> Path:
    """Where prometheus and promtool are."""
    script = ROOT / "dev" / "prometheus.sh"
    told = subprocess.run([script, "path"], check=True, capture_output=True, text=True)
    path = Path(told.stdout.strip())
    if not path.exists():
        raise FileNotFoundError(f"no {path}: run `make nightly-tools`")
    return path


@dataclass(frozen=True)
class Prometheus:
    """A server that runs."""

    uri: str

    def get(self, path: str, **query: str) -> Any:
        """What its API answers."""
        address = f"{self.uri}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(address) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples of an instant query."""
        found: list[dict[str, Any]] = self.get("query", query=expression)["result"]
        return found


@contextmanager
def prometheus(config: Path, folder: Path) -> Iterator[Prometheus]:
    """One with this configuration, which keeps its data in a folder."""
    program = programs() / "prometheus"
    told = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
    (version,) = re.findall(r"version (\d+\.\d+\.\d+)", told)
    used("Prometheus", version)
    port, log = free_port(), folder / "log"
    process = start_logging(
        [
            program,
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        log,
    )
    wait_until_it_listens(process, port, log)
    try:
        yield Prometheus(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        wait_for_end(process)
