"""Runs a notebook in a kernel of its own and keeps what it puts out: python dev/notebook.py examples/tour.ipynb.

Without what goes to standard error, which is Spark's log, and without the text of what shows itself as HTML.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient


def run(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Run a notebook in a folder.

    Raises:
        CellExecutionError: a cell failed.
    """
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [one for one in map(_kept, cell.outputs) if one is not None]
    return notebook


def _kept(output: nbformat.NotebookNode) -> nbformat.NotebookNode | None:
    if output.get("name") == "stderr" or not output.get("text", "text").strip():
        return None
    if "text/html" in output.get("data", {}):
        output.data.pop("text/plain", None)
    return output


if __name__ == "__main__":
    file = Path(sys.argv[1])
    nbformat.write(run(file, Path.cwd()), file)
