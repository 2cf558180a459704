"""The network for streams: how far it sees, and that rows one by one give the same."""

import numpy as np
import pytest
import torch

from actionspan.temporal.networks import build_model, network_class
from actionspan.temporal.prediction import NetworkStream, predict_probabilities
from actionspan.temporal.settings import TemporalSettings

CHANNELS = 1 + 2 * 6


def network(look_ahead=1, name="stream", channels=CHANNELS):
    torch.manual_seed(3)
    settings = TemporalSettings(hidden=64, members=2, look_ahead=look_ahead)
    return build_model(name, channels, settings).eval()


def rows_of(rng, steps):
    rows = rng.normal(size=(steps, CHANNELS)).astype(np.float32)
    rows[:, 0] = 1
    return rows


@pytest.mark.parametrize("look_ahead", [0, 1, 3, 7])
def test_a_probability_depends_on_what_the_network_says(rng, look_ahead):
    model = network(look_ahead)
    assert model.look_ahead == look_ahead
    assert model.look_ahead + model.look_back == 14
    rows = rows_of(rng, 60)
    before = predict_probabilities(model, rows)
    rows[30, 1:] += 3
    moved = np.flatnonzero((predict_probabilities(model, rows) != before).any(axis=1))
    assert moved.min() == 30 - look_ahead
    assert moved.max() <= 30 + model.look_back


@pytest.mark.parametrize("steps", [1, 2, 5, 14, 80])
@pytest.mark.parametrize("look_ahead", [0, 1, 4])
def test_rows_one_by_one_give_what_all_together_do(rng, steps, look_ahead):
    model, rows = network(look_ahead), rows_of(rng, steps)
    stream = NetworkStream(model)
    found = [stream.add(row) for row in rows]
    waiting = min(look_ahead, steps)
    assert [len(each) for each in found] == [0] * waiting + [1] * (steps - waiting)
    together = np.concatenate([*found, stream.finish()])
    np.testing.assert_allclose(together, predict_probabilities(model, rows), atol=1e-6)


def test_a_state_goes_on_bitwise(rng):
    model, rows = network(), rows_of(rng, 40)
    stream, other = NetworkStream(model), NetworkStream(model)
    for row in rows[:17]:
        stream.add(row)
    other.load_state_dict(stream.state_dict())
    for row in rows[17:]:
        np.testing.assert_array_equal(stream.add(row), other.add(row))
    np.testing.assert_array_equal(stream.finish(), other.finish())


def test_networks_and_features_of_whole_videos_are_refused():
    with pytest.raises(ValueError, match="whole video"):
        NetworkStream(network(name="span"))
    assert network_class("span").look_ahead is None
    with pytest.raises(ValueError, match="causal"):
        network(channels=CHANNELS + 1)


def test_each_path_sees_its_half(rng):
    model, rows = network(), rows_of(rng, 20)
    before = model.logits(torch.from_numpy(rows)[None])
    rows[:, 1:7] += 1
    after = model.logits(torch.from_numpy(rows)[None])
    assert (after[0] != before[0]).any()
    torch.testing.assert_close(after[1], before[1], rtol=0, atol=0)
