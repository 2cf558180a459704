"""The file of the page, without a browser."""

import base64
import dataclasses
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from actionspan.proposals.segments import ranked_rows
from actionspan.report.page import join_modules, write_page
from report import pages

ASSETS = Path(__file__).parents[2] / "src/actionspan/report/assets"


class Elements(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str], str]] = []
        self.open: list[int] = []
        self.text = text
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs), ""))
        self.open.append(len(self.found) - 1)

    def handle_data(self, data):
        if self.open:
            tag, attributes, text = self.found[self.open[-1]]
            self.found[self.open[-1]] = (tag, attributes, text + data)

    def handle_endtag(self, tag):
        while self.open and self.found[self.open.pop()][0] != tag:
            pass

    def all(self, tag: str) -> list[tuple[dict[str, str], str]]:
        return [(attributes, text) for name, attributes, text in self.found if name == tag]

    def data(self, name: str):
        (text,) = [text for attributes, text in self.all("script") if attributes.get("id") == name]
        return json.loads(text)


@pytest.fixture
def written(tmp_path):
    """Write a page of these videos and other content, and return its elements."""

    def written(videos=None, **content) -> Elements:
        write_page(tmp_path / "index.html", pages.page(videos, **content))
        return Elements((tmp_path / "index.html").read_bytes().decode())

    return written


def test_the_same_content_gives_the_same_bytes_and_loads_nothing_from_elsewhere(written):
    content = {"charts": pages.charts(), "tables": [pages.TABLE]}
    page = written(**content)
    assert page.text == written(**content).text
    attributes = [(name, value) for _, own, _ in page.found for name, value in own.items()]
    loading = ("src", "href", "action", "data")
    assert [each for each in attributes if each[0] in loading and each[1][:1] != "#"] == []
    assert [name for name, _ in attributes if name.startswith("on") or name == "style"] == []


def test_the_policy_names_the_hash_of_every_script_and_style(written):
    elements = written()
    (policy,) = [
        attributes["content"]
        for attributes, _ in elements.all("meta")
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"

    def hashes(texts: list[str]) -> str:
        digests = [hashlib.sha256(text.encode()).digest() for text in texts]
        return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)

    runs = [
        text for found, text in elements.all("script") if found.get("type") != "application/json"
    ]
    assert len(runs) == 2
    assert rules["script-src"] == hashes(runs)
    assert rules["style-src"] == hashes([text for _, text in elements.all("style")])


def test_the_index_is_apart_from_what_each_video_shows(written):
    elements = written([pages.video("one"), pages.video("two")])
    index = elements.data("index-data")
    assert index["labels"] == ["fall", "jump", "sit down"]
    assert [video["id"] for video in index["videos"]] == ["one", "two"]
    assert index["videos"][0] == {
        **{"id": "one", "file": "film.mp4", "duration": 8, "rate": 25, "subset": "validation"},
        **{"note": "", "recall": 0.7, "score": 0.84, "before": None, "gone": 0},
        **{"events": 3, "truths": 2, "proposals": 60},
    }
    video = elements.data("video-1")
    assert video["truth"][0] == [1, 2.52, "fall", None]
    assert video["events"][0] == [4.48, 6.08, "sit down", 0.84]
    assert len(video["curves"]["start"]) == 100
    seconds, jpeg = video["thumbnails"][0]
    assert seconds == 0.4
    assert base64.b64decode(jpeg) == pages.thumbnail(0.05)


def test_hostile_text_stays_data(written):
    evil = "</script><script>alert(1)</script><!--<script>\u2028&amp;"
    (chart, *others), table = pages.charts(), pages.TABLE
    plain = written(charts=[chart, *others], tables=[table])
    elements = written(
        [pages.video(evil, note=evil, subset=evil, events=[pages.row(0.0, 1.0, 0.5, evil)])],
        title=evil,
        subtitle=evil,
        charts=[dataclasses.replace(chart, title=evil)],
        tables=[dataclasses.replace(table, rows=[[evil]])],
    )
    assert [tag for tag, *_ in elements.found] == [tag for tag, *_ in plain.found]
    assert elements.data("index-data")["videos"][0]["id"] == evil
    assert elements.data("video-0")["events"][0][2] == evil
    assert elements.data("summary-data")["tables"][0]["rows"] == [[evil]]
    assert elements.all("h1")[0][1] == evil


def test_paths_become_addresses(written):
    addresses = {
        "": "",
        "film.mp4": "film.mp4",
        "../my films/1?2#3%4.mp4": "../my%20films/1%3F2%233%254.mp4",
        "javascript:alert(1)": "javascript%3Aalert%281%29",
        "é/中.mp4": "%C3%A9/%E4%B8%AD.mp4",
        "not utf-8 \udcff.mp4": "not%20utf-8%20%FF.mp4",
        "/a/b c.mp4": "file:///a/b%20c.mp4",
    }
    index = written([pages.video(file=file) for file in addresses]).data("index-data")
    assert [video["file"] for video in index["videos"]] == list(addresses.values())


def test_what_json_and_utf8_lack_is_a_gap_or_shown_as_well_as_can_be(written):
    curves = {"motion": np.array([0.5, np.nan, np.inf, 1 / 3], np.float32)}
    elements = written([pages.video("a\udcff", curves=curves, recall=np.nan)], title="b\udcff")
    (video,) = elements.data("index-data")["videos"]
    assert (video["id"], video["recall"]) == ("a\udcff", None)
    assert elements.all("title")[0][1] == "b?"
    assert elements.data("video-0")["curves"]["motion"] == [0.5, None, None, 0.3333]
    # without charts and tables there is no summary
    assert '<script type="application/json" id="summary-data"></script>' in elements.text


def test_the_example_of_the_docs_runs(tmp_path, monkeypatch):
    text = (ASSETS.parents[3] / "docs/api/index.md").read_text().split("## A page of your own")[1]
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    index = Elements((tmp_path / "index.html").read_text()).data("index-data")
    assert [video["id"] for video in index["videos"]] == ["holiday"]


def test_modules_become_one_script(tmp_path):
    files = {
        "main": 'import { twice } from "./numbers.js";\nconst one = 1;\nreport(twice(one));\n',
        "numbers": (
            'import { factor } from "./factor.js";\n'
            "const one = 100;\nexport function twice(x) {\n  return factor * x + 0 * one;\n}\n"
        ),
        "factor": "export const factor = 2;\n",
        "unused": "export const nothing = 1;\n",
    }
    for name, text in files.items():
        (tmp_path / f"{name}.js").write_text(text)
    script = join_modules(tmp_path, "main")
    assert script.index("factor = 2") < script.index("function twice") < script.index("report(")
    assert "nothing" not in script
    assert not re.search(r"^\s*(import|export)\b", script, re.MULTILINE)


def test_every_script_is_a_part_of_the_page_and_the_library_has_its_licence():
    script = join_modules(ASSETS, "main")
    modules = {path.stem for path in ASSETS.glob("*.js")}
    assert {name for name in modules if f"modules.{name} = " in script} == modules
    assert "</script" not in script.lower()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", script)
    licence = (ASSETS / "vendor/LICENSE").read_text()
    assert "MIT" in licence
    assert "Leon Sorokin" in licence
    assert "uPlot (v1.6.32)" in (ASSETS / "vendor/uPlot.iife.min.js").read_text()[:200]


def test_a_served_page_asks_its_server_and_no_other_page_does(written):
    for served in (True, False):
        text = written(served=served).text
        assert ("connect-src" in text.split("<style>")[0]) == served
        assert ('id="learn"' in text) == served
        assert ('id="save-corrections"' in text) != served


def test_a_page_has_one_scale(written):
    for events, scale, best in (
        (ranked_rows([[1.0, 2.0], [3.0, 4.0]]), "rank", None),
        (pages.EVENTS, "chance", 0.84),
        (pages.proposals(60)[:2], "score", 0.86),
        ((), "score", 0.86),
    ):
        videos = [pages.video(events=events), pages.video("other", events=())]
        index = written(videos).data("index-data")
        assert index["scale"] == scale
        listed = [(video["score"], video["events"]) for video in index["videos"]]
        nothing = (None, 0) if events else (0.86, None)
        assert listed == [(best, len(events) or None), nothing]
