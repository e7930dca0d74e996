"""What a run ran on."""

import os
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


def environment(spark: SparkSession, cores: int, memory: str) -> dict[str, Any]:
    jvm: Any = spark._jvm
    system = jvm.java.lang.System
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": git("rev-parse", "HEAD"),
        "changed": bool(git("status", "--porcelain", "--untracked-files=no")),
        "spark": pyspark.__version__,
        "iceberg": str(jvm.org.apache.iceberg.IcebergBuild.version()),
        "java": f"{system.getProperty('java.vm.name')} {system.getProperty('java.version')}",
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu": cpu(),
        "cpus": os.cpu_count(),
        "cores": cores,
        "driver_memory": memory,
        "load": round(os.getloadavg()[0], 2),
    }


def cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()
