"""Search by example finds what was planted, and nothing that only looks alike in part."""

from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.annotations.tables import Instance
from actionspan.features.transform import Moments
from actionspan.find.examples import PARTS, Footage, Likeness, describe, find_like, marked
from actionspan.find.listing import listed
from actionspan.review.footage import Encoded
from worlds.videos import video_of

STEP = 0.5  # seconds
STEPS = 240


def planted(folder: Path, name: str, places: dict[float, int], seed: int) -> Encoded:
    """Write a video of noise in front of a scene of its own, with patterns of 4 s planted in it.

    A pattern is a rise of one feature, then of another: kind 1 in this order, kind −1 in the other.
    """
    rng = np.random.default_rng(seed)
    features = rng.normal(scale=0.4, size=(STEPS, 24)).astype(np.float32)
    features += 20 * rng.normal(size=24)  # the scene
    for start, kind in places.items():
        first = round(start / STEP)
        for row in range(8):
            features[first + row, 3 if (row < 4) == (kind > 0) else 7] += 6
    file = folder / f"{name}.h5"
    with h5py.File(file, "w") as made:
        group = made.create_group(name)
        group["rgb"] = features
        group["time"] = (np.arange(STEPS) + 0.5) * STEP
        for key in ("frame_difference", "flow_magnitude"):
            group[key] = rng.uniform(1, 2, STEPS).astype(np.float32)
        group["cuts"] = np.zeros((0, 2))
    return Encoded(video=video_of(name, STEPS * STEP), shard=file)


@pytest.fixture
def footage(tmp_path) -> Footage:
    places = {
        "a": {20.0: 1, 80.0: -1},
        "b": {33.0: 1, 60.0: -1, 100.0: 1},
        "c": {10.0: -1, 47.5: 1},
        "d": {},
    }
    return Footage([planted(tmp_path, *each, seed) for seed, each in enumerate(places.items())])


def shown(found: dict[str, list], labels: list[str], count: int):
    """Return what is listed of the segments of each video by label."""
    return listed(found, labels, dict.fromkeys(found, STEPS * STEP), count)


def best(found, count: int) -> list[tuple[str, float]]:
    """Return videos and starts of the best segments that do not overlap."""
    rows = [
        (float(score), name, float(start))
        for name, each in shown({name: [own] for name, own in found.items()}, [""], count).items()
        for (start, _), score in zip(each.events, each.chances, strict=True)
    ]
    return [(name, start) for _, name, start in sorted(rows, reverse=True)]


def instance(start: float, label: str = "") -> Instance:
    return Instance(start=start, end=start + 4.0, label=label)


@pytest.mark.parametrize("marks", [{"a": [20.0]}, {"a": [20.0], "b": [33.0]}])
def test_what_is_like_the_examples_comes_first_in_whatever_scene(footage, marks):
    examples = {name: list(map(instance, starts)) for name, starts in marks.items()}
    found = best(find_like(footage, examples), 4)
    places = {("a", 20.0), ("b", 33.0), ("b", 100.0), ("c", 47.5)}
    wanted = places - {(name, start) for name, starts in marks.items() for start in starts}
    for name, start in wanted:
        near = [other == name and abs(at - start) < 1.0 for other, at in found[: len(wanted)]]
        assert sum(near) == 1, found


def test_the_same_in_the_other_order_is_another_thing(footage):
    found = find_like(footage, {"a": [instance(80.0)]})
    assert {(name, round(at / 2) * 2) for name, at in best(found, 2)} == {("b", 60), ("c", 10)}


def test_blocks_change_nothing(footage, monkeypatch):
    whole = find_like(footage, {"a": [instance(20.0)]})
    monkeypatch.setattr("actionspan.find.examples._BLOCK", 100)
    for name, found in find_like(footage, {"a": [instance(20.0)]}).items():
        np.testing.assert_array_equal(found.segments, whole[name].segments)
        np.testing.assert_allclose(found.scores, whole[name].scores, atol=1e-6)


def test_a_description_is_the_mean_of_each_part():
    steps = np.arange(36, dtype=np.float32).reshape(18, 2)
    (found,) = describe(steps, np.array([[6.0, 12.0]]))
    edges = [3.0, 6.0, 8.0, 10.0, 12.0, 15.0]
    expected = [steps[int(a) : int(b)].mean(axis=0) for a, b in zip(edges, edges[1:], strict=False)]
    np.testing.assert_allclose(found, np.concatenate(expected))
    assert len(found) == (PARTS + 2) * 2


@given(st.floats(0, 8), st.floats(1, 4))
def test_a_constant_is_described_as_itself_inside_the_video(start, length):
    steps = np.full((12, 1), 5.0, np.float32)
    (found,) = describe(steps, np.array([[start, start + length]]))
    inside = found[1:-1]  # before and behind there may be nothing
    np.testing.assert_allclose(inside, 5.0, rtol=1e-6)


def likeness_of(sample: np.ndarray) -> Likeness:
    moments = Moments(sample.shape[1])
    moments.add(sample.astype(np.float32))
    return Likeness(moments.mean, moments.covariance)


def test_whitening_is_used_where_it_helps_the_examples_find_each_other(rng):
    scale = np.array([30.0, 1.0, 1.0, 1.0])  # a dimension that varies and says nothing
    sample = rng.normal(size=(2000, 4)) * scale
    likeness = likeness_of(sample)
    likeness.fit(rng.normal(size=(6, 4)) * scale + [0, 4, 0, 0], sample)
    assert likeness.shrinkage < 0.5
    other = rng.normal(size=(200, 4)) * scale
    similar = likeness(np.concatenate([other, other + [0, 4, 0, 0]]))
    assert (similar[200:] > similar[:200]).mean() > 0.95


def test_an_example_is_ranked_by_the_others_alone(rng):
    sample, nothing_in_common = rng.normal(size=(1000, 60)), rng.normal(size=(6, 60))
    assert likeness_of(sample)._loss(nothing_in_common, sample, 0.2) > np.log(20)


def test_shrunk_wholly_it_is_the_plain_cosine_and_an_example_is_similar_to_itself(rng):
    sample, example = rng.normal(size=(1000, 3)) * [1, 5, 25], rng.normal(size=(1, 3))
    likeness = likeness_of(sample)
    for shrinkage in (1.0, 0.5):
        likeness.shrinkage = shrinkage
        likeness.fit(example, sample)
        assert likeness(example)[0] == pytest.approx(1)
        assert likeness(2 * likeness.mean - example)[0] == pytest.approx(-1)
    likeness.shrinkage = 1.0
    likeness.fit(example, sample)
    centred, target = sample - likeness.mean, (example - likeness.mean)[0]
    norms = np.linalg.norm(centred, axis=1) * np.linalg.norm(target)
    np.testing.assert_allclose(likeness(sample), centred @ target / norms, atol=1e-6)


def test_marks_are_searched_by_label():
    fall, sit = (Instance(start=0, end=1, label=label) for label in ("fall", "sit"))
    bare = Instance(start=2, end=3, label="")
    known = {"a": [fall, bare], "b": [sit, fall], "c": []}
    assert marked(known) == {
        "": {"a": [bare]},
        "fall": {"a": [fall], "b": [fall]},
        "sit": {"b": [sit]},
    }
    assert marked(known, ["sit"]) == {"sit": {"b": [sit]}}
    assert marked(known, ["jump"]) == {}


def test_the_list_holds_so_many_of_all_videos_and_names_what_each_is_like(footage):
    labels = {"rise": 20.0, "sink": 80.0}
    found = [find_like(footage, {"a": [instance(start, key)]}) for key, start in labels.items()]
    names = list(footage.videos)
    made = shown({name: [each[name] for each in found] for name in names}, list(labels), 5)
    assert sum(len(each.events) for each in made.values()) == 5
    starts = {row["label"]: row["segment"][0] for row in made["c"].event_rows()}
    assert starts == pytest.approx({"rise": 47.5, "sink": 10.0}, abs=1.6)
    for each in made.values():
        listing = {tuple(row) for row in np.column_stack([each.segments, each.scores]).tolist()}
        chosen = np.column_stack([each.events, each.chances]).tolist()
        assert {tuple(row) for row in chosen} <= listing
