"""What would be made again after a change, and what a name asks for, by dry runs of one project."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from actionspan.demo.scenario import demo_video_names
from tiers import first_tier

pytestmark = pytest.mark.workflow

AFTER_PROPOSALS = {
    "evaluation_evaluate",
    "evaluation_summary",
    "evaluation_timeline",
    "report_index",
}
AFTER_SCORING = AFTER_PROPOSALS - {"evaluation_timeline"} | {"evaluation_baseline"}
AFTER_GENERATE = AFTER_PROPOSALS | {"proposals_generate"}
# timelines are of the last model of the tiny run, which is not span
AFTER_SELECT = AFTER_PROPOSALS - {"evaluation_timeline"} | {"proposals_select"}
# tag groups what origin predicts
AFTER_TRAIN = AFTER_GENERATE | AFTER_SELECT | {"evaluation_baseline"}
VIDEO = {"video_frames", "video_flow", "features_extract"}


def test_after_a_run_there_is_nothing_to_do_nor_where_a_source_file_was_touched(project):
    (project.folder / "src/actionspan/proposals/suppression.py").touch()
    assert project.planned() == {}


KNOBS = [
    ({"proposals": {"suppression": {"keep": 50}}}, AFTER_GENERATE | {"evaluation_baseline"}),
    ({"proposals": {"evaluator": {"epochs": 3}}}, AFTER_GENERATE | {"evaluation_baseline"}),
    ({"proposals": {"suppression": {"slope": 0.3}}}, AFTER_GENERATE | {"evaluation_baseline"}),
    ({"temporal": {"training": {"learning_rate": 0.002}}}, AFTER_TRAIN | {"temporal_train"}),
    ({"evaluation": {"protocol": {"resamples": 10}}}, AFTER_SCORING),
    (
        {"video": {"flow": {"bound": 15.0}}},
        VIDEO
        | AFTER_TRAIN
        | {
            "dataset_losses",
            "features_recipe",
            "features_rescale",
            "features_sequences",
            "temporal_train",
            "proposals_classifier",
        },
    ),
    ({"proposals": {"events": {"bar": 0.3}}}, AFTER_SELECT),
    (
        {"features": {"sequences": {"window": 300}}},
        AFTER_SELECT | {"features_sequences", "temporal_train"},
    ),
]


@pytest.mark.parametrize(
    ("change", "expected"),
    first_tier(KNOBS, *KNOBS[5:7]),
    ids=[
        "kept proposals",
        "evaluator",
        "soft-nms",
        "learning rate",
        "bootstrap",
        "flow bound",
        "bar",
        "sequences",
    ],
)
def test_a_knob_re_runs_what_depends_on_it(project, change, expected):
    assert set(project.planned(config=change)) == expected


@contextmanager
def changed(path: Path, content: bytes) -> Iterator[None]:
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(before)


def test_an_edit_re_runs_the_rules_of_that_file(project):
    path = project.folder / "src/actionspan/temporal/train.py"
    with changed(path, path.read_bytes() + b"\n# edited\n"):
        planned = set(project.planned())
    assert planned == AFTER_TRAIN | {"temporal_train"}


@pytest.mark.full
def test_chapters_of_a_large_set_are_made_for_the_videos_that_are_named(project):
    config = {"demo": {"videos": 1001}}
    names = [Path(name).stem for name in demo_video_names(1001)]
    wanted = [f"results/proposals/mtn/chapters/{name}.vtt" for name in (names[7], names[900])]
    assert project.planned(*wanted, config=config)["proposals_chapters"] == 2
    status, text = project.dry_run("results/proposals/mtn/chapters/demo.vtt", config=config)
    assert status != 0
    assert "demo: no file of this video in dataset.videos" in text


def test_a_changed_annotation_leaves_the_videos_alone(project):
    path = project.folder / "results/dataset/demo/annotations.json"
    content = json.loads(path.read_text())
    entry = next(entry for entry in content["database"].values() if entry["annotations"])
    entry["annotations"][0]["segment"][0] += 0.1
    with changed(path, json.dumps(content).encode()):
        planned = set(project.planned())
    assert {"dataset_index", "temporal_train", "evaluation_evaluate"} <= planned
    assert not planned & VIDEO


def test_one_changed_video_re_runs_its_shard_alone(project):
    path = project.folder / "results/dataset/demo/demo_001.mp4"
    with changed(path, path.read_bytes() + bytes(8)):
        planned = project.planned()
    assert {rule: planned[rule] for rule in VIDEO} == dict.fromkeys(VIDEO, 1)


def test_one_file_can_be_asked_for_by_name(project):
    path = project.folder / "results/evaluation/random.json"
    before = path.read_text()
    path.unlink()
    project.make("results/evaluation/random.json")
    assert path.read_text() == before


@pytest.mark.full
def test_a_further_seed_plans_only_its_own_chain(project):
    names = ("dense-seed10", "difference-seed2")
    assert project.planned(*(f"results/evaluation/{name}.json" for name in names)) == {
        **{"temporal_train": 1, "proposals_generate": 1, "evaluation_evaluate": 1},
        "evaluation_baseline": 1,
    }


def test_the_configured_run_is_what_proposals_are_made_of(project):
    wanted = AFTER_TRAIN | {"temporal_train"}
    change = {"temporal": {"exchange": "ring", "ranks": 3}}
    assert set(project.planned(config=change)) == wanted


def test_tag_trains_the_base_network_where_no_model_asks_for_it(project):
    config = {"temporal": {"models": ["mtn"]}}
    planned = project.planned("results/proposals/tag-seed9/proposals.json", config=config)
    assert planned == {"temporal_train": 1, "proposals_generate": 1, "evaluation_baseline": 1}
