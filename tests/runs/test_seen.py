"""Files that people give are seen to be other ones whatever their time says."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from runs.conftest import Project, copy_program
from video.numbered import encode

pytestmark = [pytest.mark.workflow, pytest.mark.full]

FILES = {"videos": "videos", "annotations": "a.csv", "video_info": "info.csv"}
ENCODERS = {"rgb_weights": "mine.pt", "flow_encoder": "flow_histogram"}
CONFIG = {"dataset": {**FILES, "videos_per_shard": 1}, "features": {"encoders": ENCODERS}}
TARGETS = ["results/dataset/videos.tsv", "results/features/recipe.json"]
OLD = 10**9  # seconds: of 2001


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Project:
    folder = tmp_path_factory.mktemp("seen")
    (folder / "videos").mkdir()
    for name in "ab":
        encode(folder / f"videos/{name}.mp4", 20)
    (folder / "a.csv").write_text("video,start,end,label\na,0,0.5,jump\nb,0,0.4,run\n")
    (folder / "info.csv").write_text("video,fps,seconds\na,25,0.8\nb,25,0.8\n")
    (folder / "mine.pt").write_bytes(b"weights")
    project = copy_program(folder)
    project.make(*TARGETS, config=CONFIG)
    return project


def other_video(path: Path) -> None:
    encode(path, 24)


def other_text(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"0.5", b"0.6").replace(b"25", b"24"))


def other_bytes(path: Path) -> None:
    path.write_bytes(b"other weights")


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("a.csv", other_text, {"dataset_index": 1}),
        ("info.csv", other_text, {"dataset_index": 1}),
        ("videos/b.mp4", other_video, {"dataset_probe": 1, "dataset_index": 1}),
        ("mine.pt", other_bytes, {"features_recipe": 1}),
    ],
)
def test_another_file_with_an_older_time_runs_its_rules_again(
    made: Project, name: str, change: Callable[[Path], None], expected: dict[str, int]
):
    assert made.planned(*TARGETS, config=CONFIG) == {}
    path = made.folder / name
    before, kept = path.stat(), path.with_suffix(".kept")
    shutil.copy2(path, kept)
    change(path)
    os.utime(path, (OLD, OLD))
    assert made.planned(*TARGETS, config=CONFIG) == expected
    # the file as it was, with its time
    kept.replace(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert made.planned(*TARGETS, config=CONFIG) == {}


def test_the_same_annotations_with_another_time_run_nothing(made):
    for time in (OLD, OLD * 2):
        os.utime(made.folder / "a.csv", (time, time))
        assert made.planned(*TARGETS, config=CONFIG) == {}
