"""Search by example, as a person calls it."""

import csv
import json

import pytest

from actionspan.demo.data_set import render_demo
from actionspan.demo.scenario import DemoSettings
from worlds.command import actionspan
from worlds.tables import rows_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder of videos, marks in one of them, and the features of all."""
    made = tmp_path_factory.mktemp("find")
    settings = DemoSettings(videos=3, shortest_seconds=6.0, longest_seconds=7.0)
    render_demo(made / "videos", settings, 1)
    known = json.loads((made / "videos/annotations.json").read_text())["database"]
    (made / "videos/annotations.json").unlink()
    name = sorted(known)[0]
    rows = [[name, *one["segment"], one["label"], ""] for one in known[name]["annotations"]]
    with (made / "marks.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["video", "start", "end", "label", "note"], *rows])
    return made


def find(folder, out, *more) -> int:
    given = ("--like", folder / "marks.csv", folder / "videos", "--features", folder / "features")
    return actionspan("find", *given, "--out", out, *more)


def events(out) -> dict[str, list]:
    return json.loads((out / "events.json").read_text())["results"]


def test_a_search_gives_a_page_and_tables_of_the_best_of_all_videos(folder, tmp_path, capsys):
    out = tmp_path / "found"
    assert find(folder, out, "--top", "4") == 0
    said = capsys.readouterr().out
    assert "4 segments like" in said
    assert "in 3 videos; open" in said
    found = events(out)
    assert sum(map(len, found.values())) == 4
    scores = [row["score"] for rows in found.values() for row in rows]
    assert all(0 < score <= 1 for score in scores)
    marks = rows_of(folder / "marks.csv")
    assert {row["label"] for rows in found.values() for row in rows} <= {
        mark["label"] for mark in marks
    }
    for row in found[marks[0]["video"]]:
        start, end = row["segment"]
        for mark in (mark for mark in marks if mark["label"] == row["label"]):
            shared = min(end, float(mark["end"])) - max(start, float(mark["start"]))
            assert shared <= 0.51 * (end - start)
    assert "rank" not in (out / "index.html").read_text()[:2000]
    # another search into the same folder replaces it, decodes nothing again, and touches no file
    # of the user's
    name = next(iter(found))
    (out / f"{name}.vtt").write_text("mine")
    label, video = marks[0]["label"], folder / "videos" / f"{marks[0]['video']}.mp4"
    given = ("--like", folder / "marks.csv", "--features", folder / "features", "--out", out)
    more = ("--top", "1", "--no-page", "--label", label)
    made = {path: path.stat().st_mtime_ns for path in (folder / "features").iterdir()}
    assert actionspan("find", *given, sorted((folder / "videos").iterdir())[1], video, *more) == 0
    assert {path: path.stat().st_mtime_ns for path in made} == made
    assert len(events(out)) == 2
    assert sum(map(len, events(out).values())) == 1
    assert (out / f"{name}.vtt").read_text() == "mine"


def test_a_search_by_an_index_shows_the_videos_of_the_best_alone(folder, tmp_path, capsys):
    out = tmp_path / "found"  # that the best are the right ones: test_index.py, where some are
    given = ["--index", "--top", "1", "--no-page"]
    assert find(folder, out, *given) == 0
    said = capsys.readouterr()
    assert "1 segment like" in said.out
    assert "in 3 videos" in said.out
    assert said.err.count("index.h5: no such file; it is made, once") == 1
    found = events(out)
    assert [len(rows) for rows in found.values()] == [1]
    made = (folder / "features/index.h5").stat().st_mtime_ns
    assert find(folder, out, *given) == 0
    assert (folder / "features/index.h5").stat().st_mtime_ns == made
    assert events(out) == found
    # a search without it shows all videos
    assert find(folder, out, *given[1:]) == 0
    assert len(events(out)) == 3


def test_results_of_propose_are_not_replaced(folder, tmp_path, capsys):
    out = tmp_path / "proposals"
    video = sorted((folder / "videos").iterdir())[0]
    assert actionspan("propose", video, "--model", "none", "--out", out, "--no-page") == 0
    before = events(out)
    assert find(folder, out) == 2
    assert "holds proposals of another model (1 video)" in capsys.readouterr().err
    assert events(out) == before


def test_what_cannot_be_searched_is_one_line(folder, tmp_path, capsys):
    assert find(folder, tmp_path / "out", "--label", "swim") == 2
    assert "marks no segment of the label swim in these videos" in capsys.readouterr().err
    assert find(folder, tmp_path / "out", "--top", "0") == 2
    assert "--top 0: at least 1" in capsys.readouterr().err
    (tmp_path / "videos").mkdir()
    name = rows_of(folder / "marks.csv")[0]["video"]
    (tmp_path / f"videos/{name}.mp4").write_bytes(b"no video")
    given = ("--like", folder / "marks.csv", tmp_path / "videos", "--out", tmp_path / "out")
    assert actionspan("find", *given) == 2
    shown = capsys.readouterr().err
    assert f"{name}.mp4: " in shown
    assert "nothing to search: 1 video cannot be read" in shown
    assert "Traceback" not in shown
