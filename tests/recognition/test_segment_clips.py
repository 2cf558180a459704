"""Clips of untrimmed videos hold the snippets of their segments, and resume after a kill."""

import h5py
import pytest

from actionspan.dataset.tables import Annotation, Instance, write_annotations
from actionspan.errors import InputError
from actionspan.jobs.shards import ShardWork
from actionspan.recognition.clip_lists import ClipSettings
from actionspan.recognition.clip_store import ClipStore
from actionspan.recognition.segment_clips import segments_of_shard
from ended_jobs import parts_of_ended_job
from recognition.conftest import HEIGHT, STACK, WIDTH

SETTINGS = ClipSettings(height=HEIGHT, width=WIDTH, background_ratio=float("inf"))


@pytest.fixture
def annotations(tmp_path):
    def instances(*spans):
        return tuple(Instance(start=a, end=b, label=label) for a, b, label in spans)

    known = [
        Annotation(
            video_id=name,
            subset=subset,
            duration_seconds=12.0,
            instances=instances((2.0, 5.0, "run"), (9.1, 9.3, "jump")),
        )
        for name, subset in (
            ("one", "training"),
            ("two", "training"),
            ("shown", "validation"),
            ("other", "testing"),
        )
    ]
    known[1] = Annotation(
        video_id="two", subset="training", duration_seconds=12.0, instances=instances((40, 43, "x"))
    )
    write_annotations(tmp_path / "annotations.json", known)
    return tmp_path / "annotations.json"


@pytest.mark.parametrize("processes", [1, 2])
def test_clips_hold_the_snippets_of_their_segments(write_videos, annotations, tmp_path, processes):
    frames, flow = write_videos({"one": 12, "shown": 12, "other": 12, "unnamed": 4})
    out, how = tmp_path / "clips.h5", ShardWork(processes=processes)
    assert segments_of_shard(frames, flow, annotations, out, SETTINGS, how) == {}
    store = ClipStore([out])
    assert store.classes == ["jump", "run", "background"]
    assert store.channels["flow"] == 2 * STACK
    found = {}
    for place, clip in enumerate(store.clips):
        values = [store.read("rgb", place, k)[10, 10, 0] for k in range(clip.positions)]
        codes = [store.read("flow", place, k)[10, 10] for k in range(clip.positions)]
        rows = [round((int(value) - 20) / 10) for value in values]
        assert [code.tolist() for code in codes] == [[128 + row, 128] * STACK for row in rows]
        found[clip.clip_id] = (store.classes[clip.label], rows)
    assert found == {
        "one.000": ("background", [0]),  # up to 1.5 s; snippets are at 0.5 s, 1.5 s, …
        "one.001": ("run", [2, 3, 4]),
        "one.002": ("background", [5, 6]),
        "one.003": ("background", [7, 8]),
        "one.004": ("jump", [9]),
        "one.005": ("background", [10, 11]),
    }
    with h5py.File(out) as file:
        assert file["one.001/time"][:].tolist() == [2.5, 3.5, 4.5]


def test_a_training_video_is_held_out_whole(write_videos, annotations, tmp_path):
    frames, flow = write_videos({"one": 12, "two": 12})
    segments_of_shard(frames, flow, annotations, tmp_path / "clips.h5", SETTINGS)
    store = ClipStore([tmp_path / "clips.h5"])
    subsets = {(clip.clip_id.split(".")[0], clip.subset) for clip in store.clips}
    assert len(subsets) == 2
    assert {subset for _, subset in subsets} == {"training", "validation"}


def test_an_instance_beyond_the_video_is_rejected_and_the_rest_goes_on(
    write_videos, annotations, tmp_path, capsys
):
    frames, flow = write_videos({"two": 12})
    errors = segments_of_shard(frames, flow, annotations, tmp_path / "clips.h5", SETTINGS)
    (reason,) = errors.values()
    assert reason == "two: no frame lies in an instance of x"
    assert "rejected two." in capsys.readouterr().err
    assert ClipStore([tmp_path / "clips.h5"]).classes == ["background"]


def test_a_shard_without_training_videos_is_an_empty_store(write_videos, annotations, tmp_path):
    one, other = (tmp_path / f"{number}.h5" for number in (1, 2))
    segments_of_shard(*write_videos({"shown": 3}, "a"), annotations, one, SETTINGS)
    segments_of_shard(*write_videos({"one": 12}, "b"), annotations, other, SETTINGS)
    assert ClipStore([one, other]).clips == ClipStore([other]).clips


def test_a_killed_job_goes_on_where_it_was(write_videos, annotations, tmp_path):
    frames, flow = write_videos({"one": 12})
    out = tmp_path / "clips.h5"

    def job():
        segments_of_shard(frames, flow, annotations, out, SETTINGS)

    first = parts_of_ended_job(out, job)
    assert len(first) == 6
    assert parts_of_ended_job(out, job) == first
    job()
    whole = tmp_path / "whole.h5"
    segments_of_shard(frames, flow, annotations, whole, SETTINGS)
    assert ClipStore([out]).fingerprint == ClipStore([whole]).fingerprint


def test_annotations_without_an_instance_are_named(write_videos, tmp_path):
    path = tmp_path / "none.json"
    write_annotations(path, [Annotation(video_id="one", subset="training", duration_seconds=12.0)])
    with pytest.raises(InputError, match=r"none.json: no training video has an instance"):
        segments_of_shard(*write_videos({"one": 3}), path, tmp_path / "o.h5", SETTINGS)


def test_frames_of_another_shard_are_refused(write_videos, annotations, tmp_path):
    frames, _ = write_videos({"two": 3}, "a")
    _, flow = write_videos({"one": 3}, "b")
    with pytest.raises(InputError, match=r"a_frames.h5: lacks one, which .*b_flow.h5 holds"):
        segments_of_shard(frames, flow, annotations, tmp_path / "o.h5", SETTINGS)
