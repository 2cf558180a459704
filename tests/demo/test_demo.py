"""The embedded data set: what its plans promise, and that its files are what the plans say."""

import dataclasses
import itertools
import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.demo.data_set import plan_demo, render_demo
from actionspan.demo.poses import BEARING, joints, person_pose
from actionspan.demo.rendering import frames, render_video
from actionspan.demo.scenario import (
    LABELS,
    LARGEST_FRACTION,
    DemoSettings,
    demo_video_names,
    is_validation,
    plan_video,
)
from tiers import first_tier

SHORT = DemoSettings(videos=2, seed=3, shortest_seconds=5, longest_seconds=6)


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    render_demo(folder, SHORT, 1)
    return folder


@pytest.fixture(scope="module", params=first_tier([1, 2, 7], 7))
def planned(request: pytest.FixtureRequest) -> list:
    return plan_demo(DemoSettings(seed=request.param))


def is_filling(plan) -> bool:
    return sum(a.end - a.start for a in plan.actions) > 0.9 * plan.duration_seconds


def test_instances_are_in_order_apart_inside_the_video_and_of_a_usual_length(planned):
    """From a second to two fifths of a video, unless they fill it."""
    for plan in planned:
        edges = [edge for action in plan.actions for edge in (action.start, action.end)]
        assert all(0 <= edge <= plan.duration_seconds for edge in edges)
        assert all(a < b for a, b in itertools.pairwise(edges))
        gaps = [b - a for a, b in zip(edges[1::2], edges[2::2], strict=False)]
        assert all(gap >= 0.45 for gap in gaps)
        if not is_filling(plan):
            lengths = [action.end - action.start for action in plan.actions]
            assert all(1 <= each <= LARGEST_FRACTION * plan.duration_seconds for each in lengths)


def test_both_subsets_hold_every_class_filled_and_empty_videos_and_a_third_is_held_out(planned):
    counts = {len(plan.actions) for plan in planned}
    assert counts in ({0, 1, 2, 3, 4}, {0, 1, 2, 3, 4, 5})
    assert sum(plan.subset == "validation" for plan in planned) == 12
    for subset in ("training", "validation"):
        part = [plan for plan in planned if plan.subset == subset]
        assert {action.kind for plan in part for action in plan.actions} == set(LABELS)
        assert any(not plan.actions for plan in part)
        assert any(map(is_filling, part))


def test_sizes_rates_containers_and_codecs_vary(planned):
    assert {plan.name[-3:] for plan in planned} == {"mp4", "mkv", "avi"}
    assert {plan.codec for plan in planned} == {"libx264", "mpeg4"}
    assert {round(float(plan.fps), 2) for plan in planned} == {20, 24, 25, 29.97, 30}
    assert any(plan.height > plan.width for plan in planned)
    assert all(plan.width % 2 == plan.height % 2 == 0 for plan in planned)


def test_cuts_are_away_from_the_starts_and_ends_of_instances(planned):
    assert any(len(plan.shots) > 1 for plan in planned)
    for plan in planned:
        edges = [edge for action in plan.actions for edge in (action.start, action.end)]
        for shot in plan.shots[1:]:
            assert all(abs(shot.start - edge) > 0.7 for edge in edges)


def test_a_plan_does_not_depend_on_the_number_of_videos_and_names_are_theirs():
    few, many = DemoSettings(videos=4), DemoSettings(videos=30)
    assert plan_demo(few) == plan_demo(many)[:4]
    assert plan_demo(few) != plan_demo(dataclasses.replace(few, seed=2))
    assert demo_video_names(36) == [plan.name for plan in plan_demo(DemoSettings())]
    assert demo_video_names(2) == ["demo_000.mp4", "demo_001.mp4"]


@given(fraction=st.floats(0, 1), count=st.integers(1, 200))
def test_any_first_videos_hold_out_their_part(fraction, count):
    held = sum(is_validation(index, fraction) for index in range(count))
    assert abs(held - count * fraction) <= 0.5 + 1e-6


def test_the_longest_video_is_at_least_as_long_as_the_shortest():
    with pytest.raises(ValueError, match=r"longest_seconds 10\.0: at least shortest_seconds"):
        DemoSettings(longest_seconds=10.0)


@pytest.mark.parametrize("index", range(10))
def test_the_person_stands_on_the_ground_unless_in_the_air(index):
    plan = plan_video(DemoSettings(), index)
    time = np.arange(plan.frames) / float(plan.fps)
    pose = person_pose(plan, time, np.random.default_rng(0), 0.7)
    flat = {**pose, "turn": 0 * time}
    at = joints(flat)
    assert all(np.isfinite(points).all() for points in at.values())
    # Facing the camera, only depth (a foot forward, at most 0.5) adds to the height on the picture.
    bearing = [points for name, points in at.items() if name.split("_")[-1] in BEARING]
    lowest = np.max([points[:, 1] for points in bearing], axis=0)
    standing = pose["lift"] < 1e-9
    assert np.abs(lowest[standing]).max() < 0.15
    assert (np.abs(pose["place"]) <= 0.7 + 1e-9).all()


def test_a_pose_is_idle_outside_of_instances():
    plan = next(p for p in plan_demo(DemoSettings()) if len(p.actions) >= 3)
    idle_plan = dataclasses.replace(plan, actions=())
    time = np.arange(plan.frames) / float(plan.fps)
    pose = person_pose(plan, time, np.random.default_rng(0), 0.7)
    idle = person_pose(idle_plan, time, np.random.default_rng(0), 0.7)
    acting = np.zeros(plan.frames, bool)
    for action in plan.actions:
        acting |= (time >= action.start) & (time <= action.end)
    for name in set(pose) - {"place"}:
        np.testing.assert_allclose(pose[name][~acting], idle[name][~acting], atol=1e-9)
    differs = np.max([np.abs(pose[n] - idle[n]) for n in pose if n != "place"], axis=0)
    assert (differs[acting] > 0.01).mean() > 0.95


def test_the_files_are_what_the_annotations_say(short):
    content = json.loads((short / "annotations.json").read_text())
    database = content["database"]
    files = {"annotations.json", "demo_000.mp4", "demo_001.mp4"}
    assert {path.name for path in short.iterdir()} == files
    assert [database[name]["subset"] for name in sorted(database)] == ["training", "validation"]
    assert {node["nodeName"] for node in content["taxonomy"]} == {"Root", *LABELS}
    for plan in plan_demo(SHORT):
        entry = database[plan.name[:-4]]
        count, size, rate = decoded_by_opencv(short / plan.name)
        assert count == plan.frames == round(entry["duration"] * entry["fps"])
        assert f"{size[0]}x{size[1]}" == entry["resolution"]
        assert rate == pytest.approx(entry["fps"], rel=1e-4)
        assert decoded_by_decord(short / plan.name) == plan.frames
        for item in entry["annotations"]:
            assert 0 <= item["segment"][0] < item["segment"][1] <= entry["duration"]


def decoded_by_opencv(path: Path) -> tuple[int, tuple[int, int], float]:
    reader = cv2.VideoCapture(str(path))
    rate, count, size = reader.get(cv2.CAP_PROP_FPS), 0, (0, 0)
    while True:
        good, image = reader.read()
        if not good:
            return count, size, rate
        count, size = count + 1, (image.shape[1], image.shape[0])


def decoded_by_decord(path: Path) -> int:
    from actionspan.video.decord_reader import decord

    reader = decord().VideoReader(str(path), num_threads=1)
    return sum(1 for _ in range(len(reader)) if reader.next() is not None)


@pytest.mark.parametrize("index", [4, 7])
def test_matroska_and_avi_files_decode_whole(tmp_path, index):
    plan = plan_video(SHORT, index)
    render_video(tmp_path / plan.name, plan)
    assert decoded_by_opencv(tmp_path / plan.name)[0] == plan.frames
    assert decoded_by_decord(tmp_path / plan.name) == plan.frames


def test_the_seed_gives_the_bytes_whatever_the_videos_and_processes(short, tmp_path):
    render_demo(tmp_path / "three", dataclasses.replace(SHORT, videos=3), 2)
    render_demo(tmp_path / "other", dataclasses.replace(SHORT, videos=1, seed=4), 1)
    first, second = demo_video_names(2)
    for name in (first, second):
        assert (tmp_path / "three" / name).read_bytes() == (short / name).read_bytes()
    assert (tmp_path / "other" / first).read_bytes() != (short / first).read_bytes()


def test_without_x264_the_videos_are_mpeg4(tmp_path, monkeypatch):
    import av

    monkeypatch.setattr(av, "codecs_available", {"mpeg4"})
    plan = plan_video(SHORT, 0)
    render_video(tmp_path / plan.name, plan)
    with av.open(str(tmp_path / plan.name)) as container:
        assert container.streams.video[0].codec_context.name == "mpeg4"
    assert decoded_by_opencv(tmp_path / plan.name)[0] == plan.frames


def test_a_video_that_fails_leaves_no_file(tmp_path, monkeypatch):
    def broken(plan):
        yield np.zeros((plan.height, plan.width, 3), np.uint8)
        raise RuntimeError("the lights went out")

    monkeypatch.setattr("actionspan.demo.rendering.frames", broken)
    with pytest.raises(RuntimeError, match="lights"):
        render_video(tmp_path / "demo_000.mp4", plan_video(SHORT, 0))
    assert list(tmp_path.iterdir()) == []


def test_the_person_is_seen_to_move_when_acting():
    # The same camera and scene with nothing else about: acting changes the picture, idling less.
    plan = dataclasses.replace(plan_video(SHORT, 1), distractors=())
    acted, idled = (
        np.mean([cv2.absdiff(b, a).mean() for a, b in itertools.pairwise(frames(script))])
        for script in (plan, dataclasses.replace(plan, actions=()))
    )
    assert plan.actions
    assert acted > 1.05 * idled
