"""Flink: a job manager and a task manager in processes of their own, on 127.0.0.1, and its SQL client.

As from Flink's bin folder, which the packages on PyPI do not have: the same main classes, with lib/ and what a user
adds to it on the class path.
"""

import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.jars import ROOT, SPARK_JARS, build_jars
from harness.programs import free_port, wait_for_end, wait_until_it_listens
from harness.used import used, used_jar

VERSIONS = ("2.1.3", "1.20.5")
"""Those with which the tests run; `make nightly` fetches them."""

ICEBERG = "1.11.0"
"""The newest for which there is an iceberg-flink-runtime."""

JOB_MANAGER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
SQL_CLIENT = "org.apache.flink.table.client.SqlClient"

# What Flink's scripts open to it; and small, short-lived JVMs.
OPENED = ("lang", "net", "io", "nio", "lang.reflect", "text", "time", "util", "util.concurrent")
OPENED += ("util.concurrent.atomic", "util.concurrent.locks")
JAVA = ["java", "-Xmx768m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
JAVA += ["--add-exports=java.base/sun.net.util=ALL-UNNAMED"]
JAVA += [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in OPENED]
JAVA += ["--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"]

MEMORY = {
    "framework.heap.size": "128m",
    "framework.off-heap.size": "128m",
    "task.heap.size": "512m",
    "task.off-heap.size": "0m",
    "network.min": "64m",
    "network.max": "64m",
    "managed.size": "128m",
    "jvm-metaspace.size": "256m",
    "jvm-overhead.min": "192m",
    "jvm-overhead.max": "192m",
}


def jars(version: str, *, ours: bool = True) -> list[Path]:
    """What a user puts into Flink's lib folder: Iceberg, Hadoop, a JDBC driver, and the jar of this project."""
    minor = version.rpartition(".")[0]
    hadoop = sorted(SPARK_JARS.glob("hadoop-client-*.jar"))
    patterns = [f"iceberg-flink-runtime-{minor}-{ICEBERG}.jar", "sqlite-jdbc-*.jar"]
    found = [jar for pattern in patterns for jar in build_jars("flink-jars", pattern)]
    if ours:
        found += build_jars("iceberg-crypto-flink/libs", "iceberg-crypto-flink-*.jar")
    return [*hadoop, *found]


@dataclass
class Flink:
    """A cluster. `stop` ends its processes and no others.

    Attributes:
        version: of VERSIONS.
        folder: gets its configuration and logs.
        ours: whether the jar of this project is in its lib folder.
        more: further jars there.
    """

    version: str
    folder: Path
    ours: bool = True
    more: Sequence[Path] = ()
    rest: int = 0
    _processes: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    def start(self) -> "Flink":
        self.rest = free_port()
        self._configure()
        log = self._launch(JOB_MANAGER)
        wait_until_it_listens(self._processes[-1], self.rest, log)
        self._launch(TASK_MANAGER)
        self._wait(self._has_task_manager, "a task manager")
        used("Flink", self.get("/overview")["flink-version"])
        runtime = f"iceberg-flink-runtime-{self._minor()}"
        used_jar(f"Iceberg in Flink {self._minor()}", jars(self.version), runtime)
        return self

    def kill(self) -> None:
        """As a machine that loses power."""
        for process in self._processes:
            process.send_signal(signal.SIGKILL)
            process.wait()
        self._processes.clear()

    def stop(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            wait_for_end(process)
        self._processes.clear()

    def get(self, path: str) -> Any:
        """An answer of its REST API."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.rest}{path}", timeout=30) as answer:
            return json.load(answer)

    def sql(self, *statements: str, timeout: float = 300) -> str:
        """What the SQL client prints. It goes on behind no error.

        Raises:
            FlinkError: with what it printed, when a statement failed.
        """
        if not self.rest:
            self._configure()  # for what needs no cluster
        script = self.folder / "script.sql"
        set_up = "SET 'sql-client.execution.result-mode' = 'tableau'"
        script.write_text(";\n".join([set_up, *statements]) + ";\n")
        # its gateway is in opt, too
        path = os.pathsep.join([self._class_path(), str(self._home() / "opt" / "*")])
        gateways = build_jars("flink-jars", f"flink-sql-gateway-{self._minor()}.*.jar")
        done = subprocess.run(
            [*self._java(), "-cp", f"{path}:{gateways[0]}", SQL_CLIENT, "-f", str(script)],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        printed = re.sub(r"\x1b\[[\d;]*m", "", done.stdout)
        (self.folder / "client.log").write_text(done.stderr)
        if done.returncode or "[ERROR]" in printed:
            raise FlinkError(printed + done.stderr[-2000:])
        return printed

    def query(self, *statements: str) -> list[list[str]]:
        """The rows that the last of the statements gives, as text."""
        lines = [line for line in self.sql(*statements).splitlines() if line.startswith("| ")]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        return rows[1:]  # behind the names of the columns

    def submit(self, *statements: str) -> str:
        """Starts a job that goes on; returns its id."""
        found = re.findall(r"Job ID: ([0-9a-f]{32})", self.sql(*statements))
        assert found
        return str(found[-1])

    def wait_for_checkpoints(self, job: str, count: int) -> None:
        self._wait(
            lambda: self.get(f"/jobs/{job}/checkpoints")["counts"]["completed"] >= count,
            f"{count} checkpoints",
        )

    def wait_for_job(self, job: str) -> None:
        """Until it has finished."""
        self._wait(lambda: self.get(f"/jobs/{job}")["state"] == "FINISHED", "the end of the job")

    def _has_task_manager(self) -> bool:
        try:
            return bool(self.get("/overview")["taskmanagers"] == 1)
        except urllib.error.HTTPError as error:
            if error.code != 503:  # it listens before it answers
                raise
            return False

    def _wait(self, done: Any, what: str) -> None:
        end = time.monotonic() + 120
        while not done():
            if time.monotonic() > end:
                logs = [log.read_text()[-3000:] for log in self.folder.glob("*.log")]
                raise TimeoutError(f"waited for {what}: " + "\n".join(logs))
            time.sleep(0.2)

    def _configure(self) -> None:
        settings = {
            "jobmanager.rpc.address": "127.0.0.1",
            "jobmanager.rpc.port": str(free_port()),
            "jobmanager.bind-host": "127.0.0.1",
            "rest.address": "127.0.0.1",
            "rest.bind-address": "127.0.0.1",
            "rest.port": str(self.rest),
            "taskmanager.host": "127.0.0.1",
            "taskmanager.bind-host": "127.0.0.1",
            "taskmanager.numberOfTaskSlots": "4",
            "taskmanager.cpu.cores": "4.0",
            **{f"taskmanager.memory.{key}": value for key, value in MEMORY.items()},
            "parallelism.default": "1",
            "restart-strategy.type": "none",
            "execution.checkpointing.dir": f"file://{self.folder}/checkpoints",
            "state.checkpoints.dir": f"file://{self.folder}/checkpoints",
        }
        conf = self.folder / "conf"
        conf.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{key}: {value}\n" for key, value in settings.items())
        (conf / "config.yaml").write_text(lines)
        (conf / "log4j.properties").write_text(
            "rootLogger.level=INFO\nrootLogger.appenderRef.c.ref=C\nappender.c.name=C\n"
            "appender.c.type=CONSOLE\nappender.c.target=SYSTEM_ERR\n"
            "appender.c.layout.type=PatternLayout\nappender.c.layout.pattern=%d %p %c{1} %m%n\n"
        )

    def _launch(self, main: str) -> Path:
        log = self.folder / f"{main.rpartition('.')[2]}.log"
        with log.open("ab") as output:
            self._processes.append(
                subprocess.Popen(
                    [*self._java(), "-cp", self._class_path(), main]
                    + ["--configDir", str(self.folder / "conf")],
                    cwd=self.folder,
                    env=self._environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            )
        return log

    def _java(self) -> list[str]:
        return [*JAVA, f"-Dlog4j.configurationFile={self.folder}/conf/log4j.properties"]

    def _class_path(self) -> str:
        return os.pathsep.join(
            [
                str(self._home() / "lib" / "*"),
                *map(str, [*jars(self.version, ours=self.ours), *self.more]),
            ]
        )

    def _environment(self) -> dict[str, str]:
        home = self._home()
        return {
            **os.environ,
            "FLINK_CONF_DIR": str(self.folder / "conf"),
            "FLINK_LIB_DIR": str(home / "lib"),
            "FLINK_OPT_DIR": str(home / "opt"),
            "FLINK_PLUGINS_DIR": str(home / "plugins"),
            "HOME": str(self.folder),  # for the SQL client's history
        }

    def _minor(self) -> str:
        return self.version.rpartition(".")[0]

    def _home(self) -> Path:
        command: Sequence[str] = [str(ROOT / "dev" / "flink.sh"), "path", self.version]
        home = Path(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        )
        if not home.is_dir():
            raise FileNotFoundError(f"no Flink in {home}: run `make nightly-tools`")
        return home


class FlinkError(Exception):
    """What the SQL client printed when a statement failed."""
