"""One HTML file with the timelines of videos, in which a person can correct them.

Scripts, styles and data are inside; only the videos are separate files. The data of each video
are a script element of JSON that is parsed when the video is chosen, so that a page of hundreds
opens at once. The same content gives the same bytes.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from actionspan.report.content import Page, details_of, index_of, summary_of
from actionspan.storage.writing import atomic_path

_HERE = Path(__file__).parent
_LIBRARY = "vendor/uPlot"
_STYLES = "base layout list player inspector timeline segments holding summary zones narrow".split()


def write_page(path: Path, page: Page) -> None:
    """Write a page as one HTML file, atomically.

    Raises:
        JobError: The disk has no room for the file.
    """
    parts = {
        "title": page.title,
        "subtitle": page.subtitle,
        "index": _json(index_of(page)),
        "summary": _json(summary_of(page)) if page.charts or page.tables else "",
        "videos": (_json(details_of(video)) for video in page.videos),
        "styles": _styles(),
        "scripts": _scripts(),
        "served": page.served,
        "policy": _policy(served=page.served),
    }
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates", encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    with atomic_path(path) as partial:
        # a file name that is not UTF-8 is shown with a question mark
        stream = environment.get_template("page.html.jinja").stream(parts)
        stream.enable_buffering(64)
        stream.dump(str(partial), encoding="utf-8", errors="replace")


def _json(content: Any) -> Markup:
    """Return JSON for a script element: nothing in it can end the element or begin a comment."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


@cache
def _styles() -> list[Markup]:
    """Return the text of the style elements: the library's, and ours."""
    ours = "\n".join(_asset(f"{name}.css") for name in _STYLES)
    return [Markup(_asset(f"{_LIBRARY}.min.css")), Markup(ours)]


@cache
def _scripts() -> list[Markup]:
    """Return the text of the script elements: the library, and our modules as one."""
    ours = join_modules(_HERE / "assets", "main")
    return [Markup(_asset(f"{_LIBRARY}.iife.min.js")), Markup(ours)]


def _asset(name: str) -> str:
    return (_HERE / "assets" / name).read_text(encoding="utf-8")


def _policy(*, served: bool) -> str:
    """Return the content security policy: inline parts by their hash, images as data, videos."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(_hashes(_scripts()))}",
            f"style-src {' '.join(_hashes(_styles()))}",
            "img-src data:",
            "media-src 'self' file: blob:",  # blob: a file that the reader chooses
            *["connect-src 'self'"] * served,
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _hashes(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
        yield f"'sha256-{digest}'"


_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:const|function|async function|class) (\w+))", re.MULTILINE)


def join_modules(folder: Path, name: str) -> str:
    """Return a module and all that it imports, files of one folder, as the text of one module.

    A browser imports no module from the file system. So each module becomes a block, after the
    blocks of the modules that it imports, and hands on its exports by an object. The modules
    use no more than `import { names } from "./module.js";` and `export` before a declaration, and
    no cycles.
    """
    blocks: dict[str, str] = {}

    def add(module: str) -> None:
        if module in blocks:
            return
        text = (folder / f"{module}.js").read_text(encoding="utf-8")
        for _, imported in _IMPORT.findall(text):
            add(imported)
        exported = ", ".join(_EXPORT.findall(text))
        body = _EXPORT.sub("", _IMPORT.sub(r"const \1 = modules.\2;", text))
        blocks[module] = f"{{\n{body}modules.{module} = {{ {exported} }};\n}}\n"

    add(name)
    return "const modules = {};\n" + "".join(blocks.values())
