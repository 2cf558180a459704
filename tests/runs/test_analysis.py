"""The analysis of a method: from files written by hand, and planned for all methods and seeds."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from actionspan.annotations.tables import VIDEO_COLUMNS, Video, write_videos
from runs.conftest import copy_program

pytestmark = pytest.mark.workflow

RULES = tuple(f"evaluation_{step}" for step in ("evaluate", "reliability", "worst"))
MADE = ("evaluation_evaluate", "evaluation_baseline", *RULES[1:])
FILES = (
    *(f"misses/{{}}{suffix}" for suffix in (".tsv", ".instances.tsv", ".md", ".svg")),
    *(f"reliability/{{}}{suffix}" for suffix in (".tsv", ".md", ".svg")),
    "videos/{}.md",
    "reader/{}.json",
    "reader/{}.md",
)
TRUTH: dict[str, Any] = {
    "train": {"subset": "training", "duration": 9.0, "segments": [(0.0, 9.0)]},
    "found": {"subset": "validation", "duration": 30.0, "segments": [(3.0, 6.0), (9.0, 29.0)]},
    "not found": {"subset": "validation", "duration": 60.0, "segments": [(50.0, 51.0)]},
    "calm": {"subset": "validation", "duration": 8.0, "segments": []},
}
PROPOSALS = {
    "found": [(3.0, 6.0, 0.9), (10.0, 29.0, 0.8), (1.0, 2.0, 0.1)],
    "calm": [(1.0, 2.0, 0.3)],
}


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The program and nothing else."""
    return copy_program(tmp_path_factory.mktemp("analysis"))


@pytest.fixture(scope="module")
def by_hand(alone):
    """The files of one method, made from proposals, annotations and scores written by hand."""
    results = alone.folder / "results"
    database = {
        name: {
            "subset": entry["subset"],
            "duration": entry["duration"],
            "annotations": [{"segment": times, "label": "fall"} for times in entry["segments"]],
        }
        for name, entry in TRUTH.items()
    }
    proposals = {
        name: [{"segment": [start, end], "score": score} for start, end, score in rows]
        for name, rows in PROPOSALS.items()
    }
    validation = [name for name, entry in TRUTH.items() if entry["subset"] == "validation"]
    listed = "".join(f"{name}\n" for name in ("video_id", *validation))
    for name, text in (
        ("dataset/annotations.json", json.dumps({"database": database})),
        ("proposals/mtn-seed2/proposals.json", json.dumps({"results": proposals})),
        ("dataset/subsets/validation.tsv", listed),
    ):
        (results / name).parent.mkdir(parents=True, exist_ok=True)
        (results / name).write_text(text)
    videos = [
        Video(
            video_id=name,
            path=Path(f"{name}.mp4"),
            fps=25.0,
            frames=round(25 * entry["duration"]),
            duration_seconds=entry["duration"],
            width=320,
            height=240,
            sha256="",
            subset=entry["subset"],
        )
        for name, entry in TRUTH.items()
    ]
    write_videos(results / "dataset/videos.tsv", videos, VIDEO_COLUMNS)
    wanted = [f"results/evaluation/{file.format('mtn-seed2')}" for file in FILES]
    done = alone.snakemake(*wanted, "--allowed-rules", *RULES)
    assert done.returncode == 0, done.stdout + done.stderr
    return alone


def test_every_file_is_made_from_proposals_alone(by_hand):
    evaluation = by_hand.folder / "results/evaluation"
    for file in FILES:
        assert (evaluation / file.format("mtn-seed2")).stat().st_size > 100
    with (evaluation / "misses/mtn-seed2.tsv").open() as file:
        everything = next(csv.DictReader(file, delimiter="\t"))
    assert [everything[f"missed@{tiou}"] for tiou in (0.5, 0.7, 0.9)] == ["1", "1", "1"]
    assert float(everything["AR@100"]) == pytest.approx((1 + 1 + 0) / 3)
    with (evaluation / "misses/mtn-seed2.instances.tsv").open() as file:
        worst = next(csv.DictReader(file, delimiter="\t"))
    assert (worst["video_id"], worst["best_tiou@100"]) == ("not found", "0.0")
    assert "All 4 proposals of the 3 videos" in by_hand.text(
        "results/evaluation/reliability/mtn-seed2.md"
    )
    page = by_hand.text("results/evaluation/videos/mtn-seed2.md")
    assert "| not found | 1 | 0 | 0.00 | 0.00 | `results/evaluation/timelines/mtn-seed2/" in page


def test_each_file_can_be_named_for_models_baselines_and_further_seeds(alone):
    names = ("origin", "mtn-seed3", "random", "random-seed2")
    wanted = [f"results/evaluation/{file.format(name)}" for file in FILES for name in names]
    planned = alone.planned(*wanted)
    scored = {"evaluation_evaluate": 2, "evaluation_baseline": 2}
    assert {rule: planned[rule] for rule in MADE} == {**dict.fromkeys(RULES, 4), **scored}


def test_one_target_makes_all_of_them_and_a_plain_run_few(alone):
    planned = alone.planned("analysis")
    # origin, span and mtn, and the four baselines
    scored = {"evaluation_evaluate": 3, "evaluation_baseline": 4}
    assert {rule: planned[rule] for rule in MADE} == {**dict.fromkeys(RULES, 7), **scored}
    plain = alone.planned()
    assert {rule: plain[rule] for rule in set(MADE) & set(plain)} == scored
