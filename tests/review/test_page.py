"""The served page in Chromium, with work whose proposals are given."""

import json
import os
from pathlib import Path

import pytest

from actionspan.dataset.completing import Truth
from report.conftest import broken_rules, drag, need_browser
from review.conftest import A, B, C
from review.test_server import Client

need_browser()
SECONDS = 60.0  # of each video


@pytest.fixture
def work(start):
    """Two videos after a round that no longer proposes some of their events."""
    events = {"a": [A, B], "b": [A, B, C]}
    work = start(events)
    work._look()
    events |= {"a": [A], "b": [A]}
    work._seen.clear()  # as if the files had changed
    work._look()
    work._doing = ""
    return work


def draw(tab, start, end):
    """Drag across the corrected lane, from one second to another."""
    box = tab.locator(".own-lane .window").bounding_box()
    ends = [box["x"] + box["width"] * seconds / SECONDS for seconds in (start, end)]
    drag(tab, *[(x, box["y"] + 12) for x in ends])


def is_saved(tab):
    tab.wait_for_function("() => document.getElementById('saving').textContent === 'Saved'")


def is_said_of_keys(tab, said):
    """Wait until the note below the keys begins so."""
    note = "document.getElementById('keys-note').textContent"
    tab.wait_for_function(f"() => {note}.startsWith({json.dumps(said)})")


def test_segments_that_overlap_are_kept_and_are_what_is_learned_from(work, browse):
    tab = browse()
    for start, end, label in ((20, 40, "wave"), (30, 50, "jump"), (25, 35, "wave")):
        draw(tab, start, end)
        tab.locator("#segment-label").fill(label)
        if tab.locator("#draw").get_attribute("aria-pressed") == "false":
            tab.click("#draw")
    tab.locator("#done").check()
    is_saved(tab)
    tab.reload()
    tab.wait_for_selector(".own-lane .segment")
    assert tab.locator(".own-lane .segment").count() == 3
    known = Truth(work.corrections.table, work.videos).within("a", SECONDS)
    found = [(round(one.start), round(one.end), one.label) for one in known]
    assert found == [(20, 40, "wave"), (25, 35, "wave"), (30, 50, "jump")]


def test_the_page_says_which_videos_it_counts_and_how_long_the_lists_are(work, browse):
    tab = browse()
    assert tab.locator("#listed").inner_text() == (
        "Events listed in 2 videos: 2 now, 5 before; 3 no longer proposed stay in the page, dimmed"
        " (events.csv has none of them)."
    )
    assert tab.locator("#counted").is_hidden()
    assert tab.locator("#not-done").is_hidden()
    draw(tab, 20, 40)
    is_saved(tab)
    said = "Saved, not Done: not counted in corrections.csv"
    assert tab.locator("#counted").inner_text() == (
        f"Counted in corrections.csv: 0 Done. {said}: a."
        " Their single events are learned from together with Done videos."
    )
    assert tab.locator("#not-done").inner_text() == f"{said}."
    assert tab.locator("#list li").first.inner_text().endswith("1 corrected, not Done")
    assert work.status()["not_done"] == 1
    tab.locator("#done").check()
    is_saved(tab)
    assert tab.locator("#counted").is_hidden()
    assert tab.locator("#not-done").is_hidden()


def test_a_scripts_corrections_are_shown_and_written_again_as_they_were(work, browse):
    tab = browse()
    ask = Client(work, int(tab.url.split(":")[2].split("/")[0]))
    ask.headers = {"Authorization": "Bearer x"}
    rows = [
        ["a", "0.000", "10.000", "", "accepted"],
        ["a", "20.000", "30.000", "", "rejected"],
        ["a", "41.000", "50.000", "wave", "added"],
    ]
    assert ask("PUT", "/corrections/a", {"version": 0, "done": True, "rows": rows}).status == 200
    tab.wait_for_function("() => document.querySelectorAll('.own-lane .segment').length === 2")
    assert tab.locator("#done").is_checked()
    tab.locator("#done").uncheck()
    is_saved(tab)
    assert ask("GET", "/corrections").json["a"]["rows"] == rows


@pytest.mark.parametrize("width", [390, 1440])
def test_it_fits_and_nothing_is_out_of_reach(browse, tmp_path, width):
    tab = browse(width, has_touch=width < 400, is_mobile=width < 400)
    draw(tab, 20, 40)
    tab.locator("#draw").click()
    draw(tab, 30, 50)
    is_saved(tab)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert broken_rules(tab) == []
    shots = Path(os.environ.get("ACTIONSPAN_SCREENSHOTS", tmp_path))
    tab.screenshot(path=shots / f"review-{width}.png", full_page=True)
    boxes = [each.bounding_box() for each in tab.locator(".own-lane .segment").all()]
    assert len(boxes) == 2
    assert boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"]


def reach(tab, selector, most=60):
    """Press the tab key until something has the focus."""
    for _ in range(most):
        if tab.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
        tab.keyboard.press("Tab")
    raise AssertionError(f"the tab key does not reach {selector}")


@pytest.mark.parametrize("width", [390, 1440])
def test_a_video_is_corrected_without_a_mouse(work, browse, width):
    tab = browse(width)
    hands = tab.keyboard
    reach(tab, "#key-settings summary")
    hands.press("Enter")
    reach(tab, "#add-key")
    hands.press("Enter")
    for text in ("g", "groom", "mouse A"):
        hands.type(text)
        hands.press("Tab")
    is_said_of_keys(tab, "Saved.")
    assert broken_rules(tab) == []
    reach(tab, "#open-zones")  # from the end of the page, past its beginning
    hands.press("Enter")
    tab.wait_for_selector("#zones[open]")  # it opens with the frame; before, tab would move on
    reach(tab, "#zone-add")
    hands.press("Enter")
    assert broken_rules(tab) == []
    hands.press("Escape")
    hands.press("i")
    hands.press("l")
    for text in ("groom", "mouse A"):
        hands.type(text)
        hands.press("Tab")
    assert broken_rules(tab) == []
    reach(tab, "#done")
    hands.press("Space")
    is_saved(tab)
    assert work.keys.all() == [{"key": "g", "label": "groom", "subject": "mouse A", "point": False}]
    (one,) = Truth(work.corrections.table, work.videos).within("a", SECONDS)
    assert (one.label, one.subject) == ("groom", "mouse A")


def test_keys_of_labels_are_kept_with_the_folder_and_subjects_come_to_the_table(work, browse):
    tab = browse()
    tab.locator("#key-settings summary").click()
    tab.click("#add-key")
    row = tab.locator("#key-rows li")
    key, label = row.get_by_role("textbox", name="Key"), row.get_by_label("Label")
    key.fill("g")
    label.fill("groom")
    row.get_by_label("Subject").fill("mouse A")
    row.get_by_label("Point").check()
    is_said_of_keys(tab, "Saved.")
    assert work.keys.all() == [{"key": "g", "label": "groom", "subject": "mouse A", "point": True}]
    assert tab.locator("#save-keys").count() == 0, "they are in the folder"
    other = browse()  # another browser of the same folder
    other.wait_for_selector("#label-keys button")
    words = other.locator("#label-keys button").inner_text().split()
    assert words == ["g", "groom", "(mouse", "A)"]
    label.fill("wash")
    key.focus()
    other.wait_for_function(
        "() => dispatchEvent(new Event('focus'))"
        " && document.getElementById('label-keys').textContent.includes('wash')"
    )
    label.fill("gr\0om" * 300)
    key.focus()
    is_said_of_keys(tab, "Not saved: key 'g'")
    draw(other, 20, 40)
    other.fill("#segment-subject", "mouse B")
    other.locator("#done").check()
    is_saved(other)
    known = Truth(work.corrections.table, work.videos).within("a", SECONDS)
    assert [(one.subject, one.label) for one in known] == [("mouse B", "action")]
