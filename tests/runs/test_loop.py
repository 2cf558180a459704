"""docs/loop.md, command by command: videos to a page, corrections to a model, and round again."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from actionspan.demo.data_set import render_demo
from actionspan.demo.scenario import DemoSettings, demo_video_names
from dataset.conftest import encode_video
from runs.conftest import ROOT

pytestmark = pytest.mark.workflow


def commands() -> list[str]:
    """Return the blocks of the page that are typed, in their order."""
    blocks = re.findall(r"^```bash\n(.*?)^```", (ROOT / "docs/loop.md").read_text(), re.M | re.S)
    elsewhere = ("review", "recordings/", "--zones")  # the page, joined files and fixed cameras
    return [block for block in blocks if not any(word in block for word in elsewhere)]


def type_in(folder: Path, block: str) -> str:
    """Run a block as a person types it; return what is printed."""
    done = subprocess.run(
        ["bash", "-e", "-c", block],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, (block, done.stdout[-2000:], done.stderr[-4000:])
    return done.stdout


def write_corrections(path: Path, rows: list[tuple]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("video", "start", "end", "label", "status"), *rows])


def videos_of_page(page: Path) -> set[str]:
    (data,) = re.findall(r'type="application/json" id="index-data">(.*?)<', page.read_text(), re.S)
    return {video["id"] for video in json.loads(data)["videos"]}


def test_the_loop_of_the_docs_works_command_by_command(tmp_path):
    settings = DemoSettings(videos=6, shortest_seconds=5.0, longest_seconds=6.0)
    render_demo(tmp_path / "rendered", settings, processes=2)
    files = demo_video_names(settings.videos)
    names = [Path(file).stem for file in files]
    truth = json.loads((tmp_path / "rendered/annotations.json").read_text())["database"]
    (tmp_path / "clips").mkdir()
    for file in files[:-1]:
        shutil.copy(tmp_path / "rendered" / file, tmp_path / "clips")
    # held upright, at a rate that fell in the dark, in a codec that no browser plays
    dark = [time for time in range(0, 5000, 33) if not 2000 < time < 3000 or time % 2]
    tick = Fraction(1, 1000)
    phone = {"times": dark, "tick": tick, "size": (160, 120), "rotation": 90, "codec": "mpeg4"}
    encode_video(tmp_path / "clips/phone.mp4", **phone)
    propose, following, learn, again, merge = commands()

    type_in(tmp_path, propose)
    assert videos_of_page(tmp_path / "found/index.html") == {*names[:-1], "phone"}
    assert '"file":"videos/phone.mp4"' in (tmp_path / "found/index.html").read_text()
    asked = type_in(tmp_path, following)
    assert sum(name in asked for name in (*names[:-1], "phone")) == 3

    corrected = [name for name in names[:-1] if truth[name]["annotations"]][:2]
    rows = [
        (name, *map("{:.3f}".format, each["segment"]), each["label"], "moved")
        for name in corrected
        for each in truth[name]["annotations"]
    ]
    assert rows
    rows.append((corrected[0], "0.100", "0.300", "", "rejected"))
    write_corrections(tmp_path / "corrections.csv", rows)
    said = type_in(tmp_path, learn)
    assert "2 corrected videos" in said
    assert "each left out of learning in turn" in said

    asked = type_in(tmp_path, again)
    assert (tmp_path / "found2/index.html").is_file()
    assert not any(name in asked for name in corrected)

    third = next(name for name in names[:-1] if name not in corrected)
    write_corrections(tmp_path / "more.csv", [(third, "1.000", "2.500", "fall", "added")])
    encoded = {path.name: path.stat() for path in (tmp_path / "mine/features").glob("*.h5")}
    said = type_in(tmp_path, merge)
    assert third in (tmp_path / "actions.csv").read_text()
    assert "3 corrected videos" in said
    for name, before in encoded.items():  # not made a second time
        after = (tmp_path / "mine/features" / name).stat()
        assert after.st_mtime_ns == before.st_mtime_ns
