"""Labels while it plays, and several at once: keys that are held, reaction time, subjects."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from actionspan.annotations.formats.registry import read_annotation_file
from actionspan.annotations.keys import LabelKey, read_keys
from actionspan.annotations.tables import Instance
from report import pages
from report.conftest import broken_rules, drag, need_browser, saved
from tiers import first_tier
from worlds.command import actionspan

need_browser()

FRAME = 1 / pages.RATE
# Presses and releases keys when the video reaches their times; returns when it did.
PLAY = """
async (moments) => {
  const video = document.getElementById("video");
  const times = [];
  video.play();
  for (const [at, type, key] of moments) {
    while (video.currentTime < at && !video.ended) await new Promise((go) => setTimeout(go, 2));
    times.push(video.currentTime);
    document.body.dispatchEvent(new KeyboardEvent(type, { key, code: key, bubbles: true }));
  }
  video.pause();
  await new Promise((go) => setTimeout(go, 50));
  return times;
}
"""


def own(tab):
    return tab.locator(".own-lane .segment")


def times_of(rows) -> list[tuple[float, float]]:
    return [(float(row["start"]), float(row["end"])) for row in rows]


def set_keys(tab, *keys: tuple[str, str, str, bool]) -> None:
    """Fill in the table of keys as a person does."""
    tab.locator("#key-settings summary").click()
    for key, label, subject, point in keys:
        tab.click("#add-key")
        row = tab.locator("#key-rows li").last
        row.get_by_role("textbox", name="Key").fill(key)
        row.get_by_label("Label").fill(label)
        row.get_by_label("Subject").fill(subject)
        row.get_by_label("Point").set_checked(point)
    tab.locator("#add-key").focus()
    tab.locator("#key-settings summary").click()


def play(tab, moments) -> list[float]:
    tab.wait_for_function("() => document.getElementById('video').readyState > 2")
    return tab.evaluate(PLAY, moments)


def held(truth, late: float, key="g") -> list[tuple[float, str, str]]:
    """The presses of a person who is so late, in seconds of the video."""
    moments = []
    for start, end in truth:
        moments += [(start + late, "keydown", key), (end + late, "keyup", key)]
    return sorted(moments)


@pytest.fixture
def tab(show):
    """A page of two videos without truth, with two keys and one of points."""
    videos = [pages.video(name, truth=(), recall=None) for name in ("one", "two")]
    tab = show(pages.page(videos))
    groom, rear = ("g", "groom", "mouse A", False), ("a", "rear", "mouse B", False)
    set_keys(tab, groom, rear, ("1", "lever", "", True))
    return tab


SPEEDS = [(-2, 0.25), (0, 1), (3, 8), (9, 8)]


@pytest.mark.parametrize(("steps", "speed"), first_tier(SPEEDS, (3, 8)))
def test_an_event_lasts_as_long_as_its_key_is_held_at_any_speed(tab, steps, speed):
    for _ in range(abs(steps)):
        tab.keyboard.press("<" if steps < 0 else ">")
    assert tab.evaluate("document.getElementById('video').playbackRate") == speed
    down, up = play(tab, held([(0.3, 0.3 + 0.4 * max(speed, 0.5))], 0))
    (row,) = saved(tab)
    assert (row["label"], row["subject"], row["status"]) == ("groom", "mouse A", "added")
    # on frames, and no later than what may go by until a press is heard
    assert float(row["start"]) == pytest.approx(down, abs=FRAME / 2 + 0.01 * speed)
    assert float(row["end"]) == pytest.approx(up, abs=FRAME / 2 + 0.01 * speed)


def test_keys_that_are_held_at_once_make_events_that_overlap_and_a_point_is_one_frame(tab):
    moments = held([(0.4, 1.6)], 0) + held([(0.8, 2.2)], 0, "a") + held([(1.2, 1.9)], 0, "1")
    down, other, tap, up, _, end = play(tab, sorted(moments))
    rows = {row["label"]: row for row in saved(tab)}
    assert times_of(rows[name] for name in ("groom", "rear")) == [
        pytest.approx((down, up), abs=FRAME),
        pytest.approx((other, end), abs=FRAME),
    ]
    ((start, stop),) = times_of([rows["lever"]])
    assert start == pytest.approx(tap, abs=FRAME)
    assert stop - start == pytest.approx(FRAME)


@pytest.mark.parametrize("how", first_tier(["pause", "seek", "next", "end"], "next"))
def test_what_is_held_ends_with_a_pause_a_seek_the_video_and_another_one(tab, how):
    at = 7.4 if how == "end" else 0.4
    tab.locator("#stage").focus()
    for _ in range(round(at)):
        tab.keyboard.press("ArrowRight")
    command = {"pause": " ", "seek": "Home", "next": "j", "end": ""}[how]
    (down, *_) = play(
        tab, [(at, "keydown", "g"), (99 if how == "end" else at + 0.5, "keydown", command)]
    )
    ((start, end),) = times_of(row for row in saved(tab) if row["video"] == "one")
    assert start == pytest.approx(down, abs=FRAME)
    assert start + 0.3 < end < start + 3
    if how == "end":
        assert end == pytest.approx(pages.SECONDS, abs=FRAME)


def test_real_keys_repeat_and_are_commands_where_they_do_not_label(tab):
    tab.locator(".event-lane .segment").first.click()
    tab.keyboard.press("a")  # paused: it accepts
    assert own(tab).count() == 1
    tab.keyboard.press("Escape")
    tab.keyboard.press("Home")
    tab.keyboard.press(" ")
    tab.wait_for_function("() => document.getElementById('video').currentTime > 0.2")
    tab.keyboard.down("a")
    tab.keyboard.down("a")  # a keyboard repeats what is held
    assert tab.locator("#label-keys [aria-pressed=true]").inner_text().split() == [
        *("a", "rear", "(mouse", "B)")
    ]
    tab.wait_for_function("() => document.querySelector('.own-lane .ghost') !== null")
    tab.keyboard.press(" ")
    tab.keyboard.down("a")  # after the pause it is no command
    tab.keyboard.up("a")
    assert tab.locator(".own-lane .ghost").count() == 0
    assert [row["label"] for row in saved(tab) if row["status"] == "added"] == ["rear"]
    tab.keyboard.press(" ")
    own(tab).first.click()
    tab.keyboard.press("l")
    tab.keyboard.type("gag")  # typed text labels nothing
    tab.keyboard.press("Enter")
    assert own(tab).count() == 2


def test_buttons_label_without_a_keyboard(tab):
    button = tab.get_by_role("button", name="groom (mouse A)")
    button.click()
    assert "while the video plays" in tab.locator("#lanes-note").inner_text()
    assert own(tab).count() == 0
    tab.click("#toggle")
    tab.wait_for_function("() => document.getElementById('video').currentTime > 0.2")
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    tab.get_by_role("button", name="lever").click()
    assert sorted(row["label"] for row in saved(tab)) == ["groom", "lever"]


def move_edge(tab, edge: str, seconds: float) -> None:
    """Move an edge of the chosen segment by whole frames, with the keyboard."""
    frames = round(seconds * pages.RATE)
    way = "Left" if frames < 0 else "Right"
    tab.keyboard.press(edge)
    for _ in range(abs(frames) // 10):
        tab.keyboard.press(f"Shift+Arrow{way}")
    for _ in range(abs(frames) % 10):
        tab.keyboard.press(f"Arrow{way}")


def correct(tab, truth) -> None:
    """Move the edges of the events to the truth."""
    made_of_all = times_of(saved(tab))[: len(truth)]
    for place, ((start, end), made) in enumerate(zip(truth, made_of_all, strict=True)):
        own(tab).nth(place).click()
        move_edge(tab, "s", start - made[0])
        move_edge(tab, "e", end - made[1])


def lags_of(tab) -> list[float]:
    """The reaction times that the page reports, of starts and of ends."""
    return [float(each) for each in re.findall(r"[\d.]+(?= s at)", tab.inner_text("#reaction"))]


@pytest.mark.full
def test_the_reaction_time_is_learned_from_corrections_and_taken_off_by_the_clock(tab):
    late, speed = 0.25, 4
    tab.select_option("#speed", str(speed))
    truth = [(0.2 + 1.2 * place, 0.8 + 1.2 * place) for place in range(5)]
    pressed = np.array(play(tab, held(truth, late * speed))).reshape(5, 2)
    line = tab.locator("#reaction")
    assert line.inner_text().endswith("5 corrected events of held keys (0 so far).")
    correct(tab, truth[:4])
    assert line.inner_text().endswith("(4 so far).")
    correct(tab, truth)
    assert line.inner_text().endswith("(median of 5 corrected events).")
    lags = lags_of(tab)
    lateness = np.median(pressed - truth, axis=0) / speed
    assert np.allclose(lags, lateness, atol=FRAME / speed + 0.01)
    tab.locator("#list button").nth(1).click()
    tab.select_option("#speed", "1")
    ((start, end),) = [play(tab, held([(0.5, 1.5)], late))]
    row = next(row for row in saved(tab) if row["video"] == "two")
    assert float(row["start"]) == pytest.approx(start - lags[0], abs=FRAME)
    assert float(row["end"]) == pytest.approx(end - lags[1], abs=FRAME)
    # what was undone teaches nothing
    tab.locator("#list button").nth(0).click()
    own(tab).first.click()
    tab.keyboard.press("Delete")
    assert line.inner_text().endswith("(4 so far).")


@pytest.mark.full
def test_forty_events_in_the_time_of_the_footage_by_a_person_who_is_half_a_second_late(
    show, folder
):
    seconds, rate, late = 62.0, 25, 0.5
    pictures = [pages.picture_at(k / seconds / rate, 96, 64) for k in range(int(seconds * rate))]
    pages.encoded(str(folder / "long.mp4"), pictures, "libx264", "yuv420p", rate)
    plain = {"truth": (), "recall": None, "proposals": (), "events": ()}
    long = {"file": "long.mp4", "duration_seconds": seconds}
    tab = show(pages.page([pages.video("a", **plain), pages.video("b", **plain, **long)]))
    set_keys(tab, ("g", "groom", "", False))
    first = np.array([(0.2 + 1.4 * place, 1.0 + 1.4 * place) for place in range(5)])
    lateness = np.array(play(tab, held(first.tolist(), late))).reshape(5, 2) - first
    correct(tab, first.tolist())
    lags = lags_of(tab)
    assert np.allclose(lags, np.median(lateness, axis=0), atol=FRAME)
    tab.locator("#list button").nth(1).click()
    truth = np.array([(0.5 + 1.5 * place, 1.4 + 1.5 * place) for place in range(40)])
    pressed = np.array(play(tab, held(truth.tolist(), late))).reshape(40, 2)
    made = np.array(times_of(row for row in saved(tab) if row["video"] == "b"))
    assert made.shape == (40, 2)
    assert np.abs(made - (pressed - lags)).max() < FRAME
    # a busy machine presses later still, and not evenly
    assert np.median(np.abs(made - truth)) < late / 2 < late <= (pressed - truth).min()


@pytest.mark.full
def test_keys_are_kept_in_the_browser_and_saved_for_boris(tab, tmp_path):
    tab.reload()
    names = [one.split() for one in tab.locator("#label-keys button").all_inner_texts()]
    assert [name[0] for name in names] == ["g", "a", "1"]
    tab.locator("#key-settings summary").click()
    with tab.expect_download() as download:
        tab.click("#save-keys")
    keys = tmp_path / download.value.suggested_filename
    download.value.save_as(keys)
    assert read_keys(keys) == [
        LabelKey(key="g", label="groom", subject="mouse A"),
        LabelKey(key="a", label="rear", subject="mouse B"),
        LabelKey(key="1", label="lever", point=True),
    ]
    play(tab, held([(0.4, 1.2)], 0) + held([(1.4, 1.5)], 0, "1"))
    saved(tab, tmp_path / "corrections.csv")
    out = tmp_path / "mine.boris"
    words = ("dataset", "convert", tmp_path / "corrections.csv", out, "--keys", keys)
    assert actionspan(*words) == 0
    project = json.loads(out.read_text())
    ethogram = [(each["key"], each["code"]) for each in project["behaviors_conf"].values()]
    assert ethogram == [("g", "groom"), ("1", "lever"), ("a", "rear")]
    events = [event[1:3] for event in project["observations"]["one"]["events"]]
    assert events == [["mouse A", "groom"], ["mouse A", "groom"], ["", "lever"]]


@pytest.mark.full
@pytest.mark.parametrize(
    ("key", "label", "fault"),
    [
        ("g", "again", "g is the key of another label."),
        ("?", "what", "A key is one letter or digit."),
        ("h", "", "h needs a label."),
    ],
)
def test_a_row_that_is_no_key_is_marked_and_the_others_stay(tab, key, label, fault):
    set_keys(tab, (key, label, "", False))
    assert tab.locator("#keys-note").text_content() == fault
    assert tab.locator("#key-rows [aria-invalid=true]").count() == 1
    assert tab.locator("#label-keys button").count() == 3
    tab.locator("#key-settings summary").click()
    tab.get_by_role("button", name="Remove the key").last.click()
    assert tab.locator("#keys-note").text_content() == ""
    tab.get_by_role("button", name="Remove the key").last.click()
    assert tab.locator("#label-keys button").count() == 2


TWO = (
    Instance(start=1.0, end=3.0, label="groom", subject="mouse B"),
    Instance(start=1.0, end=3.0, label="groom", subject="mouse A"),
    Instance(start=2.0, end=4.0, label="rear", subject="mouse A"),
)


def test_events_lie_in_rows_by_subject_and_a_subject_is_set_in_the_page(show, tmp_path):
    tab = show(pages.page([pages.video("cage", truth=TWO)]))
    truth = tab.locator(".truth-lane")
    assert truth.locator(".subject-name").all_inner_texts() == ["mouse A", "mouse B"]
    boxes = [each.bounding_box() for each in truth.locator(".segment, .subject-name").all()]
    assert len({box["y"] for box in boxes}) == 5, "none hides another"
    assert "groom (mouse A) 0:01.0 to" in truth.locator(".content").get_attribute("aria-label")
    tab.keyboard.press("w")
    y = tab.locator(".own-lane .window").bounding_box()["y"] + 12
    box = tab.locator(".ruler-lane .window").bounding_box()
    drag(tab, *[(box["x"] + box["width"] * share, y) for share in (0.5, 0.75)])
    tab.keyboard.press("l")
    tab.keyboard.type("groom")
    tab.keyboard.press("Tab")
    tab.keyboard.type("mouse")
    tab.click("#segment-label")  # takes over the subject, and is typed into
    tab.keyboard.press("Tab")
    tab.keyboard.type(" mouse  B ")
    tab.check("#done")  # a click while the subject is typed
    assert tab.locator("#done").is_checked()
    assert tab.locator(".own-lane .subject-name").all_inner_texts() == ["mouse B"]
    assert "subject mouse B" in own(tab).get_attribute("aria-label")
    path = tmp_path / "corrections.csv"
    saved(tab, path)
    for form in ("boris_project", "elan", "boris", "activitynet", "table"):
        out = tmp_path / f"{form}.out"
        assert actionspan("dataset", "convert", path, out, "--to", form) == 0
        (record,) = read_annotation_file(out).records
        found = sorted((round(start), *rest) for start, _, *rest in record.bouts())
        assert found == [
            (1, "groom", "mouse A", ""),
            (1, "groom", "mouse B", ""),
            (2, "rear", "mouse A", ""),
            (4, "groom", "mouse B", ""),
        ]


def test_a_label_has_one_colour_in_all_lanes(show):
    line = "node => getComputedStyle(node).getPropertyValue('--line')"
    tab = show(pages.page([pages.video("cage", truth=TWO)]))
    segments = tab.locator(".truth-lane .segment").all()
    colours = {segment.inner_text(): segment.evaluate(line) for segment in segments}
    assert len(set(colours.values())) == 2
    segments[0].click()
    tab.keyboard.press("a")
    assert own(tab).evaluate(line) == colours[own(tab).inner_text()]
    tab = show(pages.page([pages.video("cage", truth=TWO[:1], events=(), proposals=())]))
    assert tab.locator(".segment").first.evaluate(line) == "", "nothing to tell apart"


@pytest.mark.full
def test_of_two_subjects_that_do_the_same_one_is_replaced(show):
    tab = show(pages.page([pages.video("cage", truth=TWO[:2])]))
    tab.locator(".truth-lane .segment").first.click()
    tab.fill("#segment-subject", "mouse C")
    tab.keyboard.press("Enter")
    rows = [(row["subject"], row["status"]) for row in saved(tab)]
    assert sorted(rows) == [
        ("mouse A", "accepted"),
        ("mouse B", "rejected"),
        ("mouse C", "accepted"),
    ]


@pytest.mark.full
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_it_fits_and_nothing_is_out_of_reach(show, tmp_path, width, scheme):
    phone = {"has_touch": True, "is_mobile": True} if width < 400 else {}
    tab = show(pages.page([pages.video(truth=TWO)]), width=width, color_scheme=scheme, **phone)
    set_keys(tab, ("g", "groom", "mouse A", False), ("1", "lever", "", True), ("?", "", "", False))
    tab.locator("#key-settings summary").click()
    tab.locator(".truth-lane .segment").first.click()
    tab.keyboard.press("a")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    shots = Path(os.environ.get("ACTIONSPAN_SCREENSHOTS", tmp_path))
    tab.screenshot(path=shots / f"holding-{width}-{scheme}.png", full_page=True)
    assert broken_rules(tab) == []
