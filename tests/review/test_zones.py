"""Zones in the served page: drawn, kept in zones.json, and followed by the work."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from actionspan.errors import InputError
from actionspan.review import footage
from actionspan.review import work as work_module
from actionspan.review.footage import encode_all
from actionspan.storage.writing import create_h5
from actionspan.video.zones import check_zones, read_zones, zones_attributes, zones_of
from report.conftest import broken_rules, drag
from review import conftest
from review.conftest import A, B, row, save
from video.numbered import write_film
from worlds.camera import scene

DOOR = {"name": "door", "points": [[0, 0], [0.5, 0], [0.5, 0.5]]}
YARD = {"name": "yard", "points": [[0.5, 0.5], [1, 0.5], [1, 1]]}


def test_zones_are_kept_by_pattern_and_a_wrong_one_changes_nothing(start, tmp_path):
    work = start({"a1": [A], "a2": [A], "b": [A]})
    assert work.zones("b") == {"pattern": "*", "zones": [], "own": "b"}
    work.save_zones("b", "*", [DOOR])
    work.save_zones("a1", "a*", [DOOR, YARD])
    kept = json.loads((tmp_path / "out/zones.json").read_text())
    assert kept == {"*": [DOOR], "a*": [DOOR, YARD]}
    assert work.zones("a2") == {"pattern": "a*", "zones": [DOOR, YARD], "own": "a2"}
    for pattern, zones, line in (
        ("a*", [DOOR], "not a pattern that the name b matches"),
        ("*", [{**DOOR, "points": [[0, 0], [1, 1]]}], "*[0].points"),
        (3, [DOOR], "not a pattern"),
    ):
        with pytest.raises(InputError, match=line.replace("*", r"\*").replace("[", r"\[")):
            work.save_zones("b", pattern, zones)
    with pytest.raises(InputError, match=r"a1 has zones of its own, of a\*"):
        work.save_zones("a1", "*", [YARD])
    assert json.loads((tmp_path / "out/zones.json").read_text()) == kept
    work.save_zones("a1", "a*", [])
    assert json.loads((tmp_path / "out/zones.json").read_text()) == {"*": [DOOR]}
    with pytest.raises(KeyError):
        work.save_zones("c", "*", [])


def test_only_videos_whose_zones_changed_are_looked_at_and_their_lists_begin_again(
    start, monkeypatch
):
    events, seen = {"a": [A, B], "b": [A, B]}, []
    work = start(events)

    def noting(paths, *how, cameras):
        for path in paths:
            seen.append(path.stem)
            (one,) = given([path], *how)
            zones = zones_of(cameras, path.stem)
            yield replace(one, zones=zones, source={**one.source, **zones_attributes(zones)})

    given = conftest.encode_all
    monkeypatch.setattr(work_module, "encode_all", noting)
    work._round(0)
    assert seen == ["a", "b"]
    events["a"] = [A | {"zone": "door"}]
    work.save_zones("a", "a", [DOOR, YARD])
    work._round(0)
    assert seen == ["a", "b", "a"]
    assert [row["segment"] for row in work._results["a"].events] == [A["segment"]]
    assert work._page._lists._kept["a"].gone == [], "of another list"
    assert work._page._lists._kept["a"].before is None
    assert "zone" in (work.folder / "events.csv").read_text().splitlines()[0]
    work._round(0)
    assert seen == ["a", "b", "a"]
    monkeypatch.setattr(work, "_learn", lambda: seen.append("learned"))
    save(work, "b")
    work._asked = False
    work.save_zones("a", "a", [])
    work._round(0)
    assert seen[3:] == ["a", "learned"], "a model of features within other zones is made again"


def test_features_within_other_zones_are_not_taken_for_these(tmp_path, monkeypatch):
    made = []

    def encode_each(jobs, settings, how, cameras):
        for number, (video, out) in enumerate(jobs):
            made.append([zone.name for zone in zones_of(cameras, video.video_id)])
            with create_h5(out, "") as file:
                file.create_group(video.video_id)
            yield number, ""

    monkeypatch.setattr(footage, "encode_each", encode_each)

    frames = [picture for _, picture in zip(range(10), scene(), strict=False)]
    path = write_film(tmp_path / "a.mp4", frames)
    one, other = (check_zones({"*": [zone]}, "zones") for zone in (DOOR, YARD))
    for cameras in ({}, {}, one, one, other, {}, {"b*": one["*"]}):
        next(encode_all([path], tmp_path / "features", cameras=cameras))
    assert made == [[], ["door"], ["yard"], []]


@pytest.fixture
def work(start):
    """Two videos that were looked at."""
    work = start({"a": [A, row(20, 30)], "b": [A]})
    work._look()
    work._doing = ""
    return work


def test_a_page_draws_zones_by_mouse_keys_and_numbers(browse, tmp_path):
    tab = browse()
    tab.click("#open-zones")

    def at(x, y):
        picture = tab.locator("#zone-picture").bounding_box()
        return picture["x"] + x * picture["width"], picture["y"] + y * picture["height"]

    # 1. a drag draws a zone, its name is typed, a click adds a point, keys move and delete one
    drag(tab, at(0.1, 0.2), at(0.4, 0.6))
    name = tab.get_by_label("Name of the zone")
    name.fill("door")
    name.press("Enter")
    tab.mouse.click(*at(0.45, 0.4))
    if shots := os.environ.get("ACTIONSPAN_SCREENSHOTS"):
        tab.screenshot(path=Path(shots) / "zones.png")
    assert tab.locator(".zone-point").count() == 5
    tab.locator(".zone-point").nth(2).press("Shift+ArrowRight")
    tab.locator(".zone-point").nth(2).press("ArrowUp")
    tab.locator(".zone-point").nth(0).press("Delete")
    assert tab.locator(".zone-point").count() == 4
    # 2. another by the keyboard alone, with a number
    tab.locator("#zone-add").press("Enter")
    across = tab.get_by_label("Point 1, % across")
    across.fill("12.5")
    across.press("Enter")
    tab.locator("#zone-pattern").fill("b")
    tab.click("#zone-save")
    said = tab.locator("#zone-said")
    said.wait_for(state="visible")
    assert said.inner_text() == "Not saved: b: not a pattern that the name a matches"
    tab.locator("#zone-pattern").fill("a")
    tab.click("#zone-save")
    tab.locator("#zones").wait_for(state="hidden")
    (drawn,) = read_zones(tmp_path / "out/zones.json").values()
    assert [zone.name for zone in drawn] == ["door", "zone 1"]
    expected = [(0.4, 0.2), (0.5, 0.395), (0.4, 0.6), (0.1, 0.6)]
    for point, wanted in zip(drawn[0].points, expected, strict=True):
        assert point == pytest.approx(wanted, abs=0.01)
    assert drawn[1].points[0] == (0.125, 0.25)
    # 3. what is kept is shown again, breaks no rule of accessibility, is deleted and cleared
    tab.click("#open-zones")
    assert tab.locator("#zone-shapes polygon").count() == 2
    assert broken_rules(tab) == []
    tab.get_by_label("Delete: door").click()
    tab.click("#zone-clear")
    tab.click("#zone-save")
    tab.locator("#zones").wait_for(state="hidden")
    assert json.loads((tmp_path / "out/zones.json").read_text()) == {}


def test_it_is_drawn_by_touch_on_a_narrow_screen(work, browse):
    tab = browse(390, has_touch=True, is_mobile=True)
    tab.tap("#open-zones")
    tab.tap("#zone-add")
    picture = tab.locator("#zone-picture").bounding_box()
    x = picture["x"] + picture["width"] * 0.5
    tab.touchscreen.tap(x, picture["y"] + picture["height"] * 0.9)
    assert tab.locator(".zone-point").count() == 5
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    tab.tap("#zone-save")
    tab.locator("#zones").wait_for(state="hidden")
    assert len(work.zones("b")["zones"][0]["points"]) == 5
