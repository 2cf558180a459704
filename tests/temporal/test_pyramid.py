"""The pyramid: its points, who learns what, exact decoding, its losses, and that it learns."""

import math

import numpy as np
import pytest
import torch

from actionspan.proposals.segments import temporal_iou
from actionspan.temporal.labels import video_targets
from actionspan.temporal.pyramid import (
    STRIDES,
    Pyramid,
    assign,
    distance_iou_loss,
    focal_loss,
    points,
)
from actionspan.temporal.settings import TemporalSettings
from actionspan.temporal.training import start


def network(channels=4, hidden=64):
    torch.manual_seed(0)
    return Pyramid(channels, hidden=hidden).double()


def batch(count=6, steps=20, seed=0):
    """Features whose first says where the action is, and labels, float64."""
    random = np.random.default_rng(seed)
    features, labels, truth = [], [], []
    for _ in range(count):
        begin = random.integers(1, steps - 8) + 0.5
        end = begin + random.integers(4, steps - 2 - int(begin))
        row = random.normal(size=(steps, 4))
        row[int(begin) : int(end), 0] += 4
        kinds = np.zeros((steps, 3), np.float32)
        kinds[int(begin), 0] = kinds[int(end), 2] = 1
        kinds[int(begin) : int(end), 1] = 1
        features.append(row)
        labels.append(video_targets(kinds, np.array([[begin, end]]), -1))
        truth.append((begin, end))
    rows, targets = (torch.from_numpy(np.stack(each)) for each in (features, labels))
    return rows, targets.double(), np.array(truth)


@pytest.mark.parametrize("steps", [1, 17, 100])
def test_points_lie_where_the_levels_convolutions_are_centred(steps):
    places, levels = points(steps)
    model = network()
    with torch.no_grad():
        sizes = [maps.shape[2] for maps in model._levels(torch.zeros(1, steps, 4).double())]
    assert torch.bincount(levels).tolist() == sizes
    for level, stride in enumerate(STRIDES):
        own = places[levels == level]
        assert own.tolist() == [0.5 + stride * place for place in range(sizes[level])]


def test_a_point_learns_the_shortest_instance_round_it_of_its_levels_lengths():
    instances = torch.tensor([[[10.0, 14.0], [8.0, 60.0], [0.0, 0.0]]])
    learned, which = assign(instances, 100)
    places, levels = points(100)
    strides = [STRIDES[level] for level in levels]
    keys = zip(places.tolist(), strides, strict=True)
    learned = zip(keys, map(tuple, learned[0].tolist()), which[0], strict=True)
    found = {key: segment for key, segment, is_in in learned if is_in}
    # points up to 1.5 strides from the middles 12 and 34; of the longer instance's, the farther
    # boundary of 32.5 is 27.5 steps away, of 16.5 and 48.5 more than 32
    assert found == {
        **{(place, 1): (10.0, 14.0) for place in (10.5, 11.5, 12.5, 13.5)},
        **{place: (8.0, 60.0) for place in ((32.5, 8), (16.5, 16), (48.5, 16))},
    }


def test_the_middle_of_an_instance_is_learned_by_its_own_level():
    for length, stride in ((3, 1), (10, 2), (20, 4), (40, 8), (90, 16)):
        instances = torch.tensor([[[50 - length / 2, 50 + length / 2]]])
        which = assign(instances, 100)[1][0]
        _, levels = points(100)
        assert stride in {STRIDES[level] for level in levels[which]}


def test_segments_are_decoded_exactly():
    model = network()
    with torch.no_grad():
        for parameter in (*model.reach.conv2.parameters(), *model.score.conv2.parameters()):
            parameter.zero_()
        model.reach.conv2.bias[:] = torch.tensor([math.expm1(1.5), math.expm1(0.25)]).log()
        _, logits, segments = model.found(torch.randn(2, 100, 4).double())
    places, levels = points(100)
    strides = torch.tensor(STRIDES)[levels]
    torch.testing.assert_close(segments[0, :, 0], places - 1.5 * strides, check_dtype=False)
    torch.testing.assert_close(segments[0, :, 1], places + 0.25 * strides, check_dtype=False)
    assert not logits.any()


def test_segments_are_cut_to_the_row_and_best_first():
    model = network()
    features = torch.randn(2, 50, 4, dtype=torch.float64)
    with torch.no_grad():
        _, logits, segments = model.found(features)
        found = model.segments(features)
    for row, (ends, scores) in enumerate(found):
        order = (-logits[row]).argsort(stable=True)
        torch.testing.assert_close(scores, logits[row, order].sigmoid())
        torch.testing.assert_close(ends, segments[row, order].clamp(0, 50) / 50)
        assert (ends[:, 0] <= ends[:, 1]).all()


def test_the_focal_loss_by_hand():
    logits = torch.tensor([0.0, 2.0, 2.0, -200.0], dtype=torch.float64)
    positive = torch.tensor([True, True, False, True])
    p = 1 / (1 + math.exp(-2))
    expected = [-0.25 * 0.25 * math.log(0.5), -0.25 * (1 - p) ** 2 * math.log(p)]
    expected += [-0.75 * p**2 * math.log(1 - p), 0.25 * 200]
    found = focal_loss(logits, positive)
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))


def test_the_loss_of_overlap_by_hand():
    segments = torch.tensor([[0.0, 4.0], [0.0, 4.0], [0.0, 2.0]], requires_grad=True)
    truth = torch.tensor([[0.0, 4.0], [2.0, 6.0], [8.0, 10.0]])
    loss = distance_iou_loss(segments, truth)
    torch.testing.assert_close(loss, torch.tensor([0, 1 - 1 / 3 + 1 / 9, 1 + 0.64]))
    loss[2].backward()
    assert segments.grad[2, 1] < 0  # apart, the end is still drawn to the truth


def test_the_losses_of_shares_add_up_to_the_batches():
    model = network()
    features, labels, _ = batch()
    whole = model.loss(features, labels)
    shares = [model.loss(features[rows], labels[rows], labels) for rows in (slice(2), slice(2, 6))]
    for total, *parts in zip(whole, *shares, strict=True):
        torch.testing.assert_close(sum(parts), total)
    # a row without instances has a loss too
    assert torch.isfinite(model.loss(features, torch.zeros_like(labels)).total)


def test_it_learns_which_segments_fit():
    model, optimiser = start("pyramid", 4, TemporalSettings(hidden=64, learning_rate=0.01))
    features, labels, _ = batch(count=16)
    for _ in range(40):
        optimiser.zero_grad()
        model.loss(features.float(), labels.float()).total.backward()
        optimiser.step()
    features, _, truth = batch(count=8, seed=1)
    with torch.no_grad():
        found = model.eval().segments(features.float())
    pairs = zip(found, truth, strict=True)
    best = [temporal_iou(each.segments[:1] * 20, [one]) for each, one in pairs]
    assert np.mean(best) > 0.75
