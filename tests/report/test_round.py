"""A phone's video to a page, five corrections in a browser, and back into the annotations."""

from fractions import Fraction
from pathlib import Path

import pytest

from actionspan.annotations.tables import read_instances
from actionspan.cli import main
from dataset.conftest import encode_video
from report.conftest import PATIENCE, need_browser, saved

need_browser()


@pytest.fixture
def phone(tmp_path) -> Path:
    """Held upright; twelve seconds whose frame rate falls from 30 to 15 in the dark."""
    times = [time for time in range(0, 12_000, 33) if not 4000 < time < 8000 or time % 2]
    (tmp_path / "clips").mkdir()
    path = tmp_path / "clips" / "phone.mp4"
    return encode_video(path, times=times, tick=Fraction(1, 1000), size=(160, 120), rotation=90)


def test_five_corrections_of_a_phones_video_go_back_into_training(phone, tmp_path, chromium):
    out = tmp_path / "found"
    assert main(["propose", str(phone), "--model", "none", "--out", str(out), "--quiet"]) == 0

    context = chromium.new_context(viewport={"width": 1400, "height": 1000})
    context.set_default_timeout(PATIENCE * 1000)
    tab = context.new_page()
    tab.goto((out / "index.html").as_uri())
    tab.wait_for_function("document.querySelector('video').readyState > 0")
    video = "document.querySelector('video')"
    assert tab.evaluate(f"[{video}.videoWidth, {video}.videoHeight]") == [120, 160], "upright"
    for number in range(5):
        tab.keyboard.press("i")  # two seconds from the playhead
        tab.keyboard.press("l")
        tab.keyboard.type(f"act {number}")
        tab.keyboard.press("Enter")
        tab.keyboard.press("ArrowRight")
        tab.keyboard.press("ArrowRight")
    corrections = tmp_path / "corrections.csv"
    rows = [row for row in saved(tab, corrections) if row["status"] == "added"]
    context.close()
    assert [row["label"] for row in rows] == [f"act {number}" for number in range(5)]
    annotations = tmp_path / "annotations.csv"
    annotations.write_text("video,start,end,label,subset\nphone,0.5,1.5,wave,training\n")
    merged = tmp_path / "merged.json"
    words = ["dataset", "merge", str(annotations), str(corrections), "--out", str(merged)]
    assert main(words) == 0
    learned = {each.label: (each.start, each.end) for each in read_instances(merged)["phone"]}
    assert learned == {row["label"]: (float(row["start"]), float(row["end"])) for row in rows}
