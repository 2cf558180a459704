"""The page in Chromium: what a person sees, clicks, types and saves."""

import dataclasses
import os
import re
import time
from pathlib import Path

import pytest

from actionspan.annotations.tables import Instance
from actionspan.proposals.segments import ranked_rows
from actionspan.report.content import Chart, Series
from actionspan.report.page import write_page
from report import pages
from report.conftest import PATIENCE, broken_rules, drag, need_browser, saved

need_browser()

LANES = ".{}-lane .segment"
START, END = 4.48, 6.08  # of the best event


def lane(tab, kind: str):
    return tab.locator(LANES.format(kind))


def now(tab) -> float:
    minutes, seconds = tab.locator("#now").inner_text().split(":")
    return 60 * int(minutes) + float(seconds)


def x_of(tab, seconds: float, duration: float = pages.SECONDS) -> float:
    """Where a time lies, in pixels."""
    box = tab.locator(".ruler-lane .window").bounding_box()
    return box["x"] + box["width"] * seconds / duration


def middle(box: dict) -> tuple[float, float]:
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def press(tab, *keys: str) -> None:
    for key in keys:
        tab.keyboard.press(key)


def until(tab, expression: str) -> None:
    """Wait until an expression is true; the page's policy allows no polling inside it."""
    end = time.monotonic() + PATIENCE
    while not tab.evaluate(expression):
        assert time.monotonic() < end, expression
        tab.wait_for_timeout(20)


def row(start: float | None, end: float | None, label: str, status: str):
    times = ["" if time is None else f"{time:.3f}" for time in (start, end)]
    values = ("kitchen 01", *times, label, status)
    return dict(zip(("video", "start", "end", "label", "status"), values, strict=True))


def take_back(tab) -> None:
    """Undo all corrections, and clear the selection."""
    press(tab, "Escape")
    while tab.locator("#undo-edit").is_enabled():
        press(tab, "z")


@pytest.fixture
def alone(show):
    """A page of a video without truth, so that only corrections are saved."""
    return show(pages.page([pages.video(truth=(), recall=None)]))


def test_a_video_is_shown_with_its_lanes_and_known_labels(show):
    tab = show(pages.page(charts=pages.charts(), tables=[pages.TABLE]))
    assert tab.locator("h1").inner_text() == "Kitchen"
    assert tab.locator("#video-name").inner_text() == "kitchen 01"
    assert lane(tab, "truth").count() == 2
    assert lane(tab, "event").count() == 3
    assert lane(tab, "proposal").count() == 15, "at first the best of them"
    assert tab.locator("#shown-number").inner_text() == "15 of 60"
    assert tab.locator("#curves canvas").count() == 1
    assert tab.locator(".picture").count() == 10
    options = tab.locator("#labels option").evaluate_all("all => all.map(one => one.value)")
    assert options == ["fall", "jump", "sit down"]


def test_it_plays_and_pauses_and_a_segment_to_its_end(show):
    tab = show(pages.page())
    until(tab, "document.getElementById('video').videoWidth === 160")
    press(tab, "Space")
    until(tab, "document.getElementById('video').currentTime > 0.3")
    assert tab.locator("#toggle").get_attribute("aria-label") == "Pause"
    press(tab, "Space")
    until(tab, "document.getElementById('video').paused")
    at = tab.evaluate("document.getElementById('video').currentTime")
    assert now(tab) == pytest.approx(at, abs=0.06)
    assert tab.locator("#toggle").get_attribute("aria-label") == "Play"
    lane(tab, "event").last.click()
    tab.select_option("#speed", "4")
    tab.get_by_role("button", name="Play", exact=True).last.click()
    until(tab, "!document.getElementById('video').paused")
    until(tab, "document.getElementById('video').paused")
    assert now(tab) == 7.4


def test_proposals_and_curves_come_when_they_are_asked_for(show):
    tab = show(pages.page())
    hidden = [tab.locator(name) for name in (".proposal-lane", "#curves", "#threshold-tool")]
    assert [each.is_visible() for each in hidden] == [False] * 3
    assert tab.locator(".event-lane").is_visible()
    tab.get_by_label("Proposals and curves").check()
    assert [each.is_visible() for each in hidden] == [True] * 3
    assert tab.locator("#curves canvas").bounding_box()["width"] > 100
    tab.reload()  # a reader who wants them is not asked again
    assert tab.locator(".proposal-lane").is_visible()
    press(tab, "v")
    assert [each.is_visible() for each in hidden] == [False] * 3
    press(tab, "v")
    stops = tab.locator(".segment[tabindex='0']")
    assert stops.count() == 3
    tab.locator("#threshold").focus()
    press(tab, *["Tab"] * 20)
    stops.last.focus()
    press(tab, "n", "n")
    chosen = tab.locator(".proposal-lane .segment[aria-pressed='true']")
    assert chosen.count() == 1
    assert chosen.get_attribute("tabindex") == "0"


def test_a_flat_curve_is_said_and_the_least_score_stays_from_video_to_video(show):
    flat, steep = ({"actionness": [0.1] * 9 + [top]} for top in (0.12, 0.9))
    tab = show(pages.page([pages.video("one", curves=flat), pages.video("two", curves=steep)]))
    said = tab.get_by_text("The model is unsure on this video")
    assert said.is_visible()
    tab.locator(".entry").last.click()
    assert not said.is_visible()
    less = [pages.row(1.0, 2.0, score) for score in (0.9, 0.8, 0.7, 0.1)]
    tab = show(pages.page([pages.video("one"), pages.video("two", proposals=less)]))
    press(tab, "v")
    tab.locator("#threshold").focus()
    press(tab, "End", *["ArrowLeft"] * 3)  # 0.69
    tab.locator(".entry").last.click()
    assert tab.locator("#shown-number").inner_text() == "3 of 4"


def test_frames_are_stepped_and_a_click_or_a_drag_seeks(show):
    tab = show(pages.page())
    press(tab, ".", ".", ".", ",")
    assert now(tab) == 2 / pages.RATE
    press(tab, "ArrowRight", "Shift+ArrowRight", "ArrowLeft")
    assert now(tab) == pytest.approx(5 + 2 / pages.RATE)
    press(tab, "End")
    assert now(tab) == pages.SECONDS
    press(tab, "Home")
    assert now(tab) == 0
    press(tab, "v")
    until(tab, "document.getElementById('video').videoWidth > 0")
    for name in (".ruler-lane", ".pictures-lane", "#curves"):
        y = middle(tab.locator(f"{name} .window").bounding_box())[1]
        tab.mouse.click(x_of(tab, 3.0), y)
        assert now(tab) == pytest.approx(3.0, abs=0.02)
        drag(tab, (x_of(tab, 1.0), y), (x_of(tab, 5.0), y))
        assert now(tab) == pytest.approx(5.0, abs=0.02)
    until(tab, "Math.abs(document.getElementById('video').currentTime - 5) < 0.05")


def test_what_is_under_the_mouse_is_told_also_to_who_hears_it_and_help_names_every_key(show):
    tab = show(pages.page())
    lane(tab, "event").first.hover()
    told = tab.locator("#tip").inner_text()
    for text in ("Event 2 of 3", "0:01.200", "0:02.600", "fall", "61 %", "0.82 (fall)"):
        assert text in told
    tab.locator("h1").hover()
    assert tab.locator("#tip").is_hidden()
    name = lane(tab, "event").first.get_attribute("aria-label")
    assert name == (
        "Event 2 of 3, start 0:01.200, end 0:02.600, length 1.400 s, label fall, "
        "chance to be right 61 %, "
        "tIoU with the best truth 0.82 (fall)"
    )
    words = tab.locator(".truth-lane .content").get_attribute("aria-label")
    assert words == "Lane truth: 2 segments: fall 0:01.0 to 0:02.5; sit down 0:04.4 to 0:06.0"
    assert "start is highest at" in tab.locator("#curves .window").get_attribute("aria-label")
    tab.click("#show-help")
    keys = set(re.split(r"\s+", " ".join(tab.locator("#help kbd").all_inner_texts())))
    wanted = "space ← → , . < > home end n p enter j k + − 0 v m f / ?"
    wanted += " a x [ ] s e l i w delete z d escape"
    assert set(wanted.split()) == keys


def test_the_threshold_shows_fewer_or_all(show):
    tab = show(pages.page([pages.video(events=())]))
    slider = tab.locator("#threshold")
    slider.focus()
    press(tab, "Home")
    assert lane(tab, "proposal").count() == 60
    assert tab.locator("#threshold-value").inner_text() == "0.01"
    press(tab, "End")
    assert lane(tab, "proposal").count() == 1
    assert tab.locator("#shown-number").inner_text() == "1 of 60"
    assert tab.locator("#threshold-value").inner_text() == "0.86"
    press(tab, *["ArrowLeft"] * 3, "ArrowRight")
    assert tab.locator("#shown-number").inner_text() == "3 of 60"
    assert slider.get_attribute("aria-valuetext") == "0.75: 3 of 60 proposals"
    box = slider.bounding_box()
    tab.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert lane(tab, "proposal").count() == pytest.approx(60**0.5, abs=1)


def test_like_scores_are_told_apart_and_events_have_theirs_or_a_rank(show):
    close = [pages.row(k, k + 0.9, 0.127 - 0.001 * k) for k in range(7)]
    tab = show(pages.page([pages.video(proposals=close, events=())]))
    names = [one.inner_text() for one in lane(tab, "proposal").all()]
    assert names == [f"0.{127 - k}" for k in range(7)]
    shades = lane(tab, "proposal").evaluate_all(
        "all => all.map(one => getComputedStyle(one).backgroundColor)"
    )
    assert len(set(shades)) == 7
    same = [pages.row(1.0, 2.0, 0.7, "fall"), pages.row(1.1, 2.0, 0.5, "fall")]
    tab = show(pages.page([pages.video(proposals=same, events=same[:1])]))
    assert [one.inner_text() for one in lane(tab, "event").all()] == ["fall 0.70"]
    assert [one.inner_text() for one in lane(tab, "proposal").all()] == ["0.70", "0.50"]
    tab = show(pages.page([pages.video(events=ranked_rows([[1.0, 2.0], [4.0, 6.0]]))]))
    names = tab.locator(".event-lane .segment .name").all_inner_texts()
    assert names == ["no. 1", "no. 2"]


def test_chances_and_scores_are_never_side_by_side(show):
    one, two = pages.video("one", recall=None), pages.video("two", recall=None, events=())
    tab = show(pages.page([one, two]))
    press(tab, "v")
    facts = [one.inner_text() for one in tab.locator(".entry .facts-line").all()]
    assert [fact.split("\n")[-1] for fact in facts] == ["3 events, 84 %", "no event"]
    assert [one.inner_text() for one in lane(tab, "event").all()] == [
        "fall 61 %",
        "sit down 84 %",
        "jump 22 %",
    ]
    assert lane(tab, "proposal").first.inner_text() == "no. 1"
    assert "score" not in lane(tab, "proposal").first.get_attribute("aria-label")
    assert tab.get_by_text("Best proposals").is_visible()
    assert tab.locator("#threshold").get_attribute("aria-valuetext") == "15 of 60 proposals"


def test_zoom_keeps_the_time_under_the_mouse(show):
    tab = show(pages.page())
    before = lane(tab, "truth").first.bounding_box()
    y = middle(tab.locator(".ruler-lane .window").bounding_box())[1]
    tab.mouse.move(before["x"], y)
    tab.keyboard.down("Control")
    tab.mouse.wheel(0, -200)
    tab.keyboard.up("Control")
    after = lane(tab, "truth").first.bounding_box()
    assert after["x"] == pytest.approx(before["x"], abs=1.5)
    assert after["width"] > 1.9 * before["width"]
    press(tab, "0")
    assert lane(tab, "truth").first.bounding_box()["width"] == pytest.approx(before["width"], abs=1)


def test_the_list_is_searched_filtered_and_sorted(show):
    values = [("b", "training", 0.2, 8.0, [0.1]), ("a10", "validation", 0.9, 9.0, [])]
    values += [("a9", "validation", None, 3.0, [0.9, 0.2]), ("a1", "training", 0.1, 5.0, [0.3])]
    videos = [
        pages.video(
            name,
            subset=subset,
            recall=recall,
            duration_seconds=seconds,
            proposals=[pages.row(1.0, 2.0, score) for score in scores],
            events=(),
        )
        for name, subset, recall, seconds, scores in values
    ]
    tab = show(pages.page(videos))

    def listed() -> list[str]:
        return tab.locator(".entry-name").all_text_contents()

    assert listed() == ["a1", "a9", "a10", "b"]
    assert tab.locator("#video-name").inner_text() == "a1"
    for order, expected in {
        "score": ["a9", "a1", "b", "a10"],
        "recall": ["a1", "b", "a10", "a9"],
        "duration": ["a10", "b", "a1", "a9"],
    }.items():
        tab.select_option("#order", order)
        assert listed() == expected
    tab.select_option("#subset", "validation")
    assert listed() == ["a10", "a9"]
    tab.fill("#search", "A9")
    assert listed() == ["a9"]
    assert tab.locator("#index-title").inner_text() == "1 of 4 videos"
    tab.fill("#search", "nothing")
    assert tab.get_by_text("No video matches.").is_visible()
    tab.fill("#search", "")
    tab.click("text=a9")
    assert tab.locator("#video-name").inner_text() == "a9"
    for key, name in (("k", "a10"), ("j", "a9")):
        press(tab, key)
        assert tab.locator("#video-name").inner_text() == name


def test_the_address_names_the_video(show, folder):
    names = ["one", "100 % é", "\udcff"]  # the last is a file name that is not UTF-8
    tab = show(pages.page([pages.video(name) for name in names]))
    for place in range(3):
        tab.locator(".entry").nth(place).click()
        name = tab.locator("#video-name").text_content()
        tab.reload()
        assert tab.locator("#video-name").text_content() == name
    for wrong in ("#%", "#nothing"):
        tab.goto("about:blank")
        tab.goto((folder / "index.html").as_uri() + wrong)
        assert tab.locator("#video-name").text_content() == "100 % é", "the first of the list"


def test_events_are_accepted_and_rejected(alone):
    lane(alone, "event").nth(1).click()
    assert now(alone) == START
    alone.get_by_role("button", name="Accept").click()
    assert lane(alone, "own").count() == 1
    lane(alone, "event").nth(0).click()
    press(alone, "x")
    assert "rejected" in lane(alone, "event").nth(0).get_attribute("class")
    assert saved(alone) == [
        row(1.2, 2.6, "fall", "rejected"),
        row(START, END, "sit down", "accepted"),
    ]


def test_what_was_accepted_can_be_dragged_at_once(alone):
    lane(alone, "event").nth(1).click()
    alone.get_by_role("button", name="Accept").click()
    drag_end(alone, 5.51)
    assert saved(alone) == [row(START, 5.52, "sit down", "moved")]
    press(alone, "n")
    assert now(alone) == 6.6, "the next event"


def test_edges_are_dragged_and_moved_by_keys_to_frames_and_to_the_playhead(alone):
    lane(alone, "event").nth(1).click()
    handle = alone.get_by_role("slider", name="End of the selected segment")
    x, y = middle(handle.bounding_box())
    drag(alone, (x, y), (x_of(alone, 5.51), y))
    assert now(alone) == pytest.approx(5.52)
    assert saved(alone) == [row(START, 5.52, "sit down", "moved")]
    take_back(alone)
    lane(alone, "event").nth(1).click()
    press(alone, "s", "ArrowLeft", "ArrowLeft", "e", "Shift+ArrowRight")
    assert saved(alone) == [row(START - 0.08, END + 0.4, "sit down", "moved")]
    # an edge cannot pass the other, nor leave the video
    press(alone, "s", *["Shift+ArrowLeft"] * 15)
    assert saved(alone)[0]["start"] == "0.000"
    press(alone, "s", *["Shift+ArrowRight"] * 20)
    assert saved(alone)[0]["start"] == f"{END + 0.4 - 0.04:.3f}"
    take_back(alone)
    lane(alone, "event").nth(1).click()
    alone.mouse.move(0, 0)
    press(alone, *[","] * 3, "[", *["."] * 28, "]")
    assert saved(alone) == [row(START - 0.12, START + 1.0, "sit down", "moved")]
    take_back(alone)
    lane(alone, "event").nth(1).click()
    press(alone, "s", "ArrowLeft", "ArrowRight")
    assert saved(alone) == [row(START, END, "sit down", "accepted")]


def test_a_drag_over_the_empty_lane_adds_a_segment(alone):
    draw(alone, 3.01, 2.0)
    alone.fill("#segment-label", "=wave, hello")
    press(alone, "Enter")
    assert saved(alone) == [row(2.0, 3.0, "'=wave, hello", "added")]
    # the next one gets the same label
    press(alone, "Escape", "End", "Shift+ArrowLeft", "i")
    assert saved(alone)[1] == row(3.0, 5.0, "'=wave, hello", "added")
    press(alone, "Delete")
    assert len(saved(alone)) == 1


def drag_over(tab, name: str, start: float, end: float, place: int = 0) -> None:
    """Drag from one time to another, beginning on a segment of a lane."""
    y = middle(lane(tab, name).nth(place).bounding_box())[1]
    drag(tab, (x_of(tab, start), y), (x_of(tab, end), y))


def drag_end(tab, end: float) -> None:
    """Drag the end of the selected segment to a time."""
    x, y = middle(tab.locator(".own-lane .handle.end").bounding_box())
    drag(tab, (x, y), (x_of(tab, end), y))


def draw(tab, start: float, end: float) -> None:
    """Drag from one time to another over the lane of corrections where it is empty."""
    y = middle(tab.locator(".own-lane .window").bounding_box())[1]
    drag(tab, (x_of(tab, start), y), (x_of(tab, end), y))


def times(tab) -> list[tuple[str, str]]:
    return [(each["start"], each["end"]) for each in saved(tab)]


@pytest.mark.parametrize("how", ["shift", "button", "key"])
def test_events_that_overlap_are_drawn_by_dragging(alone, how):
    draw(alone, 1.0, 4.0)
    if how == "shift":
        alone.keyboard.down("Shift")
    elif how == "button":
        alone.click("#draw")
    else:
        press(alone, "Escape", "w")
    assert (alone.locator("#draw").get_attribute("aria-pressed") == "true") == (how != "shift")
    drag_over(alone, "own", 2.0, 5.0)  # begins inside the first one
    drag_over(alone, "event", 1.4, 2.0)  # and inside what was found
    alone.keyboard.up("Shift")
    assert times(alone) == [("1.000", "4.000"), ("1.400", "2.000"), ("2.000", "5.000")]
    boxes = [each.bounding_box() for each in lane(alone, "own").all()]
    assert len({box["y"] for box in boxes}) == 2, "none hides another"
    # a click selects in Draw, too, and Escape ends it
    lane(alone, "own").nth(0).click()
    assert "start 0:01.000" in lane(alone, "own").nth(0).get_attribute("aria-label")
    assert lane(alone, "own").nth(0).get_attribute("aria-pressed") == "true"
    press(alone, "Escape")
    assert alone.locator("#draw").get_attribute("aria-pressed") == "false"
    assert alone.locator("#lanes-note").inner_text() == ""


def test_segments_that_overlap_are_moved_resized_and_deleted_one_by_one(alone):
    draw(alone, 1.0, 4.0)
    alone.keyboard.down("Shift")
    drag_over(alone, "own", 2.0, 5.0)
    alone.keyboard.up("Shift")
    drag_over(alone, "own", 4.0, 5.01, place=1)  # moves the second by whole frames
    assert times(alone) == [("1.000", "4.000"), ("3.000", "6.000")]
    assert now(alone) == 3.0
    press(alone, "z")
    assert times(alone)[1] == ("2.000", "5.000")
    lane(alone, "own").nth(0).click()
    drag_end(alone, 4.5)
    assert times(alone) == [("1.000", "4.520"), ("2.000", "5.000")]
    drag_over(alone, "own", 2.0, 7.9)  # not out of the video
    assert times(alone) == [("2.000", "5.000"), ("4.480", "8.000")]
    alone.reload()
    assert times(alone) == [("2.000", "5.000"), ("4.480", "8.000")]
    lane(alone, "own").nth(0).click()
    press(alone, "Delete")
    assert times(alone) == [("4.480", "8.000")]


def test_what_was_accepted_is_moved_and_what_was_found_stays_and_says_why(alone):
    drag_over(alone, "event", 5.0, 6.0, place=1)
    assert alone.locator("#save-corrections").is_disabled()
    assert "only corrected segments are moved" in alone.locator("#lanes-note").inner_text()
    assert alone.locator(".segment[aria-pressed=true]").count() == 0, "a drag is no click"
    lane(alone, "event").nth(1).evaluate("one => one.click()")  # as a screen reader does
    assert lane(alone, "event").nth(1).get_attribute("aria-pressed") == "true"
    press(alone, "Escape")
    lane(alone, "event").nth(1).click()
    assert alone.locator("#lanes-note").inner_text() == ""
    press(alone, "a")
    drag_over(alone, "own", 5.0, 5.2)
    assert saved(alone) == [row(START + 0.2, END + 0.2, "sit down", "moved")]


def test_a_drag_that_changes_no_time_says_why(alone):
    draw(alone, 0.0, 4.0)
    drag_over(alone, "own", 3.0, 1.0)
    assert "at the start or the end of the video" in alone.locator("#lanes-note").inner_text()
    assert times(alone) == [("0.000", "4.000")]
    press(alone, "z")
    assert lane(alone, "own").count() == 0, "no step of the history"
    draw(alone, 4.48, 8.0)
    drag_over(alone, "own", 5.0, 7.0)
    press(alone, "z")
    assert lane(alone, "own").count() == 0


@pytest.mark.parametrize("mode", [True, False])
def test_a_finger_draws_over_segments_and_moves_them(show, mode):
    video = pages.video(truth=(), recall=None)
    tab = show(pages.page([video]), width=390, height=844, has_touch=True, is_mobile=True)
    tab.locator(".own-lane").scroll_into_view_if_needed()
    touch = tab.context.new_cdp_session(tab)

    def swipe(start, end):
        y = middle(tab.locator(".own-lane .window").bounding_box())[1]
        for kind, at in [("Start", start), ("Move", (start + end) / 2), ("Move", end)]:
            points = [{"x": x_of(tab, at), "y": y}]
            given = {"type": f"touch{kind}", "touchPoints": points}
            touch.send("Input.dispatchTouchEvent", given)
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    swipe(1.0, 4.0)
    tab.locator(".own-lane").scroll_into_view_if_needed()
    if mode:
        tab.locator("#draw").tap()
    swipe(2.0, 5.0)
    found = [[float(one) for one in pair] for pair in times(tab)]
    wanted = [[1.0, 4.0], [2.0, 5.0]] if mode else [[4.0, 7.0]]
    assert found == [pytest.approx(pair, abs=0.04) for pair in wanted]


def test_events_that_are_no_longer_proposed_stay_and_are_marked(show):
    gone = [pages.row(2.0, 4.0, 0.9, "fall"), pages.row(0.1, 0.9, 0.3)]
    videos = [pages.video(truth=(), recall=None, gone=gone, before=5), pages.video("second")]
    tab = show(pages.page(videos))
    facts = tab.locator("#video-facts").inner_text()
    assert "3 events, 5 before · 2 no longer proposed" in facts
    assert "3 events, 5 before" in tab.locator("#list li").first.inner_text()
    assert "before" not in tab.locator("#list li").last.inner_text()
    assert tab.locator(".event-lane .count").inner_text() == "3 + 2 no longer proposed"
    marked = tab.locator(".event-lane .segment.gone")
    assert marked.all_inner_texts() == ["no longer proposed", "fall no longer proposed"]
    assert marked.last.get_attribute("aria-label") == (
        "Event, no longer proposed, start 0:02.000, end 0:04.000, length 2.000 s, label fall"
    )
    titles = tab.locator("#inspector h3").all_inner_texts()
    assert titles == ["Events found", "No longer proposed"]
    lists = tab.locator("#inspector .found").all()
    assert [each.locator("li").count() for each in lists] == [3, 2]
    assert lists[1].inner_text().split("\n")[0] == "fall"
    assert broken_rules(tab) == []
    marked.last.click()
    press(tab, "a")
    assert saved(tab) == [row(2.0, 4.0, "fall", "accepted")]


@pytest.mark.parametrize("height", [700, 800, 900, 1000])
def test_done_may_be_clicked_while_a_label_is_typed(show, height):
    video = pages.video(truth=(), recall=None)
    tab = show(pages.page([video, pages.video("second")]), width=1440, height=height)
    tab.locator(".own-lane .window").scroll_into_view_if_needed()
    draw(tab, 3.01, 2.0)
    tab.fill("#segment-label", "wave")
    tab.check("#done")
    assert saved(tab) == [row(2.0, 3.0, "wave", "added")]
    assert tab.locator("#done").is_checked()


def test_after_saving_the_page_says_what_comes_next(alone):
    lane(alone, "event").nth(1).click()
    press(alone, "a")
    assert alone.locator("#saved-note").is_hidden()
    saved(alone)
    note = alone.locator("#saved-note").inner_text()
    assert note.startswith("1 video saved as corrections.csv. 1 not Done: tick it where all")
    alone.check("#done")
    saved(alone)
    note = alone.locator("#saved-note").inner_text()
    assert note.startswith("1 video saved as corrections.csv. To learn from it: actionspan learn")
    press(alone, "x")
    assert alone.locator("#saved-note").is_hidden()


def test_undo_and_redo(alone):
    lane(alone, "event").nth(1).click()
    press(alone, "a", "e", "ArrowRight", "x")
    assert lane(alone, "own").count() == 0
    press(alone, "z")
    assert saved(alone) == [row(START, END + 0.04, "sit down", "moved")]
    press(alone, "Control+z")
    assert saved(alone)[0]["status"] == "accepted"
    press(alone, "z")
    assert alone.locator("#save-corrections").is_disabled()
    assert alone.locator("#undo-edit").is_disabled()
    press(alone, "Shift+Z", "Control+y")
    assert saved(alone)[0]["status"] == "moved"
    alone.click("#redo-edit")
    assert saved(alone)[0]["status"] == "rejected"
    assert alone.locator("#redo-edit").is_disabled()


def test_corrections_are_there_after_the_page_is_loaded_again(alone):
    lane(alone, "event").nth(1).click()
    press(alone, "a", "d")
    before = saved(alone)
    alone.reload()
    assert saved(alone) == before
    assert lane(alone, "own").count() == 1
    assert alone.locator("#done").is_checked()
    assert alone.get_by_text("Save corrections (1 video)").is_visible()


def test_another_video_or_page_has_its_own_corrections_and_labels(show):
    both = [pages.video("one"), pages.video("two")]
    tab = show(pages.page(both))
    lane(tab, "event").first.click()
    press(tab, "a")
    tab.fill("#segment-label", "wave")
    press(tab, "Enter")
    tab.locator("#list button").nth(1).click()
    assert lane(tab, "own").count() == 0
    assert tab.locator(".entry .state").all_inner_texts() == ["1 corrected, not Done", ""]
    tab.click("#add-segment")
    assert tab.locator("#segment-label").input_value() == ""
    other = show(pages.page(both, title="Another"))
    assert other.locator("#save-corrections").is_disabled()


def test_a_video_that_is_done_and_empty_says_so(alone):
    alone.check("#done")
    assert saved(alone) == [row(None, None, "", "none")]
    for place in range(3):
        lane(alone, "event").nth(place).click()
        press(alone, "x")
    assert [line["status"] for line in saved(alone)] == ["rejected"] * 3 + ["none"]


def test_truth_that_was_moved_or_named_is_replaced_and_the_rest_stays(show):
    tab = show(pages.page())
    lane(tab, "truth").first.click()
    press(tab, "e", "ArrowRight")
    fall, sit = pages.TRUTH
    assert saved(tab) == [
        row(fall.start, fall.end, "fall", "rejected"),
        row(fall.start, fall.end + 0.04, "fall", "moved"),
        row(sit.start, sit.end, "sit down", "accepted"),
    ]
    lane(tab, "truth").last.click()
    tab.fill("#segment-label", "sit")
    press(tab, "Enter")
    assert sorted(line["status"] for line in saved(tab) if float(line["start"]) > 4) == [
        "accepted",
        "rejected",
    ]


def test_an_accepted_event_takes_the_place_of_the_truth_that_it_fits(show):
    tab = show(pages.page())
    lane(tab, "event").nth(1).click()
    press(tab, "a")
    fall, sit = pages.TRUTH
    assert saved(tab) == [
        row(fall.start, fall.end, "fall", "accepted"),
        row(sit.start, sit.end, "sit down", "rejected"),
        row(START, END, "sit down", "accepted"),
    ]
    assert "replaced" in lane(tab, "truth").last.get_attribute("class")
    assert "replaced" not in lane(tab, "truth").first.get_attribute("class")


def test_what_is_drawn_over_the_truth_with_another_label_happens_beside_it(show):
    tab = show(pages.page())
    press(tab, "w")
    drag_over(tab, "truth", 1.0, 2.4)  # tIoU 0.92
    drawn = row(1.0, 2.4, "", "added")
    rest = row(4.4, 6.0, "sit down", "accepted")
    assert saved(tab) == [drawn, row(1.0, 2.52, "fall", "rejected"), rest]
    tab.fill("#segment-label", "wave")
    press(tab, "Enter")
    fall = row(1.0, 2.52, "fall", "accepted")
    assert saved(tab) == [{**drawn, "label": "wave"}, fall, rest]


def test_of_annotations_that_share_a_time_one_is_accepted(show):
    both = (
        Instance(start=1.0, end=2.52, label="dive"),
        Instance(start=1.0, end=2.52, label="high dive"),
    )
    tab = show(pages.page([pages.video(truth=both)]))
    lane(tab, "truth").nth(1).focus()
    press(tab, "Enter", "a")
    rows = [(line["label"], line["status"]) for line in saved(tab)]
    assert sorted(rows) == [("dive", "accepted"), ("high dive", "accepted")]


def test_what_is_added_at_the_end_has_a_length(alone):
    press(alone, "End", "i")
    (line,) = saved(alone)
    assert float(line["start"]) < float(line["end"]) <= pages.SECONDS


def test_an_event_that_is_a_proposal_too_is_saved_once(show):
    event = pages.row(1.2, 2.6, 0.6, "fall")
    alone = pages.video(truth=(), events=(event,), proposals=(event,))
    tab = show(pages.page([alone]))
    press(tab, "v")
    for kind in ("event", "proposal"):
        lane(tab, kind).first.click()
        press(tab, "a")
    assert saved(tab) == [row(1.2, 2.6, "fall", "accepted")]


def test_a_label_that_is_being_typed_is_taken_over_by_a_drag_or_a_click_and_not_by_escape(alone):
    draw(alone, 1.0, 4.0)
    alone.fill("#segment-label", "wave")
    drag_over(alone, "own", 2.0, 3.0)
    alone.fill("#segment-label", "wave two")
    drag_end(alone, 6.0)
    assert saved(alone) == [row(2.0, 6.0, "wave two", "added")]
    alone.fill("#segment-label", "wave")
    lane(alone, "event").nth(1).click()
    until(alone, "document.querySelector('.event-lane [aria-pressed=true]') !== null")
    assert saved(alone) == [row(2.0, 6.0, "wave", "added")]
    take_back(alone)
    lane(alone, "event").nth(1).click()
    alone.fill("#segment-label", "sit")
    alone.mouse.click(x_of(alone, 3.0), middle(alone.locator(".ruler-lane").bounding_box())[1])
    assert saved(alone) == [row(START, END, "sit", "accepted")]
    lane(alone, "event").nth(1).click()
    alone.fill("#segment-label", "sit here")
    alone.get_by_role("button", name="Reject").click()
    assert [line["status"] for line in saved(alone)] == ["rejected"]
    take_back(alone)
    lane(alone, "event").nth(1).click()
    press(alone, "a", "l")
    alone.keyboard.type("oops")
    press(alone, "Escape")
    assert saved(alone) == [row(START, END, "sit down", "accepted")]


def test_two_tabs_of_a_page_keep_what_is_done_in_both(alone):
    other = alone.context.new_page()
    other.goto(alone.url)
    lane(alone, "event").nth(1).click()
    press(alone, "a")
    until(other, "document.querySelector('.own-lane .segment') !== null")
    lane(other, "event").first.click()
    press(other, "a")
    until(alone, "document.querySelectorAll('.own-lane .segment').length === 2")
    assert saved(alone) == saved(other)
    assert len(saved(other)) == 2


def test_with_the_keyboard_alone(alone):
    """From the head of the page to a saved file, without the mouse."""
    press(alone, "Tab")
    assert alone.evaluate("document.activeElement.className") == "skip"
    press(alone, "Enter", "n", "n", "a", "s", "ArrowRight", "l")
    alone.keyboard.type("to sit")
    press(alone, "Enter", "n", "x")
    press(alone, "?")
    assert alone.locator("#help").is_visible()
    press(alone, "Escape")
    assert alone.locator("#help").is_hidden()
    for _ in range(60):
        press(alone, "Shift+Tab")
        if alone.evaluate("document.activeElement.id") == "save-corrections":
            break
    with alone.expect_download() as download:
        press(alone, "Enter")
    text = Path(download.value.path()).read_text()
    assert text.startswith("video,start,end,label,status\n")
    assert f"kitchen 01,{START + 0.04:.3f},{END:.3f},to sit,moved\n" in text


def test_hostile_names_are_text(show):
    evil = "<img src=x onerror=alert(1)>\"&'.mp4"
    closing = "</script><script>alert(2)</script><!--"
    videos = [
        pages.video(evil, subset=closing, truth=[Instance(start=1.0, end=2.0, label=closing)]),
        pages.video("=cmd()", file="film.mp4#?%<>.mp4", note=closing, thumbnails=()),
    ]
    content = pages.page(videos, title=evil, subtitle=closing, tables=[pages.TABLE])
    tab = show(content, script="window.alert = () => { throw new Error('alert'); };")
    assert tab.locator("h1").inner_text() == evil
    assert evil in tab.locator(".entry-name").all_text_contents()
    tab.get_by_text(evil, exact=True).last.click()
    assert tab.locator("#video-name").inner_text() == evil
    assert closing in lane(tab, "truth").inner_text()
    lane(tab, "truth").click()
    assert tab.locator("#segment-label").input_value() == closing
    press(tab, "a")
    assert saved(tab)[0]["label"] == closing
    tab.get_by_text("=cmd()", exact=True).last.click()
    tab.check("#done")
    assert saved(tab)[-1]["video"] == "'=cmd()"
    tab.locator("#no-video-reason").get_by_text(closing).wait_for()
    assert tab.locator("img[src='x']").count() == 0


def test_without_a_video_file_the_time_line_works(show):
    tab = show(pages.page([pages.video(file="")]))
    assert "The video file is missing" in tab.locator("#no-video-reason").inner_text()
    assert tab.locator("#toggle").is_disabled()
    first = tab.locator("#still").get_attribute("src")
    lane(tab, "event").nth(1).click()
    assert now(tab) == START
    assert tab.locator("#still").get_attribute("src") != first, "the picture nearest to the time"


def test_the_note_says_why_a_video_cannot_be_played(show, folder):
    (folder / "old.avi").write_bytes(b"RIFF")
    note = "HEVC in AVI: make results/report/videos/old.mp4"
    tab = show(pages.page([pages.video(file="old.avi", note=note), pages.video(note=note)]))
    tab.get_by_text(note).wait_for()
    # a browser that can play it does
    tab.locator(".entry").last.click()
    until(tab, "document.getElementById('video').videoWidth > 0")
    assert tab.get_by_text(note).is_hidden()


def test_a_file_that_moved_can_be_chosen_and_one_of_any_name_is_played(show, folder):
    tab = show(pages.page([pages.video(file="gone.mp4")]))
    tab.locator("#no-video-reason").get_by_text("the file was moved").wait_for()
    tab.set_input_files("#choose-file", folder / "film.mp4")
    until(tab, "document.getElementById('video').videoWidth > 0")
    assert tab.locator("#no-video").is_hidden()
    name = "a b#c?d%20é:\u4e2d.mp4"
    (folder / "sub folder").mkdir()
    (folder / "film.mp4").rename(folder / "sub folder" / name)
    tab = show(pages.page([pages.video(file=f"sub folder/{name}")]))
    until(tab, "document.getElementById('video').videoWidth > 0")


def test_without_storage_the_page_works_and_says_that_it_forgets(show):
    script = "Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } });"
    tab = show(pages.page([pages.video(truth=())]), script=script)
    assert "keeps no data" in tab.locator("#storage-note").inner_text()
    lane(tab, "event").nth(1).click()
    press(tab, "a")
    assert saved(tab) == [row(START, END, "sit down", "accepted")]


def test_a_summary_has_charts_and_tables(show):
    tab = show(pages.page(charts=pages.charts(), tables=[pages.TABLE]))
    tab.click("#tab-summary")
    assert tab.locator("#videos").is_hidden()
    assert tab.locator("#summary .card h2").all_inner_texts() == [
        "Recall by number of proposals",
        "Loss",
        "Instances missed, by length",
        "Time by stage",
        "Methods",
    ]
    assert tab.locator("#summary .uplot").count() == 2
    assert tab.locator("#summary .bars rect").count() == 4 + 3 + 8
    tab.locator("summary", has_text="Numbers").first.click()
    cells = tab.locator("#summary details[open] tbody tr").first.locator("td").all_inner_texts()
    assert cells[:3] == ["1", "0.3624", "0.3023–0.4173"]
    tab.locator("#tab-summary").focus()
    press(tab, "ArrowLeft")
    assert tab.locator("#videos").is_visible()


def test_bars_go_below_zero_and_long_names_fit(show):
    names = ["a very long name of a class that no axis has room for", "b"]
    bars = Series(name="change", values=[-0.4, 0.2], low=[-0.5, None], high=[-0.3, None])
    chart = Chart(
        title="Change", x_label="class", y_label="AP", x=names, series=[bars], kind="bars"
    )
    flat = dataclasses.replace(chart, x=["a"], series=[Series(name="none", values=[0.0])])
    tab = show(pages.page(charts=[chart, flat]), width=360)
    tab.click("#tab-summary")
    drawing = tab.locator(".bars").first
    box = drawing.bounding_box()
    low, high = [one.bounding_box() for one in drawing.locator("rect").all()]
    assert low["y"] == pytest.approx(high["y"] + high["height"], abs=1), "both begin at 0"
    assert low["height"] == pytest.approx(2 * high["height"], abs=1)
    for text in drawing.locator("text").all():
        inside = text.bounding_box()
        assert inside["x"] >= box["x"] - 1
        assert inside["y"] + inside["height"] <= box["y"] + box["height"] + 1
    assert drawing.locator(".interval").count() == 1


def test_motion_and_one_frame_and_no_proposals_and_no_videos(show):
    still = pages.video(
        duration_seconds=0.04,
        frames_per_second=None,
        truth=(),
        proposals=(),
        events=(),
        thumbnails=(),
        curves={"motion": [0.0]},
        recall=None,
    )
    tab = show(pages.page([still]))
    assert tab.get_by_text("Nothing was found in this video.").is_visible()
    assert tab.locator("#threshold-tool").is_hidden()
    assert lane(tab, "proposal").count() == 0
    press(tab, "i", ".", "+")
    assert lane(tab, "own").count() == 1
    assert "pixels a frame" in tab.locator("#curves").inner_text()
    tab = show(pages.page([], tables=[pages.TABLE]))
    tab.click("#tab-summary")
    assert tab.get_by_text("Methods").is_visible()


def test_the_colours_are_switched_and_remembered(show):
    tab = show(pages.page(), color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = tab.evaluate(background)
    tab.click("#switch-theme")
    tab.click("#switch-theme")
    dark = tab.evaluate(background)
    assert dark != light
    tab.reload()
    assert tab.evaluate(background) == dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1024, 1920])
def test_it_fits_every_screen_and_nothing_is_out_of_reach(show, tmp_path, width, scheme):
    """No rule of axe that matters is broken, in any view."""
    names = [f"kitchen {number:02}" for number in range(1, 13)]
    content = pages.page(
        [pages.video(names[0]), pages.video(names[1], file=""), *map(pages.video, names[2:])],
        charts=pages.charts(),
        tables=[pages.TABLE],
        thresholds={"fall": [(0.9, 1.0, 0.25), (0.3, 0.8, 0.5)]},
    )
    how = {"color_scheme": scheme, "reduced_motion": "reduce"}
    tab = show(content, width=width, height=1080, **how)
    moving = tab.locator("body *").evaluate_all(
        "all => all.filter(one => getComputedStyle(one).transitionDuration !== '0s').length"
    )
    assert moving == 0, "where motion is reduced nothing moves by itself"
    until(tab, "document.getElementById('video').videoWidth > 0")
    shots = Path(os.environ.get("ACTIONSPAN_SCREENSHOTS", tmp_path))

    def is_sound(view: str) -> None:
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        path = shots / f"{view}-{width}-{scheme}.png"
        tab.screenshot(path=path, full_page=True)
        assert path.stat().st_size > 10_000
        assert broken_rules(tab) == []

    tab.get_by_text("Show likely events only").click()
    is_sound("likely")
    press(tab, "n", "a", "n", "x", "n", "i")
    is_sound("videos")
    press(tab, "?")
    assert broken_rules(tab) == []
    press(tab, "Escape", "j")
    assert broken_rules(tab) == []
    tab.click("#tab-summary")
    tab.locator("summary", has_text="Numbers").first.click()
    is_sound("summary")


def test_on_a_phone_a_tap_shows_what_it_opens_and_a_finger_finds_its_target(show):
    tab = show(pages.page(), width=390, height=844, has_touch=True, is_mobile=True)
    tab.locator(".event-lane .segment").first.tap()
    box = tab.get_by_role("button", name="Accept").bounding_box()
    tab.wait_for_function(
        """() => [...document.querySelectorAll('#inspector button')]
            .find((one) => one.textContent === 'Accept').getBoundingClientRect().bottom
            <= innerHeight"""
    )
    box = tab.get_by_role("button", name="Accept").bounding_box()
    assert 0 <= box["y"] <= 844 - box["height"]
    tab.locator("#show-more").check()
    for target in (".event-lane .segment", ".proposal-lane .segment", ".tick", "#toggle"):
        assert tab.locator(target).first.bounding_box()["height"] >= 40


def test_a_page_of_one_video_says_where_to_begin_and_has_no_list_and_no_summary(show):
    some = show(pages.page())
    assert "then tick Done" in some.locator("#inspector").inner_text()
    assert some.locator("#list").is_hidden()
    assert some.locator("#tabs").is_hidden()
    none = show(pages.page([pages.video(events=())]))
    assert "No event is likely enough" in none.locator("#inspector").inner_text()


def test_likely_events_are_shown_by_label_with_what_that_does(show):
    thresholds = {
        "fall": [(0.9, 1.0, 0.25), (0.61, 0.8, 0.5)],
        "sit down": [(0.84, 0.7, 0.4), (0.3, 0.5, 0.9)],
    }
    tab = show(pages.page(thresholds=thresholds))
    tab.get_by_text("Show likely events only").click()
    assert lane(tab, "event").count() == 3
    fall = tab.get_by_role("slider", name="Least chance of fall")
    assert fall.get_attribute("aria-valuetext") == (
        "61 % or more: 80 % of them are right, and 50 % of what happens is found"
    )
    fall.focus()
    press(tab, "End")
    assert [one.inner_text() for one in lane(tab, "event").all()] == ["sit down 84 %", "jump 22 %"]
    assert tab.locator(".event-lane .count").inner_text() == "2 of 3"
    assert tab.get_by_text("90 % or more: 100 % of them are right, and 25 %").is_visible()
    tab.reload()
    assert lane(tab, "event").count() == 2, "it is kept"
    other = show(pages.page([pages.video(events=())], title="Another", thresholds=thresholds))
    assert other.get_by_text("Show likely events only").is_hidden(), "scores are no chances"


def test_what_was_chosen_for_another_model_hides_nothing_unsaid(show, folder):
    tab = show(
        pages.page(thresholds={"fall": [(0.9, 1.0, 0.2), (0.61, 0.8, 0.5), (0.3, 0.4, 0.6)]})
    )
    tab.get_by_text("Show likely events only").click()
    tab.get_by_role("slider", name="Least chance of fall").focus()
    press(tab, "ArrowRight")  # 61 %
    assert lane(tab, "event").count() == 3
    # a new model has other points: the least chance is the one that is said
    labelled = [pages.row(1, 2, 0.65, "fall"), pages.row(3, 4, 0.75, "fall")]
    more = [pages.row(5, 6, 0.1, "constructor"), pages.row(6, 7, 0.2, "toString")]
    new = pages.page(
        [pages.video(events=[*labelled, *more])],
        thresholds={"fall": [(0.7, 0.9, 0.2), (0.2, 0.5, 0.9)]},
    )
    write_page(folder / "index.html", new)
    tab.reload()
    assert "70 % or more" in tab.locator("#chance-rows").text_content()
    assert lane(tab, "event").count() == 3, "not the one of 65 %, but those of other labels"
    # without points nothing is hidden
    write_page(
        folder / "index.html", pages.page([pages.video(events=ranked_rows([[1, 2], [3, 4]]))])
    )
    tab.reload()
    assert lane(tab, "event").count() == 2
    assert tab.locator("#chances").is_hidden()
