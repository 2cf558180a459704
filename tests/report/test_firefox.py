"""The page in Firefox: it plays, is corrected by mouse and keys, and keeps what was done."""

import shutil
import time
from collections.abc import Callable

import pytest

from actionspan.report.page import write_page
from report import pages
from worlds.tables import rows_of

marionette = pytest.importorskip(
    "marionette_driver.marionette", reason="Firefox is driven by marionette-driver, not installed"
)
FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
if FIREFOX is None:
    reason = "the page is tested in Firefox, which is not installed: apt install firefox-esr"
    pytest.skip(reason, allow_module_level=True)

PATIENCE = 120  # seconds


def until(found: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < end, what
        time.sleep(0.05)


class Firefox:
    """A window of Firefox without a screen."""

    def __init__(self, downloads) -> None:
        prefs = {
            "browser.download.folderList": 2,
            "browser.download.dir": str(downloads),
            "media.autoplay.default": 0,
            "media.autoplay.blocking_policy": 0,
        }
        log = str(downloads / "firefox.log")
        self.driver = marionette.Marionette(bin=FIREFOX, headless=True, prefs=prefs, gecko_log=log)
        self.driver.start_session()
        self.driver.timeout.implicit = PATIENCE

    def find(self, selector: str):
        return self.driver.find_element("css selector", selector)

    def text(self, selector: str) -> str:
        return self.driver.execute_script(
            "return document.querySelector(arguments[0]).textContent", [selector]
        )

    def press(self, *keys: str) -> None:
        for key in keys:
            self.find("body").send_keys(key)

    def until(self, expression: str) -> None:
        until(lambda: self.driver.execute_script(f"return {expression}"), expression)

    def drag(self, element, across: int) -> None:
        mouse = self.driver.actions.sequence("pointer", "mouse", {"pointerType": "mouse"})
        mouse.pointer_move(0, 0, origin=element).pointer_down()
        mouse.pointer_move(across // 2, 0, origin="pointer")
        mouse.pointer_move(across - across // 2, 0, origin="pointer").pointer_up().perform()


@pytest.fixture
def firefox(tmp_path):
    browser = Firefox(tmp_path)
    yield browser
    browser.driver.quit()
    browser.driver.cleanup()
    browser.driver = None  # its folder is removed now, not while Python ends


def test_a_person_looks_corrects_and_saves_in_firefox(firefox, tmp_path, film_path):
    shutil.copy(film_path, tmp_path)
    video = pages.video(truth=(), recall=None)
    write_page(tmp_path / "index.html", pages.page([video], charts=pages.charts()))
    firefox.driver.navigate((tmp_path / "index.html").as_uri())
    assert firefox.text("#video-name") == "kitchen 01"
    # it plays
    firefox.until("document.getElementById('video').videoWidth === 160")
    firefox.press(" ")
    firefox.until("document.getElementById('video').currentTime > 0.2")
    firefox.press(" ")
    firefox.until("document.getElementById('video').paused")
    # an event is accepted by keys, and its end dragged by mouse
    firefox.press("n", "a")
    handle = firefox.find(".own-lane .handle.end")
    before = handle.rect["x"]
    firefox.drag(handle, 60)
    after = firefox.find(".own-lane .handle.end").rect["x"]
    assert after == pytest.approx(before + 60, abs=4)
    # it is still there after loading again, and in the file
    firefox.driver.refresh()
    firefox.until("document.querySelectorAll('.own-lane .segment').length === 1")
    firefox.find("#save-corrections").click()
    path = tmp_path / "corrections.csv"
    until(lambda: path.exists() and path.stat().st_size, str(path))
    (row,) = rows_of(path)
    assert (row["video"], row["start"], row["status"]) == ("kitchen 01", "1.200", "moved")
    assert float(row["end"]) > 2.6
    # charts are drawn
    firefox.find("#tab-summary").click()
    firefox.until("document.querySelectorAll('#summary canvas').length === 2")
