"""A Spark of another version, as another virtual environment has it, in a process of its own.

OtherSession is another session of this version: what it is given travels as Python's objects. Here text does.
"""

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.jars import BUILT, ROOT, build_jars, our_jar

ANSWER = "ANSWER "


class OtherSpark:
    """Started with a configuration, to which it adds its own jars. Ends with its block.

    Args:
        python: of the virtual environment with that Spark.
        conf: Spark's configuration.
        log: gets what it prints.
    """

    def __init__(self, python: Path, conf: Mapping[str, str], log: Path):
        places = [str(ROOT), str(ROOT / "tests")]
        ours = ("SPARK_HOME", "SPARK_DIST_CLASSPATH")
        inherited = {name: value for name, value in os.environ.items() if name not in ours}
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                [python, "-m", "harness.other_spark"],
                cwd=log.parent,
                env={
                    **inherited,
                    "PYTHONPATH": os.pathsep.join(places),
                    "PYSPARK_PYTHON": str(python),
                },
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self._log = log
        self.versions: dict[str, str] = self._ask(conf=dict(conf))

    def sql(self, statement: str) -> list[list[Any]]:
        """The rows.

        Raises:
            RuntimeError: its error, with the stack trace.
        """
        rows: list[list[Any]] = self._ask(sql=statement)
        return rows

    def verify(self, table: str) -> dict[str, Any]:
        """The report of verify_table, of all snapshots."""
        report: dict[str, Any] = self._ask(verify=table)
        return report

    def _ask(self, **asked: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(ANSWER):
                answer = json.loads(line.removeprefix(ANSWER))
                if "error" in answer:
                    raise RuntimeError(answer["error"])
                return answer["answer"]
        raise RuntimeError(f"it ended: {self._log.read_text()[-4000:]}")

    def __enter__(self) -> "OtherSpark":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


class _Session:
    """In that process."""

    def conf(self, given: dict[str, str]) -> dict[str, str]:
        from pyspark.sql import SparkSession

        jars = [our_jar(), *build_jars("test-jars", "iceberg-spark-runtime-*.jar")]
        drivers = build_jars("test-jars", "sqlite-jdbc-*.jar")
        own = {
            "spark.jars": ",".join(map(str, jars)),
            "spark.driver.extraClassPath": os.pathsep.join(map(str, drivers)),
            "spark.sql.extensions": ",".join(BUILT.extensions),
        }
        builder = SparkSession.builder
        for key, value in {**own, **given}.items():
            builder = builder.config(key, value)
        self._spark = builder.getOrCreate()
        self._spark.sparkContext.setLogLevel("ERROR")
        jvm: Any = self._spark._jvm
        return {
            "spark": self._spark.version,
            "iceberg": jvm.org.apache.iceberg.IcebergBuild.version(),
        }

    def sql(self, statement: str) -> list[list[Any]]:
        return [list(row) for row in self._spark.sql(statement).collect()]

    def verify(self, table: str) -> dict[str, Any]:
        from pyspark_iceberg_crypto import verify_table

        with verify_table(self._spark, table, all_snapshots=True, progress=False) as report:
            return report.to_dict()


def _main() -> None:
    session = _Session()
    for line in sys.stdin:
        ((what, given),) = json.loads(line).items()
        try:
            answer = {"answer": getattr(session, what)(given)}
        except Exception:  # noqa: BLE001 (Java's do not travel)
            answer = {"error": traceback.format_exc()}
        sys.stdout.write(ANSWER + json.dumps(answer, default=str) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main()
