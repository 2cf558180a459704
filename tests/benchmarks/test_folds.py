"""Folds over training videos: what is held out, and what is said of all folds together."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import folds
from actionspan.annotations.tables import Instance, Video
from actionspan.video.marks import Marks
from uncut import ranking, size


def footage(name: str, rows, segments=(), *, seconds: float = 1.0):
    """A video of snippets of `seconds` each."""
    rows = np.asarray(rows, np.float32)
    frames, length = round(8 * seconds * len(rows)), seconds * len(rows)
    facts = {"fps": 8.0, "frames": frames, "duration_seconds": length, "width": 0, "height": 0}
    return folds.Footage(
        video=Video(video_id=name, path=Path(), sha256="", **facts),
        instances=tuple(Instance(start=a, end=b, label="x") for a, b in segments),
        times=(np.arange(len(rows)) + 0.5) * seconds,
        rows={"rgb": rows, "frame_difference": np.arange(len(rows), dtype=np.float32)},
    )


def names(videos):
    return [one.video.video_id for one in videos]


def held_out(made):
    return [names(fold.held_out) for fold in made]


def test_outer_snippets_reach_to_the_ends():
    video = footage("a", np.ones((4, 2)))
    video = replace(video, times=np.array([0.25, 1.0, 2.0, 3.0]))  # edges 0, 0.625, 1.5, 2.5, 4
    cut = folds.cut_footage(video, np.array([False, True, True, False]))
    assert cut.video.duration_seconds == 1.875
    assert cut.times.tolist() == [0.375, 1.375]


@given(
    keep=st.lists(st.booleans(), min_size=1, max_size=12),
    ends=st.lists(st.integers(0, 96), min_size=2, max_size=8, unique=True),
)
def test_cut_moves_labels_with_their_footage(keep, ends):
    """Against a literal cut: eighths of a second, each labelled, those of lost snippets deleted."""
    eighths = 8 * len(keep)
    bounds = sorted(end for end in ends if end <= eighths)
    spans = list(zip(bounds[::2], bounds[1::2], strict=False))
    segments = [(start / 8, end / 8) for start, end in spans]
    video = footage("a", np.arange(len(keep))[:, None], segments)
    cut = folds.cut_footage(video, np.array(keep))
    assert (cut is video) == all(keep)
    kept = np.repeat(keep, 8)
    assert (cut.video.duration_seconds, cut.video.frames) == (kept.sum() / 8, kept.sum())
    assert cut.times.tolist() == (np.arange(sum(keep)) + 0.5).tolist()
    assert cut.rows["rgb"][:, 0].tolist() == np.flatnonzero(keep).tolist()
    assert cut.rows["frame_difference"].tolist() == np.flatnonzero(keep).tolist()
    expected = []
    for start, end in spans:
        inside = np.zeros(eighths, bool)
        inside[start:end] = True
        left = np.flatnonzero(inside[kept])
        if len(left) >= 8 or len(left) == end - start:
            expected.append((left[0] / 8, (left[-1] + 1) / 8))
    assert [(one.start, one.end) for one in cut.instances] == expected


def test_no_footage_is_on_both_sides():
    generator = np.random.default_rng(1)
    clips = generator.normal(size=(12, 16))  # cosines of two of them lie far below 0.9
    videos = []
    for number in range(8):
        chosen = generator.choice(12, 6, replace=False)
        rows = np.repeat(clips[chosen], 9, axis=0) + generator.normal(scale=0.02, size=(54, 16))
        videos.append(footage(f"v{number}", rows, [(9.0, 27.0)]))
    made = folds.footage_folds(videos, 3)

    def clips_of(sides) -> set[int]:
        rows = np.concatenate([one.rows["rgb"] for one in sides])
        return set(np.argmin(np.square(rows[:, None] - clips).sum(axis=2), axis=1).tolist())

    for fold in made:
        assert fold.held_out
        assert not clips_of(fold.training) & clips_of(fold.held_out)
        both = names(fold.training + fold.held_out)
        assert len(set(both)) == len(both)
    out = [clips_of(fold.held_out) for fold in made]
    assert set.union(*out) == set(range(12))
    assert sum(map(len, out)) == 12
    assert sum(len(one.times) for fold in made for one in fold.held_out) == 8 * 54


def test_each_video_is_held_out_once():
    videos = [footage(f"v{number}", np.ones((1, 1))) for number in range(11)]
    made = folds.hashed_folds(videos, 3)
    assert sorted(sum(held_out(made), [])) == sorted(names(videos))
    assert [len(fold.held_out) for fold in made] == [4, 4, 3]
    for fold in made:
        assert set(names(fold.training)) == set(names(videos)) - set(names(fold.held_out))
    assert held_out(folds.hashed_folds(videos[::-1], 3)) == held_out(made)


def test_a_person_is_in_one_fold_alone():
    videos = [footage(f"v{number}_{number % 4}", np.ones((1, 1))) for number in range(10)]

    def people(several) -> set[str]:
        return {name[-1] for name in names(several)}

    made = folds.hashed_folds(videos, 3, lambda name: name[-1])
    assert sorted(len(people(fold.held_out)) for fold in made) == [1, 1, 2]
    assert all(people(fold.held_out).isdisjoint(people(fold.training)) for fold in made)
    assert all(len(fold.held_out) + len(fold.training) == 10 for fold in made)


@pytest.mark.parametrize("number", [1, 4])
def test_too_few_or_many_folds(number):
    videos = [footage(f"v{n}", np.ones((1, 1))) for n in range(3)]
    with pytest.raises(ValueError, match=f"{number} folds of 3 training videos"):
        folds.hashed_folds(videos, number)


def test_spliced_folds_share_no_clip(tmp_path):
    clips, classes = 20 * 15, 15
    labels = np.repeat(np.arange(1, classes + 1), 20)
    subsets = np.tile([1, 1, 1, 2], clips // 4)
    # each row says which clip it is of, and which class
    rows = np.stack([np.arange(clips), labels], axis=1).astype(np.float16)
    columns = {"ids": np.arange(clips).astype("<U8"), "label": labels, "subset": subsets}
    columns["class_names"] = np.array([f"class {number}" for number in range(1, classes + 1)])
    features = np.repeat(rows[:, None], 25, axis=1)
    np.savez(tmp_path / "clips.npz", features=features, **columns)
    made = folds.spliced_folds(tmp_path / "clips.npz", 3, videos=12)
    assert [(len(fold.training), len(fold.held_out)) for fold in made] == [(8, 4)] * 3

    def used(videos) -> set[int]:
        return {int(row) for one in videos for row in one.rows["external"][:, 0]}

    for fold in made:
        assert not used(fold.training) & used(fold.held_out)
        assert all(subsets[clip] == 1 for clip in used(fold.training + fold.held_out))
        for one in fold.training + fold.held_out:
            acts = one.rows["external"][:, 1] <= 5
            assert len(set(one.rows["external"][acts, 1])) <= 1
            inside = np.zeros(len(one.times), bool)
            for instance in one.instances:
                inside |= (instance.start < one.times) & (one.times < instance.end)
            np.testing.assert_array_equal(inside, acts)
            assert one.video.duration_seconds == len(one.times) / 4
    assert any(one.instances for one in made[0].held_out)


def test_a_run_gives_its_training_videos_back(tmp_path):
    a = footage("a", np.ones((3, 2)), [(0.5, 1.5)])
    a = replace(a, marks=Marks(np.array([[1.25, 0.5]]), np.array([[0.5, 1.0, 3.0]])))
    b = footage("b", np.zeros((2, 2)))
    folds.write_fold(tmp_path / "fold", folds.Fold(training=[a], held_out=[b]), "testing")
    known = json.loads((tmp_path / "fold/annotations.json").read_text())["database"]
    assert {name: one["subset"] for name, one in known.items()} == {"a": "training", "b": "testing"}
    results = tmp_path / "results"
    (results / "features/shards").mkdir(parents=True)
    (results / "dataset").mkdir()
    (tmp_path / "fold/shard.h5").rename(results / "features/shards/0000.h5")
    for name in ("videos.tsv", "annotations.json"):
        (tmp_path / "fold" / name).rename(results / "dataset" / name)
    (read,) = folds.read_footage(results)
    assert read.video == replace(a.video, subset="training")
    assert read.instances == a.instances
    np.testing.assert_array_equal(read.times, a.times)
    for own, wanted in zip(read.marks, a.marks, strict=True):
        np.testing.assert_array_equal(own, wanted)
    assert set(read.rows) == {"rgb", "frame_difference"}
    np.testing.assert_array_equal(read.rows["rgb"], a.rows["rgb"])


def record(folder, name, scores_right, scores_wrong):
    pairs = [one > other for one in scores_right for other in scores_wrong]
    count = len(scores_right) + len(scores_wrong)
    precision = len(scores_right) / count if count else None
    events = {"ranking": sum(pairs) / len(pairs) if pairs else None, "precision": precision}
    path = folder / f"{name}.json"
    lists = {"events": {**events, "per_video": count / 2}}
    path.write_text(json.dumps({"videos": 2, "lists": lists}))
    return path


def test_each_pair_of_a_fold_counts_the_same_and_no_pair_of_two_folds(tmp_path):
    one = record(tmp_path, "one", [0.9, 0.8, 0.1], [0.5, 0.2])  # 4 of 6
    two = record(tmp_path, "two", [0.03], [0.02, 0.04])  # 1 of 2; lower than all of the first
    sure = record(tmp_path, "sure", [0.7, 0.6], [])  # no pair
    none = record(tmp_path, "none", [], [])
    assert ranking([one, two, sure, none]) == pytest.approx(5 / 8)
    assert ranking([sure, none]) is None


def test_the_line_above_a_table_says_on_what_it_rests_and_what_is_possible():
    instances = {"a1": 10, "a2": 4, "b1": 6, "c1": 0}
    videos = [
        footage(name, np.ones((1, 1)), [(at, at + 1.0) for at in range(count)], seconds=60.0)
        for name, count in instances.items()
    ]
    made = folds.hashed_folds(videos, 3, who := lambda name: name[0])
    # five of ten, four of four and five of six can be found
    assert size(videos, made, who) == (
        "4 videos of 3, 4 minutes, 20 instances; 3 folds, each trained on 2 to 3 videos; "
        "found in the first five: of at most 70.0 %"
    )
