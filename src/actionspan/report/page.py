"""One HTML file with the timelines of videos, in which a person can correct them.

Scripts, styles and data are inside; only the videos are files of their own. The data of each video
are a script element of JSON that is parsed when the video is chosen, so that a page of hundreds
opens at once. The same content gives the same bytes.
"""

import base64
import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from actionspan.files.storage import atomic_path
from actionspan.report.content import Page, PageVideo, Span

_HERE = Path(__file__).parent
_LIBRARY = "vendor/uPlot"
_STYLES = "base layout list player inspector timeline segments summary narrow".split()
_SECONDS, _SHARES = 3, 4  # decimals


def write_page(path: Path, page: Page) -> None:
    """Write a page as one HTML file, atomically.

    Raises:
        JobError: There is no room for the file.
    """
    parts = {
        "title": page.title,
        "subtitle": page.subtitle,
        "index": _json(_index(page)),
        "summary": _json(_summary(page)) if page.charts or page.tables else "",
        "videos": (_json(_details(video)) for video in page.videos),
        "styles": _styles(),
        "scripts": _scripts(),
        "policy": _policy(),
    }
    with atomic_path(path) as partial:
        # a file name that is not UTF-8 is shown with a question mark
        stream = _environment().get_template("page.html.jinja").stream(parts)
        stream.enable_buffering(64)
        stream.dump(str(partial), encoding="utf-8", errors="replace")


def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(_HERE / "templates", encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _index(page: Page) -> dict[str, Any]:
    """Return what the list of videos needs, and what holds for all of them."""
    spans = (span for video in page.videos for span in (*video.truth, *video.proposals))
    return {
        "title": page.title,
        "labels": sorted({span.label for span in spans if span.label}),
        "videos": [
            {
                "id": video.video_id,
                "file": _address(video.file),
                "duration": _number(video.duration_seconds, _SECONDS),
                "rate": _number(video.frames_per_second),
                "subset": video.subset,
                "note": video.note,
                "recall": _number(video.recall),
                "score": _number(video.proposals[0].score) if video.proposals else None,
                "truths": len(video.truth),
                "proposals": len(video.proposals),
            }
            for video in page.videos
        ],
    }


def _details(video: PageVideo) -> dict[str, Any]:
    """Return what is parsed when the video is chosen."""
    return {
        "truth": _rows(video.truth),
        "proposals": _rows(video.proposals),
        "events": _rows(video.events),
        "curves": {
            name: [_number(value, _SHARES) for value in values]
            for name, values in video.curves.items()
        },
        "thumbnails": [
            [_number(picture.seconds, _SECONDS), base64.b64encode(picture.jpeg).decode("ascii")]
            for picture in video.thumbnails
        ],
    }


def _rows(spans: Sequence[Span]) -> list[list[Any]]:
    return [
        [
            _number(span.start, _SECONDS),
            _number(span.end, _SECONDS),
            span.label,
            _number(span.score),
        ]
        for span in spans
    ]


def _summary(page: Page) -> dict[str, Any]:
    return {
        "charts": [
            {
                "title": chart.title,
                "kind": chart.kind,
                "xLabel": chart.x_label,
                "yLabel": chart.y_label,
                "note": chart.note,
                "x": [x if isinstance(x, str) else _number(x) for x in chart.x],
                "series": [
                    {
                        "name": series.name,
                        "values": list(map(_number, series.values)),
                        "low": list(map(_number, series.low)),
                        "high": list(map(_number, series.high)),
                    }
                    for series in chart.series
                ],
            }
            for chart in page.charts
        ],
        "tables": [
            {
                "title": table.title,
                "columns": list(table.columns),
                "rows": list(map(list, table.rows)),
                "note": table.note,
            }
            for table in page.tables
        ],
    }


def _number(value: Any, decimals: int | None = None) -> float | None:
    """Return a number that JSON can hold, to 6 significant digits or to so many decimals."""
    if value is None or not math.isfinite(value):
        return None
    exact = float(value)
    rounded = float(f"{exact:.6g}") if decimals is None else round(exact, decimals)
    return int(rounded) if rounded.is_integer() else rounded


def _json(content: Any) -> Markup:
    """Return JSON for a script element: nothing in it can end the element or begin a comment."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _address(file: str) -> str:
    """Return a path as an address: no name, whatever is in it, is taken for a scheme or a query."""
    if not file:
        return ""
    if Path(file).is_absolute():
        return Path(file).as_uri()
    parts = Path(file).as_posix().split("/")
    return "/".join(quote(os.fsencode(part), safe="") for part in parts)


@cache
def _styles() -> list[Markup]:
    """Return the text of the style elements: the library's, and ours."""
    ours = "\n".join(_asset(f"{name}.css") for name in _STYLES)
    return [Markup(_asset(f"{_LIBRARY}.min.css")), Markup(ours)]


@cache
def _scripts() -> list[Markup]:
    """Return the text of the script elements: the library, and our modules as one."""
    return [
        Markup(_asset(f"{_LIBRARY}.iife.min.js")),
        Markup(as_one_script(_HERE / "assets", "main")),
    ]


def _asset(name: str) -> str:
    return (_HERE / "assets" / name).read_text(encoding="utf-8")


def _policy() -> str:
    """Return the content security policy: what is inside by its hash, pictures as data, videos."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(_hashes(_scripts()))}",
            f"style-src {' '.join(_hashes(_styles()))}",
            "img-src data:",
            "media-src 'self' file: blob:",  # blob: a file that the reader chooses
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


def as_one_script(folder: Path, name: str) -> str:
    """Return a module and all that it imports, files of one folder, as the text of one module.

    A browser imports no module from the file system. So each module becomes a block, after the
    blocks of the modules that it imports, and hands on what it exports by an object. The modules
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
