"""A whole run over a folder where everything that can be wrong with a video is wrong."""

import csv
import json
import os
import struct

import h5py
import pytest

from runs.conftest import copy_program
from video.numbered import encode

pytestmark = pytest.mark.workflow

LONG = "".join(map(str, range(121)))[:240]  # almost as long as a name may be
GOOD = ["-x", "a b", "plain", LONG]
# In the program's copy: the decoder crashes, hangs, fails, or is out of memory.
INJECTED = """

def _injected(write_frames=write_frames):
    def write(video, *rest):
        import os, signal, time
        if video.video_id == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if video.video_id == "stall":
            time.sleep(3600)
        if video.video_id == "memory":
            raise MemoryError
        if video.video_id == "bug":
            raise KeyError("a mistake of ours")
        write_frames(video, *rest)
    return write


write_frames = _injected()
"""
REJECTED = {
    "videos/bug.mp4": "KeyError: 'a mistake of ours'",
    "videos/crash.mp4": "the work on it crashed: killed by SIGSEGV",
    "videos/memory.mp4": "too little memory to work on it",
    "videos/stall.mp4": "no progress in 20 s",
    "videos/huge.gif": "frames of 15000×15000 pixels are more than video.max_pixels",
    "videos/empty.mp4": "the file is empty",
    "videos/loop.mp4": "a link that leads to itself",
    "videos/pipe.mp4": "not a file but a pipe",
    "videos/zero.mp4": "not a file but a device",
    "videos/v{1}.mp4": "Snakemake takes braces for a wildcard; rename the file",
    "videos/<b>x.mp4": "Snakemake takes <b> for a path variable; rename the file",
}


def fill(folder):
    videos = folder / "videos"
    videos.mkdir()
    decoded = [*GOOD, "bug", "crash", "memory", "stall"]
    for name in decoded:
        encode(videos / f"{name}.mp4", 60, options={"preset": "ultrafast"})
    for name in ("v{1}", "<b>x"):
        encode(videos / f"{name}.mp4", 5, options={"preset": "ultrafast"})
    # a header that states 10 frames more than there are
    short = encode(videos / "short.avi", 60, codec="mpeg4")
    content = bytearray(short.read_bytes())
    struct.pack_into("<I", content, content.index(b"strh") + 8 + 32, 70)
    short.write_bytes(content)
    # a picture of 15,000 × 15,000 pixels in 40 bytes
    size = struct.pack("<HH", 15000, 15000)
    image = b"," + bytes(4) + size + b"\x00\x02\x02\x4c\x01\x00;"
    (videos / "huge.gif").write_bytes(b"GIF89a" + size + b"\x80\x00\x00" + bytes(6) + image)
    (videos / "empty.mp4").touch()
    (videos / "loop.mp4").symlink_to("loop.mp4")
    (videos / "zero.mp4").symlink_to("/dev/zero")
    os.mkfifo(videos / "pipe.mp4")
    with (folder / "annotations.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["video", "start", "end", "label", "subset"])
        for name in [*decoded, "short"]:
            subset = "validation" if name in ("-x", LONG) else "training"
            rows.writerow([name, 0.5, 1.5, "jump", subset])
        rows.writerow(["plain", 2, 1, "jump", "training"])
        rows.writerow(["i" * 300, 0, 1, "jump", "training"])
        rows.writerow(["plain", 0, 1, "j" * 1001, "training"])


CONFIG = {
    "dataset": {"videos": "videos", "annotations": "annotations.csv", "videos_per_shard": 100},
    "video": {"stall_seconds": 20},
    "temporal": {"models": ["origin"], "training": {"epochs": 1, "hidden": 16}},
    "proposals": {"evaluator": {"epochs": 1}},
    "features": {"rescale": {"components": 4}},
}
TARGETS = [
    "results/dataset/rejected.tsv",
    "results/proposals/origin/chapters/-x.vtt",
    "results/evaluation/timelines/origin/-x.svg",
]


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines(), delimiter="\t"))


def test_each_bad_video_is_a_row_and_no_other_is_lost(tmp_path):
    project = copy_program(tmp_path)
    fill(tmp_path)
    source = tmp_path / "src/actionspan/video/snippets.py"
    source.write_text(source.read_text() + INJECTED)
    done = project.make(*TARGETS, config=CONFIG)
    # the others
    shard = tmp_path / "results/features/shards/0000.h5"
    with h5py.File(shard) as file:
        assert set(file) == {*GOOD, "short"}
    for name in ("a b", "bug", LONG):
        assert (tmp_path / f"results/proposals/origin/chapters/{name}.vtt").is_file()
    # what was lost
    rows = table(project.text("results/dataset/rejected.tsv"))
    found = {row["file"]: row["reason"] for row in rows if not row["row"]}
    assert set(found) == set(REJECTED)
    for file, reason in REJECTED.items():
        assert found[file].startswith(reason)
    assert [row["row"] for row in rows if row["row"]] == ["11", "12", "13"]
    assert table(project.text("results/dataset/losses.tsv")) == [
        {"video_id": "short", "stated_frames": "70", "read_frames": "60"}
    ]
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("lost of the input")]
    assert line == (
        "lost of the input: 11 files and 3 annotation rows left out (results/dataset/rejected.tsv);"
        " 10 of 70 frames of 1 video could not be read (results/dataset/losses.tsv)"
    )
    logs = (tmp_path / "results/logs").rglob("*.log")
    assert not [log for log in logs if "Traceback" in log.read_text()]
    # and the next start finds nothing to do
    assert project.planned(*TARGETS, config=CONFIG) == {}
    assert json.loads(project.text("results/dataset/annotations.json"))["database"]["-x"]


def test_with_fail_the_run_ends_in_one_line_and_goes_on_where_it_was(tmp_path):
    project = copy_program(tmp_path)
    (tmp_path / "videos").mkdir()
    for name in ("a", "crash"):
        encode(tmp_path / f"videos/{name}.mp4", 20, options={"preset": "ultrafast"})
    (tmp_path / "annotations.csv").write_text("video,start,end,label\na,0,0.5,jump\n")
    source = tmp_path / "src/actionspan/video/snippets.py"
    whole = source.read_text()
    source.write_text(whole + INJECTED)
    config = {**CONFIG, "dataset": {**CONFIG["dataset"], "on_bad_input": "fail"}}
    target = "results/video/frames/0000.h5"
    done = project.snakemake(target, "--notemp", config=config)
    assert done.returncode != 0
    log = project.text("results/logs/video_frames/0000.log")
    last = log.splitlines()[-1]
    assert "0000.h5: 1 rejected (above); correct them, or skip them with on_bad_input skip" in last
    assert "rejected crash: the work on it crashed: killed by SIGSEGV" in log
    assert (tmp_path / "results/video/frames/0000.h5.parts/a.h5").is_file()
    source.write_text(whole)  # as after an update that cures the decoder
    assert project.snakemake(target, "--notemp", "--force", config=config).returncode == 0
    with h5py.File(tmp_path / target) as file:
        assert list(file) == ["a", "crash"]
