"""An error that nobody foresaw in the work on one of three videos leaves the others as they are.

Every step that works on videos has its turn. The error is put into the processes that do the work:
`sitecustomize` replaces a function there by one that fails where its arguments name the video.
"""

import json
import os
from pathlib import Path
from typing import NamedTuple

import h5py
import pytest

from actionspan.annotations.tables import read_videos
from tiers import first_tier
from video.numbered import encode
from worlds.command import actionspan
from worlds.h5_content import content

NAMES = ("aaa", "bad", "ccc")
INJECTOR = """
import importlib.util, os, signal, sys

class Injector:
    def find_spec(self, name, path=None, target=None):
        place, function = os.environ["FAULTY"].split(":")
        if name != place:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            whole = getattr(module, function)

            def faulty(*words, **named):
                if "bad" in repr((words, named)):
                    if "CRASH" in os.environ:
                        os.kill(os.getpid(), signal.SIGSEGV)
                    raise ZeroDivisionError("injected")
                return whole(*words, **named)

            setattr(module, function, faulty)

        spec.loader.exec_module = exec_module
        return spec

if "FAULTY" in os.environ and "--multiprocessing-fork" in " ".join(sys.orig_argv):
    sys.meta_path.insert(0, Injector())
"""
FRAMES = "--snippet-frames 16 --short-side 64"
ENCODERS = "--rgb-encoder efficientnet_lite0 --flow-encoder efficientnet_lite0 --input-size 32"
STREAMS = "--frames @frames.h5 --flow @flow.h5"
LABELS = "--annotations @dataset/annotations.json"
EXTERNAL = "features external --folder @csv --videos @dataset/videos.tsv --stride 16"
# commands in their order, with @ for the folder of the shard; what they write; what fails there
SHARD = (
    (f"video frames --shard @shard.txt {FRAMES}", "frames.h5", "video.decode:read_timeline"),
    ("video flow --frames @frames.h5", "flow.h5", "video.optical_flow:write_flow"),
    (f"features extract {STREAMS} {ENCODERS}", "raw.h5", "features.extraction:write_streams"),
    (f"features encode --shard @shard.txt {FRAMES} {ENCODERS}", "one.h5", "video.decode:opened"),
    (EXTERNAL, "own.h5", "features.external:read_features"),
    (
        f"recognition segments {STREAMS} {LABELS}",
        "segments.h5",
        "recognition.clip_store:write_clip",
    ),
    (f"finetune store {STREAMS}", "store.h5", "video.jpegs:write_jpegs"),
)
FIRST_TIER = SHARD[3]
PROPOSE = (
    "video.decode:read_timeline",
    "video.thumbnails:thumbnails",
    "video.thumbnails:read_thumbnails",
    "proposals.chapters:write_chapters",
    "report.figures.timeline_figure:draw_timeline",
)


class Shard(NamedTuple):
    """Three videos, and every result of theirs that nothing happened to."""

    folder: Path

    def run(self, words: str, *more: object) -> int:
        return actionspan(*words.replace("@", f"{self.folder}/").split(), *more)

    @property
    def files(self) -> list[Path]:
        return [self.folder / f"{name}.mp4" for name in NAMES]

    def propose(self, out: Path) -> int:
        return self.run("propose --model none --out", out, *self.files)


@pytest.fixture(scope="module")
def shard(both_tiers, tmp_path_factory) -> Shard:
    folder = tmp_path_factory.mktemp("videos")
    made = Shard(folder)
    rows = ["video,start,end,label"]
    (folder / "csv").mkdir()
    for place, name in enumerate(NAMES):
        encode(folder / f"{name}.mp4", 80)
        rows.append(f"{name},{0.4 + 0.2 * place},2.4,move")
        (folder / "csv" / f"{name}.csv").write_text("".join(f"{t},{place}\n" for t in range(5)))
    (folder / "rows.csv").write_text("\n".join(rows))
    assert made.run("dataset probe --out @shard.txt --videos", *made.files) == 0
    assert made.run("dataset index --shards @shard.txt --annotations @rows.csv --out @dataset") == 0
    for words, out, _ in SHARD if both_tiers else (FIRST_TIER,):
        assert made.run(words, "--out", folder / out) == 0
    assert made.propose(folder / "found") == 0
    return made


@pytest.fixture
def fail(tmp_path_factory, monkeypatch):
    """Return what makes a function fail for the video `bad`, in processes that work on videos."""
    folder = tmp_path_factory.mktemp("injected")
    (folder / "sitecustomize.py").write_text(INJECTOR)
    before = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(folder), before))))

    def choose(function: str) -> None:
        monkeypatch.setenv("FAULTY", f"actionspan.{function}")

    return choose


@pytest.mark.parametrize(
    ("words", "out", "function"), first_tier(SHARD, FIRST_TIER), ids=[row[1][:-3] for row in SHARD]
)
def test_a_step_of_a_shard_leaves_the_others(shard, tmp_path, capfd, fail, words, out, function):
    fail(function)
    assert shard.run(words, "--out", tmp_path / out) == 0
    whole, left = content(shard.folder / out), content(tmp_path / out)
    del whole["/"], left["/"]  # which says what was rejected
    assert left == {name: held for name, held in whole.items() if "bad" not in name}
    assert any(name.startswith("aaa") for name in left)
    shown = capfd.readouterr().err
    assert "Traceback" not in shown
    rejected = [line for line in shown.splitlines() if line.startswith("rejected bad")]
    assert rejected
    assert all("ZeroDivisionError: injected" in line for line in rejected)
    with h5py.File(tmp_path / out) as file:
        reasons = json.loads(file.attrs["rejected"])
    assert {name.split(".")[0] for name in reasons} == {"bad"}


def test_probing_leaves_the_others(shard, tmp_path, fail):
    fail("dataset.video_facts:probe_video")
    assert shard.run("dataset probe --out", tmp_path / "shard.txt", "--videos", *shard.files) == 0
    whole, left = read_videos(shard.folder / "shard.txt"), read_videos(tmp_path / "shard.txt")
    assert [whole[0], whole[2]] == [left[0], left[2]]
    assert "ZeroDivisionError: injected" in left[1].error


@pytest.mark.parametrize("function", first_tier(PROPOSE, PROPOSE[0]))
def test_propose_leaves_the_others(shard, tmp_path, capfd, fail, function):
    fail(function)
    assert shard.propose(tmp_path / "found") == 1
    shown = capfd.readouterr()
    assert "Traceback" not in shown.err
    (line,) = [line for line in shown.err.splitlines() if "injected" in line]
    assert line.startswith(f"{shard.files[1]}: ZeroDivisionError: injected")
    assert "proposals of 2 videos, 1 could not be read" in shown.out
    found, whole = tmp_path / "found", shard.folder / "found"
    for table in ("proposals.json", "events.json"):
        results = json.loads((whole / table).read_text())["results"]
        del results["bad"]
        assert json.loads((found / table).read_text())["results"] == results
    for name in ("aaa.vtt", "aaa.svg", "ccc.jpg"):
        assert (found / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.full
def test_a_crash_of_a_decoder_leaves_the_others(shard, tmp_path, capfd, fail, monkeypatch):
    fail("video.decode:read_timeline")
    monkeypatch.setenv("CRASH", "1")
    assert shard.propose(tmp_path / "found") == 1
    shown = capfd.readouterr()
    assert f"{shard.files[1]}: the work on it crashed: killed by SIGSEGV" in shown.err
    assert "proposals of 2 videos, 1 could not be read" in shown.out
    # mended, the same call does that video alone
    monkeypatch.delenv("FAULTY")
    assert shard.propose(tmp_path / "found") == 0
    assert "proposals of 3 videos, 2 done before" in capfd.readouterr().out
