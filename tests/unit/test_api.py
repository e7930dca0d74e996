"""The Python interface as a whole: its names, how they are called, what can be pickled, how long the import takes."""

import ast
import copy
import inspect
import json
import os
import pickle
import re
import resource
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from doubles.in_process import evidence_json

import pyspark_iceberg_crypto as ours
from pyspark_iceberg_crypto import (
    EncryptionKey,
    KeysReport,
    RepairReport,
    TableFinding,
    VerifyReport,
    VerifyTablesReport,
    settings,
)
from pyspark_iceberg_crypto.doctor import DoctorReport
from pyspark_iceberg_crypto.doctor._report import DoctorStep, Status

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "pyspark_iceberg_crypto"
TOP = ast.parse((PACKAGE / "__init__.py").read_text())


def test_all_is_what_type_checkers_see() -> None:
    (told,) = (n for n in TOP.body if isinstance(n, ast.If))
    imported = [a.asname for n in told.body if isinstance(n, ast.ImportFrom) for a in n.names]
    assert sorted([*imported, "__version__"]) == sorted(ours.__all__)
    assert len(set(ours.__all__)) == len(ours.__all__)
    assert set(ours.__all__) - {"__version__"} <= set(dir(ours))
    for name in ours.__all__:
        assert getattr(ours, name) is not None
    assert isinstance(ours.__version__, str)


def test_what_modules_call_public_is_exported() -> None:
    """A module's __all__ and the package's do not contradict each other."""
    for path in sorted(PACKAGE.rglob("[!_]*.py")):
        found = [
            ast.literal_eval(node.value)
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        ]
        for names in found:
            assert set(names) <= set(ours.__all__), path.name


# What a call says without a name, beside the session: what it is done to, and the one thing to choose.
POSITIONAL = {
    "check_report": ["key_id"],
    "configure_spark": ["catalog", "type"],
    "diagnose": ["catalog"],
    "kms_metrics": ["catalog"],
    "rotate_catalog": ["new_key_id"],
    "rotate_master_key": ["new_key_id"],
    "spark_conf": ["catalog", "type"],
}


@pytest.mark.parametrize("name", [n for n in ours.__all__ if inspect.isfunction(getattr(ours, n))])
def test_options_are_keywords_only_and_explained(name: str) -> None:
    function = getattr(ours, name)
    parameters = inspect.signature(function).parameters
    positional = [
        p.name
        for p in parameters.values()
        if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is not p.empty
    ]
    assert positional == POSITIONAL.get(name, [])
    told = inspect.getdoc(function) or ""
    for parameter in parameters:
        assert f"    {parameter}: " in told or len(parameters) <= 2, parameter


def test_a_catalog_that_requires_encryption() -> None:
    conf = settings.spark_conf("lake", type="hadoop", require_encryption=True)
    assert conf["spark.sql.catalog.lake.encryption.required"] == "true"


class NoPickle:
    """What a session is: nothing that goes elsewhere."""

    def __reduce__(self) -> Any:
        raise TypeError("a session cannot be pickled")


def reports() -> list[Any]:
    report = VerifyReport.of(evidence_json(), _spark=NoPickle(), _result=NoPickle())
    key = EncryptionKey(*["k", "kek", None, None, 1, 2, False, True, None, None, None, None])
    finding = TableFinding("t", "k", "p", "c", "h", True, False)
    return [
        report,
        VerifyTablesReport("lake", [report], [{"table": "t", "problem": "p", "hint": ""}], ["v"]),
        KeysReport("t", "k", "16", 730, "keystore", 1, None, [key]),
        RepairReport("t", False, [finding]),
        DoctorReport("lake", [DoctorStep("login", Status.OK)]),
    ]


@pytest.mark.parametrize("report", reports(), ids=lambda one: type(one).__name__)
def test_reports_are_pickled(report: Any) -> None:
    """They go through queues and into caches; only the list of files stays behind."""
    for again in (pickle.loads(pickle.dumps(report)), copy.deepcopy(report)):
        assert again == report
        assert json.dumps(again.to_dict()) == json.dumps(report.to_dict())
    if isinstance(report, VerifyReport):
        assert again._spark is None
        with pytest.raises(ours.ConfigurationError, match="holds no list of files"):
            _ = again.files


IMPORT = "import pyspark_iceberg_crypto, sys; sys.exit(any(n in sys.modules for n in ('pyspark', 'rich', 'boto3')))"


def test_the_import_is_quick_and_without_spark() -> None:
    """Under 0.3 s, of the processor's time: other tests run at the same time. The interpreter's own start aside."""

    def seconds(program: str) -> float:
        taken = []
        for _ in range(2):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return min(taken)

    assert seconds(IMPORT) - seconds("pass") < 0.3


USER = """
from pyspark.sql import DataFrame, SparkSession
from typing_extensions import assert_type
from pyspark_iceberg_crypto import (
    EncryptReport, Keystore, VerifyTablesReport, Vault, VerifyReport, configure_spark, encrypt_table, spark_conf,
    typed_errors, verify_catalog, verify_table,
)

def job(spark: SparkSession) -> None:
    report = verify_table(spark, "lake.db.t", deep=True)
    assert_type(report, VerifyReport)
    assert_type(report.files, DataFrame)
    assert_type(report.problem_count, int)
    assert_type(verify_catalog(spark, "lake"), VerifyTablesReport)
    assert_type(encrypt_table(spark, "lake.db.t", "k"), EncryptReport)
    assert_type(spark_conf("lake", kms=Vault("https://v", token_env="T")), dict[str, str])
    with typed_errors():
        spark.sql("SELECT 1")

configured = configure_spark(SparkSession.builder, kms=Keystore("k.p12", password_env="P"))
job(configured.getOrCreate())
"""
WRONG = (
    USER
    + """
verify_table("lake.db.t")
verify_table(configured.getOrCreate(), "t", True)
configure_spark(SparkSession.builder, kms="vault")
"""
)


@pytest.mark.nightly
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_users_program_is_checked(checker: str, tmp_path: Path) -> None:
    """By both checkers; and what is wrong is found."""
    pytest.importorskip(checker, reason="make lint installs it")
    for text, errors in ((USER, 0), (WRONG, 3)):
        file = tmp_path / "job.py"
        file.write_text(text)
        options = ["--strict"] if checker == "mypy" else ["--pythonpath", sys.executable]
        command = [sys.executable, "-m", checker, *options, str(file)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        found = set(re.findall(r"job\.py:(\d+):.* error:", done.stdout))
        assert len(found) == errors, done.stdout + done.stderr


def test_no_name_of_the_package_hides_a_module() -> None:
    """Such as a variable of __init__.py that is called like a file beside it."""
    targets = [t for node in ast.walk(TOP) if isinstance(node, ast.Assign) for t in node.targets]
    names = {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    modules = {path.stem for path in PACKAGE.iterdir()}
    assert "__all__" in names and not names & modules


def test_the_package_works_where_it_was_not_installed(tmp_path: Path) -> None:
    """As with spark-submit --py-files; the jar then comes by --jars or --packages."""
    package = Path(ours.__file__).parent
    zipped = tmp_path / "package.zip"
    with zipfile.ZipFile(zipped, "w") as file:
        for one in package.rglob("*"):
            if one.suffix == ".py":
                file.write(one, one.relative_to(package.parent))
    program = (
        "import pyspark_iceberg_crypto as p; from pyspark_iceberg_crypto import *; import pyspark_iceberg_crypto.cli; "
        "print(p.__file__, p.__version__, verify_table.__name__, Vault('https://v', token_env='T').properties())"
    )
    told = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(zipped)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert told.startswith(
        f"{zipped}/pyspark_iceberg_crypto/__init__.py {ours.__version__} verify_table"
    )
