"""A person reviews videos in Chromium: corrects, is cut off, goes on, and sees what was learned."""

import re
import shutil
import signal
import time
from pathlib import Path

import pytest

from actionspan.annotations.formats.registry import read_annotation_file
from actionspan.demo.data_set import render_demo
from actionspan.demo.scenario import DemoSettings, demo_video_names
from report.conftest import PATIENCE, broken_rules, closing_contexts, need_browser
from review.conftest import reviewing

pytestmark = pytest.mark.full
need_browser()


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rendered") / "clips"
    settings = DemoSettings(videos=6, shortest_seconds=5.0, longest_seconds=6.0)
    render_demo(folder, settings, processes=2)
    for name in demo_video_names(settings.videos)[3:]:
        (folder / name).unlink()
    return folder


@pytest.fixture
def clips(rendered, tmp_path):
    return Path(shutil.copytree(rendered, tmp_path / "clips"))


@pytest.fixture
def browse(chromium):
    with closing_contexts(chromium) as new_context:

        def browse(address, width=1440):
            tab = new_context(width).new_page()
            tab.wrong = []
            tab.on("pageerror", lambda error: tab.wrong.append(str(error)))
            tab.goto(address)
            return tab

        yield browse


def show_all(tab, count):
    """Show new videos until all are looked at."""
    ready = f"""() => !document.getElementById('show-new').hidden
        || document.querySelectorAll('#list li').length === {count}"""
    while tab.locator("#list li").count() < count:
        tab.wait_for_function(ready)
        if tab.locator("#show-new").is_visible():
            tab.locator("#show-new").click()
            tab.wait_for_load_state()


def correct(tab, place):
    """Add an event to a video by mouse, give it a label, and say that all is done."""
    tab.locator("#list li button").nth(place).click()
    tab.locator(".own-lane .window").scroll_into_view_if_needed()
    box = tab.locator(".own-lane .window").bounding_box()
    tab.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + box["height"] / 2)
    tab.mouse.down()
    tab.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + box["height"] / 2, steps=4)
    tab.mouse.up()
    tab.locator("#segment-label").fill("wave")
    tab.locator("#done").check()
    tab.wait_for_function("() => document.getElementById('saving').textContent === 'Saved'")


def rows(clips):
    path = clips.with_name("clips-review") / "corrections.csv"
    return {one.video_id: one.instances for one in read_annotation_file(path).records}


def test_a_person_corrects_is_cut_off_goes_on_and_sees_what_was_learned(clips, browse):
    with reviewing(clips) as (address, process):
        tab = browse(address)
        show_all(tab, 3)
        correct(tab, 0)
        first = tab.locator("#video-name").inner_text()
        process.send_signal(signal.SIGKILL)
        process.wait()
    ((name, (made,)),) = rows(clips).items()
    assert (name, made.label) == (first, "wave")
    # the page that is open says that nothing is saved any more
    tab.locator("#done").uncheck()
    tab.wait_for_function("() => document.getElementById('saving').textContent.startsWith('Not')")

    port = int(re.search(r":(\d+)/", address)[1])
    with reviewing(clips, port) as (address, _):
        tab = browse(address)
        show_all(tab, 3)
        assert tab.locator("#list li").nth(0).inner_text().endswith("done")
        tab.wait_for_function(
            "() => document.getElementById('said').textContent.includes('1 corr')"
        )
        other = browse(address)
        show_all(other, 3)
        correct(tab, 1)
        assert set(rows(clips)) >= {first}
        assert len(rows(clips)) == 2
        # the second window follows, and shows what was learned
        other.wait_for_function(
            "() => document.querySelectorAll('#list li')[1].textContent.endsWith('done')"
        )
        other.wait_for_selector("#said:has-text('2 corrected videos')")
        other.wait_for_selector("#show-new:not([hidden])")
        other.locator("#show-new").click()
        other.wait_for_selector("#list li")
        other.locator("#list li button").nth(1).click()
        assert other.locator(".own-lane .segment").count() == 1
        phone = browse(address, width=390)
        show_all(phone, 3)
        for each in (tab, other, phone):
            assert broken_rules(each) == []
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390
        assert tab.wrong == other.wrong == phone.wrong == []


def test_what_two_windows_change_at_once_is_not_overwritten(clips, browse):
    with reviewing(clips) as (address, _):
        tab = browse(address)
        show_all(tab, 3)
        other = browse(address)
        show_all(other, 3)
        # the second window cannot hear of the first one's change
        other.route("**/status", lambda route: route.abort())
        correct(tab, 0)
        kept = rows(clips)
        other.locator("#list li button").nth(0).click()
        other.locator("#done").check()
        other.wait_for_selector("#storage-note:not([hidden])")
        assert "another window" in other.locator("#storage-note").inner_text()
        assert other.locator(".own-lane .segment").count() == 1
        assert rows(clips) == kept


@pytest.mark.parametrize("seconds", [0, 2, 4])
def test_ctrl_c_ends_it_without_a_traceback(clips, seconds):
    """Whatever it is doing: beginning, starting a process that encodes, encoding."""
    with reviewing(clips) as (address, process):
        assert address.startswith("http://127.0.0.1:")
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert "Traceback" not in said
