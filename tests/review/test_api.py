"""The served page for scripts: its answers, and the lines of its page of docs."""

import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from actionspan.annotations.formats.registry import read_annotation_file
from actionspan.demo.data_set import render_demo
from actionspan.demo.scenario import DemoSettings
from actionspan.proposals.segments import Row
from actionspan.report.content import PageVideo, details_of
from actionspan.review.corrections import page_state
from review.conftest import A, B, reviewing, serving
from review.test_server import Client

DOCS = Path(__file__).parents[2] / "docs" / "review_api.md"


@pytest.fixture
def work(start):
    """Three videos of 60 s, the last of them not there."""
    work = start({"a": [A, B], "b": [], "c": [A]})
    work.videos["c"].unlink()
    return work


@pytest.fixture
def ask(work):
    with serving(work, "secret", "once") as port:
        client = Client(work, port)
        client.headers = {"Authorization": "Bearer secret"}
        yield client


def test_the_list_has_each_video_before_and_after_it_was_looked_at(work, ask):
    before = ask("GET", "/videos").json["videos"]
    facts = [(each["video"], each["duration_seconds"], each["events"]) for each in before]
    assert facts == [("a", None, None), ("b", None, None), ("c", None, None)]
    assert ask("GET", "/events/a").json == {"video": "a", "duration_seconds": None, "events": None}
    work._look()
    listed = {each.pop("video"): each for each in ask("GET", "/videos").json["videos"]}
    assert [each["events"] for each in listed.values()] == [2, 0, None]
    assert listed["c"]["problem"] == "no such file"
    assert ask("GET", "/events/a").json["events"] == [A, B]


def test_rows_alone_are_what_the_page_keeps_and_learns_from(work, ask):
    work._look()
    rows = [
        ["a", "0", "10", "", "accepted"],
        ["a", "20", "30", "", "rejected"],
        ["a", "0:41.5", "50", "wave", "added"],
    ]
    change = {"version": 0, "done": True, "rows": rows}
    assert ask("PUT", "/corrections/a", change).json == {"version": 1}
    assert ask("PUT", "/corrections/a", change).status == 409
    assert ask("PUT", "/corrections/b", {"version": 0, "done": True, "rows": []}).status == 200
    (one, two) = read_annotation_file(work.corrections.table).records
    assert (one.parsed(), two.parsed()) == ([(0, 10, "action"), (41.5, 50, "wave")], [])
    kept = ask("GET", "/corrections").json["a"]
    assert (kept["rows"], kept["state"]["done"]) == (rows, True)
    listed = ask("GET", "/videos").json["videos"]
    assert [(each["version"], each["done"]) for each in listed] == [(1, 1), (1, 1), (0, 0)]
    assert ask("POST", "/learn").json["doing"] == "waiting to learn" or work._asked


def test_a_change_without_done_is_kept_and_counts_for_nothing(work, ask):
    change = {"version": 0, "rows": [["a", "1", "2", "", "added"]]}
    assert ask("PUT", "/corrections/a", change).status == 200
    assert ask("GET", "/status").json["not_done"] == 1
    assert work.corrections.done() == []


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"done": "yes"}, "done: neither true nor false"),
        ({"rows": [["a", "50", "70", "", "added"]]}, "segment 50…70 s is outside the video"),
        ({"rows": [["a", "9", "3", "", "rejected"]]}, "start 9 is not before end 3"),
    ],
)
def test_wrong_rows_are_refused_and_nothing_is_kept(work, ask, more, line):
    work._look()
    answer = ask("PUT", "/corrections/a", {"version": 0, "done": True, "rows": [], **more})
    assert answer.status == 400
    assert answer.json["error"].startswith(line)
    assert work.corrections.all() == {}


def test_an_accepted_event_is_that_of_the_page():
    """Its key is made of the numbers in the page's data, as a browser writes them."""
    row: Row = {"segment": [12.0, 16.125], "score": 0.5, "label": "sit"}
    video = PageVideo(video_id="a", file="", duration_seconds=60, curves={}, events=[row])
    ((start, end, label, _),) = json.loads(json.dumps(details_of(video)["events"]))
    state, _ = page_state("a", [["a", "12.000", "16.125", "sit", "accepted"]], False)
    origin = state["segments"][0]["origin"]
    assert origin["key"] == f"event {start} {end} {label}" == "event 12 16.125 sit"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", DOCS.read_text(), re.S | re.M)


@pytest.mark.full
def test_the_lines_of_the_docs_run_on_a_real_server(tmp_path):
    clips = tmp_path / "clips"
    render_demo(clips, DemoSettings(videos=4, shortest_seconds=5.0, longest_seconds=6.0), 1)
    first, *_ = sorted(path for path in clips.iterdir() if path.suffix == ".mp4")
    first.rename(clips / "holiday.mp4")
    (python,) = blocks("python")
    _, curl = blocks("bash")
    with reviewing(clips) as (address, _):
        place, token = re.fullmatch(r"(\S+)/\?token=(\S+)", address).groups()
        environment = {**os.environ, "ADDRESS": place, "TOKEN": token}
        export, *lines = curl.replace("\\\n", "").splitlines()
        assert export.startswith("export ")
        said = []
        for line in lines:
            done = subprocess.run(["bash", "-c", line], env=environment, stdout=subprocess.PIPE)
            said.append(json.loads(done.stdout))
        assert "holiday" in [each["video"] for each in said[0]["videos"]]
        assert said[1]["video"] == "holiday"
        assert said[3:4] == [{"version": 1}]
        assert all("error" not in each for each in said)
        # 2. a script accepts all events, and a model learns
        names: dict = {}
        os.environ.update(ADDRESS=environment["ADDRESS"], TOKEN=environment["TOKEN"])
        try:
            exec(compile(python, DOCS, "exec"), names)
            while names["ask"]("/status")["doing"]:
                time.sleep(0.5)
            status = names["ask"]("/status")
        finally:
            del os.environ["ADDRESS"], os.environ["TOKEN"]
        assert status["new"] == 0 or "Not learned" in status["said"]
    assert (clips.with_name("clips-review") / "corrections.csv").is_file()
