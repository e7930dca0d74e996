"""What mkdocs cannot do by itself: pages that are not below docs/, and Javadoc.

README.md is the first page. Every file of this project that a page links to becomes a page, too, below the path that it
has in the project; links between all of them are rewritten to where the pages are.
"""

from __future__ import annotations

import json
import os.path
import re
import shutil
from collections.abc import Iterator
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import ConfigurationError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(\]\()(?!\w+:)([^)#\s]+)((?:#[^)\s]*)?\))")
FENCE = re.compile(r"^(```.*?^```)$", re.DOTALL | re.MULTILINE)
LANGUAGES = {".java": "java", ".json": "json", ".py": "python", ".sql": "sql", ".yml": "yaml"}
FIRST, FOLDERS = "README.md", {"examples": "docs/examples.md"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is linked to from docs/, from README.md, and from what these link to."""
    javadoc = ROOT / config.extra["javadoc"]
    if not (javadoc / "index.html").is_file():
        raise ConfigurationError(f"there is no Javadoc in {javadoc}: `make docs` builds it first")
    index = str(javadoc / "index.html")
    files.append(File.generated(config, "javadoc/index.html", abs_src_path=index))
    known = {f"docs/{file.src_uri}" for file in files.documentation_pages()}
    todo = [*sorted(known), FIRST, *_named_in(config.nav)]
    while todo:
        path = todo.pop()
        if path not in known and not path.startswith("docs/"):
            files.append(
                File.generated(
                    config, _page(path), content=_text(path), inclusion=InclusionLevel.NOT_IN_NAV
                )
            )
        known.add(path)
        todo += [one for one in _linked(path) if one not in known and (ROOT / one).is_file()]
    return files


def on_post_build(config: MkDocsConfig) -> None:
    """Add the rest of Javadoc, as it is."""
    target = Path(config.site_dir) / "javadoc"
    shutil.copytree(ROOT / config.extra["javadoc"], target, dirs_exist_ok=True)


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Rewrite links in a page's text."""
    source = _source(page.file.src_uri)
    here = PurePosixPath(_page(source)).parent

    def rewritten(link: re.Match[str]) -> str:
        target = _page(_resolved(source, link[2]))
        return link[1] + os.path.relpath(target, here) + link[3]

    parts = FENCE.split(markdown)
    return "".join(part if i % 2 else LINK.sub(rewritten, part) for i, part in enumerate(parts))


def on_page_content(html: str, **_: Any) -> str:
    """Repair what mkdocs-click makes of click's help: lines that stay lines, and options without a default."""
    html = html.replace("<code>Sentinel.UNSET</code>", "")
    return re.sub(r"<p>(Exit codes?:\n)", r'<p class="lines">\1', html)


def _named_in(nav: Any) -> Iterator[str]:
    """Give the files of this project that the nav has beside those in docs/."""
    for item in nav if isinstance(nav, list) else nav.values():
        if not isinstance(item, str):
            yield from _named_in(item)
        elif (ROOT / (path := _source(item))).is_file() and not path.startswith("docs/"):
            yield path


def _linked(path: str) -> list[str]:
    """Give the files that a document links to, by their paths in this project."""
    if not path.endswith(".md") or not (ROOT / path).is_file():
        return []
    prose = "".join(FENCE.split((ROOT / path).read_text())[::2])
    return [_resolved(path, link[2]) for link in LINK.finditer(prose)]


def _resolved(path: str, link: str) -> str:
    found = os.path.normpath(PurePosixPath(path).parent / link)
    return FOLDERS.get(found, found)


def _page(path: str) -> str:
    """Tell where a file of this project is in the site."""
    if path == FIRST:
        return "index.md"
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return path if path.endswith(".md") else f"{path}.md"


def _source(page: str) -> str:
    """Tell which file of this project a page is: the reverse of `_page`."""
    if page == "index.md":
        return FIRST
    if (ROOT / "docs" / page).exists():
        return f"docs/{page}"
    return page if (ROOT / page).exists() else page.removesuffix(".md")


def _text(path: str) -> str:
    text = (ROOT / path).read_text()
    if path.endswith(".md"):
        return text
    if path.endswith(".ipynb"):
        return "\n\n".join(_cells(json.loads(text)))
    return f"# {Path(path).name}\n\n```{LANGUAGES.get(Path(path).suffix, '')}\n{text}```\n"


def _cells(notebook: dict[str, Any]) -> Iterator[str]:
    """Give a notebook's cells as Markdown, with what they put out."""
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield source
            continue
        yield f"```python\n{source}\n```"
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "text/html" in data:
                yield f'<div class="output">{"".join(data["text/html"])}</div>'
            else:
                said = "".join(data.get("text/plain", output.get("text", "")))
                yield f'<pre class="output">{escape(said)}</pre>'
