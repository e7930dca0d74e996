"""The notebook examples/tour.ipynb: it runs as its reader would run it, and what it has put out is kept."""

import importlib.util
import re
from pathlib import Path

import nbformat
import pytest
from harness.jars import ROOT, build_jars, our_jar

TOUR = ROOT / "examples" / "tour.ipynb"


def shown(notebook: nbformat.NotebookNode) -> list[str]:
    """What its cells put out, one text for each."""
    texts = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            assert output.output_type != "error", output
            texts.append(output.get("text") or output.data.get("text/html") or "")
    return texts


def tells_the_story(notebook: nbformat.NotebookNode) -> None:
    """Each part of the tour shows what its text says, in order, and nothing else is refused."""
    told = "\n".join(shown(notebook))
    parts = (
        r"Ada is readable:\n  50 41 52 31",
        r"Ada is not readable:\n  50 41 52 45",
        r"All 4 files in all snapshots and folders of lake\.shop\.orders are encrypted",
        r"lake\.shop\.plain is not encrypted: all 3 files in the current snapshot are PLAINTEXT",
        r"TamperedError Table lake\.shop\.orders: .*tag check failed",
        r"Of the 4 files in the current snapshot of lake\.shop\.orders .*1 is damaged and 3 are encrypted",
        r"TamperedError Table lake\.shop\.orders: ",
        r"1 KEK wrapped by 'sales-2' instead of 'sales'",
        r"a new KEK is in use",
        r"Di",
        r"snapshots of lake\.shop\.orders are encrypted",
    )
    for part in parts:
        found = re.search(part, told.replace("&#39;", "'"))
        assert found, (part, told)
        told = told[found.end() :]
    assert "Error" not in told
    assert sum(one.count("TamperedError") for one in shown(notebook)) == 2


def test_the_kept_output() -> None:
    """By day: the notebook is whole, and what it shows is what its cells say."""
    notebook = nbformat.read(TOUR, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            compile(cell.source, cell.id, "exec")
            assert cell.execution_count is not None, "run it: python dev/notebook.py"
    tells_the_story(notebook)
    assert not re.search(r"/home/|/root/|/work/", TOUR.read_text())


@pytest.mark.nightly
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("notebook", ROOT / "dev" / "notebook.py")
    assert spec and spec.loader
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    jars = [our_jar(), *build_jars("test-jars", "iceberg-spark-runtime-*.jar")]
    arguments = f"--conf spark.driver.host=127.0.0.1 --conf spark.ui.enabled=false --jars {','.join(map(str, jars))}"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{arguments} pyspark-shell")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    notebook = program.run(TOUR, tmp_path)
    tells_the_story(notebook)
    assert not list(tmp_path.glob("tour-*"))
