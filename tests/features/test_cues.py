"""Cues of change against their definition, and rows for a stream, which come one by one."""

import numpy as np
import pytest

from actionspan.features.cues import REACHES, Past, PastStream, change, cues, past_rows
from actionspan.features.transform import StreamTransform, Transform, transform_features

FLOAT = np.float32


def change_by_hand(features: np.ndarray) -> np.ndarray:
    """The definition, edge by edge."""
    steps = len(features)
    curves = np.zeros((steps, len(REACHES)))
    for column, reach in enumerate(REACHES):
        distance = {}
        for edge in range(1, steps):
            before = features[max(0, edge - reach) : edge].mean(axis=0)
            after = features[edge : edge + reach].mean(axis=0)
            distance[edge] = np.sqrt(np.mean((before - after) ** 2))
        distance |= {0: distance[1], steps: distance[steps - 1]}
        for step in range(steps):
            curves[step, column] = (distance[step] + distance[step + 1]) / 2
    return curves


@pytest.mark.parametrize("steps", [2, 3, 9, 40])
def test_change_is_what_its_definition_says(rng, steps):
    features = rng.normal(size=(steps, 5)).astype(FLOAT)
    found = change(features)
    assert found.dtype == FLOAT
    np.testing.assert_allclose(found, change_by_hand(features.astype(float)), atol=1e-6)
    # what all snippets share is nothing to it
    shifted = (features + rng.normal(size=5)).astype(FLOAT)
    np.testing.assert_allclose(found, change(shifted), atol=1e-5)


def test_cues_have_mean_0_and_deviation_2(rng):
    streams = {"rgb": rng.normal(size=(50, 6)), "flow": 100 * rng.normal(size=(50, 3))}
    motion = {"frame_difference": rng.random(50), "flow_magnitude": 40 * rng.random(50)}
    streams, motion = (
        {name: rows.astype(FLOAT) for name, rows in each.items()} for each in (streams, motion)
    )
    found = cues(streams, motion)
    assert found.shape == (50, 4 * 2 + 2)
    assert found.dtype == FLOAT
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(found.std(axis=0), 2, rtol=1e-5)
    # the order: streams as they come, then motion by name
    for column, expected in (
        (4, change(streams["flow"])[:, 0]),
        (8, np.log(motion["flow_magnitude"] + 1e-3)),
    ):
        correlation = np.corrcoef(found[:, column], expected)[0, 1]
        np.testing.assert_allclose(correlation, 1, atol=1e-6)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e4])
def test_a_video_that_never_changes_has_cues_of_0(value):
    still = {"rgb": np.full((20, 7), value, FLOAT)}
    found = cues(still, {"flow_magnitude": np.full(20, value, FLOAT)})
    np.testing.assert_array_equal(found, np.zeros((20, 5)))


def test_the_shortest_videos_have_cues_that_are_numbers():
    one, two = np.array([[1.0, 2.0]], FLOAT), np.array([[1.0, 2.0], [4.0, 6.0]], FLOAT)
    np.testing.assert_array_equal(cues({"rgb": one}, {"m": np.zeros(1, FLOAT)}), np.zeros((1, 5)))
    # one edge: change is the same at both snippets, motion differs
    found = cues({"rgb": two}, {"m": np.array([0.1, 0.5], FLOAT)})
    np.testing.assert_allclose(found, [[0, 0, 0, 0, -2], [0, 0, 0, 0, 2]], atol=1e-6)


def test_motion_below_0_counts_as_none():
    streams = {"rgb": np.zeros((3, 2), FLOAT)}
    below, none = (cues(streams, {"m": np.array([m, 0.2, 0.4], FLOAT)}) for m in (-1.0, 0.0))
    np.testing.assert_array_equal(below, none)
    assert np.isfinite(below).all()


CUES, WIDTH = 2 * len(REACHES) + 2, 5 + 3


def past(ahead=1, horizon=16):
    mean, deviation = np.linspace(-1, 1, CUES), np.linspace(0.5, 2, CUES)
    mean, deviation = mean.astype(np.float32), deviation.astype(np.float32)
    return Past(horizon=horizon, ahead=ahead, mean=mean, deviation=deviation)


def video(rng, steps):
    rgb, flow = (rng.normal(size=(steps, width)).astype(np.float32) for width in (5, 3))
    motion = {key: rng.random(steps).astype(np.float32) for key in ("difference", "flow")}
    return {"rgb": rgb, "flow": flow}, motion


def one_by_one(given, streams, motion, first=0):
    found = []
    for k in range(first, len(motion["flow"])):
        row = {key: values[k] for key, values in streams.items()}
        found.append(given.add(row, {key: float(values[k]) for key, values in motion.items()}))
    return found


def test_curves_of_motion_alone_have_rows_too(rng):
    _, motion = video(rng, 9)
    given = Past(horizon=16, ahead=1, mean=np.zeros(2), deviation=np.ones(2))
    wanted, stream = past_rows({}, motion, given), PastStream(given)
    assert wanted.shape == (9, 1 + 2 * 2)
    found = [each for each in one_by_one(stream, {}, motion) if len(each)]
    np.testing.assert_allclose(np.concatenate([*found, stream.finish()]), wanted)


@pytest.mark.parametrize("ahead", [1, 2, 5])
@pytest.mark.parametrize("steps", [1, 2, 3, 9, 60])
def test_rows_come_one_by_one_as_they_are_of_the_whole_video(rng, ahead, steps):
    streams, motion = video(rng, steps)
    whole, given = past_rows(streams, motion, past(ahead)), PastStream(past(ahead))
    assert whole.shape == (steps, 1 + 2 * (WIDTH + CUES))
    found = one_by_one(given, streams, motion)
    assert [len(rows) for rows in found] == [0] * min(ahead, steps) + [1] * (steps - ahead)
    rows = [row for rows in [*found, given.finish()] for row in rows]
    np.testing.assert_allclose(np.stack(rows), whole, atol=1e-6)


def test_a_row_is_features_and_cues_and_then_their_difference_to_the_running_mean(rng):
    streams, motion = video(rng, 30)
    rows = past_rows(streams, motion, past(horizon=1000))
    features = np.concatenate(list(streams.values()), axis=1).astype(float)
    np.testing.assert_array_equal(rows[:, 0], 1)
    np.testing.assert_allclose(rows[:, 1 : 1 + WIDTH], features, atol=1e-6)
    second = rows[:, 1 + WIDTH + CUES :][:, :WIDTH]
    for k in range(30):  # four average snippets, at 0, were seen before
        mean = features[: k + 1].sum(axis=0) / (4 + k + 1)
        np.testing.assert_allclose(second[k], features[k] - mean, atol=1e-5)
    # cues are logarithms, standardised by the given moments
    logs = [np.log(change(values, 1) + 0.1) for values in streams.values()]
    logs += [np.log(motion[key] + 1e-3)[:, None] for key in ("difference", "flow")]
    expected = 2 * (np.concatenate(logs, axis=1) - past().mean) / past().deviation
    np.testing.assert_allclose(rows[:, 1 + WIDTH : 1 + WIDTH + CUES], expected, atol=1e-5)


def test_what_is_far_back_is_forgotten(rng):
    streams, motion = video(rng, 200)
    streams["rgb"][:20] += 50
    second = past_rows(streams, motion, past(horizon=8))[:, 1 + WIDTH + CUES :][:, :5]
    assert np.abs(second[20:25]).mean() > 10 > 2 > np.abs(second[150:]).mean()


def test_change_far_ahead_is_that_of_the_whole_video(rng):
    features = rng.normal(size=(30, 4)).astype(np.float32)
    np.testing.assert_array_equal(change(features, max(REACHES)), change(features))


def test_a_state_goes_on_bitwise(rng):
    streams, motion = video(rng, 50)
    given, other = PastStream(past()), PastStream(past())
    one_by_one(given, *({k: v[:20] for k, v in each.items()} for each in (streams, motion)))
    state = given.state_dict()
    rest = one_by_one(given, streams, motion, first=20)
    other.load_state_dict(state)
    again = one_by_one(other, streams, motion, first=20)
    np.testing.assert_array_equal(np.concatenate(rest), np.concatenate(again))
    np.testing.assert_array_equal(given.finish(), other.finish())


def test_a_transform_keeps_its_past_and_every_snippet_its_row(rng):
    streams, motion = video(rng, 11)
    plain = {}
    for key, width in (("rgb", 5), ("flow", 3)):
        mean, components, scale = (np.zeros(n, np.float32) for n in (width, (0, width), width))
        plain[key] = StreamTransform(mean=mean, components=components, scale=scale + 1)
    grid = {"steps": 8, "method": "nearest", "grid": "windows", "stride": 4}
    made = Transform(streams=plain, cues=True, past=past(), **grid)
    kept = Transform.from_arrays(made.to_arrays())
    assert (kept.past.horizon, kept.past.ahead) == (16, 1)
    uneven = np.cumsum(rng.uniform(0.1, 2, 11))  # a variable frame rate
    found = transform_features(streams, uneven, 30.0, kept, motion)
    np.testing.assert_array_equal(found, past_rows(streams, motion, past()))
