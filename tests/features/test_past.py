"""Rows for a stream: what they hold, what they depend on, and that they come one by one alike."""

import numpy as np
import pytest

from actionspan.features.cues import REACHES, Past, PastStream, causal_cues, change, past_rows
from actionspan.features.transform import StreamTransform, Transform, transform_features

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


@pytest.mark.parametrize("ahead", [1, 3])
def test_a_row_depends_on_no_more_than_the_snippets_ahead(rng, ahead):
    streams, motion = video(rng, 40)
    whole = past_rows(streams, motion, past(ahead))
    for values in (*streams.values(), *motion.values()):
        values[25:] = 7.0
    changed = past_rows(streams, motion, past(ahead))
    np.testing.assert_array_equal(changed[: 25 - ahead], whole[: 25 - ahead])
    assert (changed[25 - ahead] != whole[25 - ahead]).any()


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
    # cues are standardised by the given moments
    expected = 2 * (causal_cues(streams, motion, 1) - past().mean) / past().deviation
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
