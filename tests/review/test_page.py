"""The served page in Chromium, with work whose proposals are given."""

import os
import socket
import threading
import time
from pathlib import Path

import pytest
import uvicorn

from actionspan.dataset.completing import Truth
from actionspan.review.server import make_app
from report.conftest import PATIENCE, broken_rules, need_browser
from review.conftest import A

need_browser()
SECONDS = 60.0  # of each video


@pytest.fixture
def work(rounds):
    """Two videos after a round that no longer proposes some of their events."""
    events, start = rounds
    work = start()
    work._look()
    events |= {"a": [A], "b": [A]}
    work._seen.clear()  # as if the files had changed
    work._look()
    work._doing = ""
    return work


@pytest.fixture
def browse(work, chromium):
    contexts = []
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        app = make_app(work, "x", port, "once")
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]})
        thread.start()
        while not server.started:
            time.sleep(0.01)

        def browse(width=1440, **more):
            contexts.append(chromium.new_context(viewport={"width": width, "height": 900}, **more))
            contexts[-1].set_default_timeout(PATIENCE * 1000)
            tab = contexts[-1].new_page()
            tab.goto(f"http://127.0.0.1:{port}/?token=x")
            tab.wait_for_selector("#list li:nth-child(2)", state="attached")
            return tab

        yield browse
        for context in contexts:
            context.close()
        server.should_exit = True
        thread.join()


def drag(tab, start, end):
    """Drag across the corrected lane, from one second to another."""
    box = tab.locator(".own-lane .window").bounding_box()
    y = box["y"] + 12
    tab.mouse.move(box["x"] + box["width"] * start / SECONDS, y)
    tab.mouse.down()
    tab.mouse.move(box["x"] + box["width"] * end / SECONDS, y, steps=3)
    tab.mouse.up()


def is_saved(tab):
    tab.wait_for_function("() => document.getElementById('saving').textContent === 'Saved'")


def test_segments_that_overlap_are_kept_and_are_what_is_learned_from(work, browse):
    tab = browse()
    drag(tab, 20, 40)
    tab.locator("#segment-label").fill("wave")
    tab.click("#draw")
    drag(tab, 30, 50)
    tab.locator("#segment-label").fill("jump")
    drag(tab, 25, 35)
    tab.locator("#segment-label").fill("wave")
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
    drag(tab, 20, 40)
    is_saved(tab)
    said = "Saved, not Done: not counted in corrections.csv"
    assert tab.locator("#counted").inner_text() == f"Counted in corrections.csv: 0 Done. {said}: a."
    assert tab.locator("#not-done").inner_text() == f"{said}."
    assert tab.locator("#list li").first.inner_text().endswith("1 corrected, not Done")
    assert work.status()["not_done"] == 1
    tab.locator("#done").check()
    is_saved(tab)
    assert tab.locator("#counted").is_hidden()
    assert tab.locator("#not-done").is_hidden()


@pytest.mark.parametrize("width", [390, 1440])
def test_it_fits_and_nothing_is_out_of_reach(browse, tmp_path, width):
    tab = browse(width, has_touch=width < 400, is_mobile=width < 400)
    drag(tab, 20, 40)
    tab.locator("#draw").click()
    drag(tab, 30, 50)
    is_saved(tab)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert broken_rules(tab) == []
    shots = Path(os.environ.get("ACTIONSPAN_SCREENSHOTS", tmp_path))
    tab.screenshot(path=shots / f"review-{width}.png", full_page=True)
    boxes = [each.bounding_box() for each in tab.locator(".own-lane .segment").all()]
    assert len(boxes) == 2
    assert boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"]
