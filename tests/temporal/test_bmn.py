"""The boundary-matching network: its loss, what it finds, and that it learns pairs."""

import numpy as np
import pytest
import torch

from actionspan.proposals.segments import temporal_iou
from actionspan.temporal.bmn import BoundaryMatching, _balance, cell_overlaps, cell_steps
from actionspan.temporal.labels import video_targets
from actionspan.temporal.settings import TemporalSettings
from actionspan.temporal.training import start


def network(channels=4, hidden=64):
    torch.manual_seed(0)
    return BoundaryMatching(channels, hidden=hidden).double()


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
    return (
        torch.from_numpy(np.stack(features)),
        torch.from_numpy(np.stack(labels)).double(),
        np.array(truth),
    )


def test_the_losses_of_shares_add_up_to_the_batches():
    model = network()
    features, labels, _ = batch()
    whole = model.loss(features, labels)
    shares = [model.loss(features[rows], labels[rows], labels) for rows in (slice(2), slice(2, 6))]
    for total, *parts in zip(whole, *shares, strict=True):
        torch.testing.assert_close(sum(parts), total)


def test_the_loss_of_pairs_by_hand(monkeypatch):
    """Confidences of ½ everywhere: log 2, and the weighted mean of (½ - tIoU)²."""
    model = network()
    with torch.no_grad():
        for parameter in (*model.map3.parameters(), *model.steps2.parameters()):
            parameter.zero_()
    features, labels, truth = batch(count=2)
    loss = model.loss(features, labels)
    starts, ends = cell_steps(20)
    overlaps = np.concatenate(
        [
            temporal_iou(
                np.stack([starts[ends < 20], ends[ends < 20]], axis=1) + 0.5, [segment]
            ).max(axis=1)
            for segment in truth
        ]
    )
    groups = [overlaps > 0.7, overlaps < 0.3, (overlaps >= 0.3) & (overlaps <= 0.7)]
    high = groups[0].sum()
    assert high > 0
    total = weight = 0.0
    for group in groups:
        each = min(1, high / group.sum())
        total += each * ((overlaps[group] - 0.5) ** 2).sum()
        weight += each * group.sum()
    positive = (overlaps > 0.9).sum()
    ratio = np.clip(len(overlaps) / positive, 1.05, 21)
    share = ratio / 2 * positive + ratio / 2 / (ratio - 1) * (len(overlaps) - positive)
    found = -share / len(overlaps) * np.log(0.5 + 1e-5)
    parts = 2 * loss.action + loss.start + loss.end
    assert float((loss.total - parts).detach()) == pytest.approx(found + 5 * total / weight)


def test_groups_weigh_alike_and_no_cell_more_than_one():
    overlaps = torch.tensor([0.8, 0.9, 0.5, 0.1, 0.1, 0.1, 0.1, 0.2])
    weights = _balance(overlaps, overlaps)
    torch.testing.assert_close(weights, torch.tensor([1, 1, 1, *[0.4] * 5]))
    nothing = torch.zeros(10)
    torch.testing.assert_close(_balance(nothing, nothing), torch.full((10,), 0.1))


def test_segments_are_scored_by_both_boundaries_and_both_confidences():
    model = network()
    features = torch.randn(2, 20, 4, dtype=torch.float64)
    with torch.no_grad():
        probabilities, confidences = model.confidences(features)
        found = model.segments(features)
    assert torch.equal(probabilities, model(features))
    for row, (segments, scores) in enumerate(found):
        assert segments.shape == (190, 2)
        assert (scores[1:] <= scores[:-1]).all()
        for segment, score in zip(segments * 20 - 0.5, scores, strict=True):
            begin, end = segment.round().int().tolist()
            torch.testing.assert_close(segment, torch.tensor([begin, end]).to(segment))
            expected = probabilities[row, begin, 0] * probabilities[row, end, 2]
            expected = expected * confidences[row, :, end - begin - 1, begin].prod()
            torch.testing.assert_close(score, expected.sqrt())


def test_it_learns_which_pairs_fit():
    settings = TemporalSettings(hidden=64)
    model, _ = start("bmn", 4, settings)
    features, labels, _ = batch(count=16)
    features, labels = features.float(), labels.float()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        optimiser.zero_grad()
        model.loss(features, labels).total.backward()
        optimiser.step()
    features, _, truth = batch(count=8, seed=1)
    with torch.no_grad():
        found = model.eval().segments(features.float())
    best = [
        temporal_iou(each.segments[:1] * 20, [one]) for each, one in zip(found, truth, strict=True)
    ]
    assert np.mean(best) > 0.8


def test_a_row_without_instances_has_a_finite_loss():
    features, labels, _ = batch(count=2)
    labels = torch.zeros_like(labels)
    assert torch.isfinite(network().loss(features, labels).total)
    assert not cell_overlaps(torch.zeros(2, 1, 2), 20).any()


def test_the_gradient_reaches_every_parameter():
    model = network()
    features, labels, _ = batch()
    model.loss(features, labels).total.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.abs().max() > 1e-12, name


def test_settings_decide_the_number_of_maps():
    model = BoundaryMatching(7, hidden=512)
    assert model.base2.weight.shape == (128, 128, 3)
    assert model.map1.weight.shape == (16, 16, 3, 3)
