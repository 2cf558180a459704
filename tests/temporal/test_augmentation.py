"""Videos with noise and at other speeds: what is drawn, and what stays true of a video."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from actionspan.temporal.augmentation import add_noise, change_speed
from actionspan.temporal.labels import (
    ACTIONNESS,
    COLUMNS,
    INSIDE,
    KINDS,
    PART,
    boundary_overlaps,
    video_targets,
)
from actionspan.temporal.networks import build_model
from actionspan.temporal.settings import TemporalSettings

STEPS = 120
PLAIN = TemporalSettings(seed=3, speed=0.3)


def test_the_noise_of_a_video_does_not_depend_on_who_reads_it_with_which_others():
    settings = TemporalSettings(hidden=4, feature_noise=2.0)
    model = build_model("origin", 2, settings)
    features = torch.arange(24.0).reshape(4, 3, 2)
    whole = add_noise(model, features, settings, 5, 8)
    shares = ((features[:1], 8), (features[1:], 9))
    parts = [add_noise(model, share, settings, 5, first) for share, first in shares]
    assert torch.equal(torch.cat(parts), whole)
    assert torch.equal(features, torch.arange(24.0).reshape(4, 3, 2))
    noise = whole - features
    assert not torch.equal(noise[0], noise[1])
    assert not torch.equal(noise, add_noise(model, features, settings, 6, 8) - features)
    assert len(add_noise(model, features[:0], settings, 5, 8)) == 0


def rows_of(lengths, parts=None):
    """Return a batch (B, STEPS, 3) of the place and its square, and labels of one instance each.

    Instances take the second quarter of a video.
    """
    features = torch.zeros(len(lengths), STEPS, 3)
    labels = torch.zeros(len(lengths), STEPS, COLUMNS)
    for row, length in enumerate(lengths):
        place = torch.arange(length) + 0.5
        values = [torch.ones(length), place, place**2 / STEPS]
        features[row, :length] = torch.stack(values, dim=1)
        instance = np.array([[length / 4, length / 2]])
        shares = boundary_overlaps(instance, float(length), steps=length)
        part = np.arange(length) // (length // 2 + 1) if parts is None else parts[row]
        labels[row, :length] = torch.from_numpy(video_targets(shares, part))
    return features, labels


def played(lengths, wanted=PLAIN, epoch=2, first=16):
    features, labels = rows_of(lengths)
    return change_speed(features, labels, slice(0, len(lengths)), wanted, epoch, first)


@settings(max_examples=40)
@given(st.integers(8, STEPS), st.floats(0.01, 1.5), st.integers(0, 99))
@example(13, 0.625, 3)
def test_a_video_keeps_what_it_shows_at_another_speed(length, speed, seed):
    wanted = replace(PLAIN, speed=speed, seed=seed)
    features, labels = (rows[0] for rows in played([length], wanted))
    inside = features[:, 0] == 1
    count = int(inside.sum())
    assert torch.equal(inside, torch.arange(STEPS) < count)  # still the first rows
    assert torch.equal(labels[:, INSIDE], inside.float())
    assert (features[count:] == 0).all()
    assert (labels[count:] == 0).all()
    least, most = length * math.exp(-speed), length * math.exp(speed)
    assert max(8, math.floor(least)) <= count + 1
    assert count <= min(STEPS, max(8, math.ceil(most)))
    # the place in the video rises evenly, up to its end unless that is cut
    place = features[:count, 1].numpy()
    assert (np.diff(place) >= 0).all()
    assert place[0] >= 0.5
    assert place[-1] <= length - 0.5
    if 8 < count < STEPS:
        assert place[-1] >= length - 0.5 - length / count
    # its instance is where it was, by the place
    action = labels[:count, ACTIONNESS].numpy()
    own = np.interp(place, np.arange(length) + 0.5, rows_of([length])[1][0, :length, ACTIONNESS])
    np.testing.assert_allclose(action, own, atol=1e-4)
    assert ((labels >= 0) | (labels == labels[0, PART])).all()


def test_speeds_differ_by_video_epoch_and_seed_and_are_as_wide_as_asked():
    counts = []
    for epoch in range(40):
        features, _ = played([60] * 8, epoch=epoch)
        counts += features[..., 0].sum(dim=1).tolist()
    logarithms = np.log(np.array(counts) / 60)
    assert -0.3 - 1 / 60 <= logarithms.min() < -0.25
    assert 0.25 < logarithms.max() <= 0.3 + 1 / 60
    assert abs(logarithms.mean()) < 0.03
    first, again, other = (played([60] * 8, replace(PLAIN, seed=seed))[0] for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(first[0], first[1])


@pytest.mark.parametrize("cut", [0, 1, 3, 5])
def test_shares_of_ranks_are_rows_of_the_batch(cut):
    lengths = [40, 80, 120, 9, 100]
    features, labels = rows_of(lengths)
    whole, targets = change_speed(features, labels, slice(0, 5), PLAIN, 7, 32)
    before = features.clone(), labels.clone()
    for rows in (slice(0, cut), slice(cut, 5)):
        share, same = change_speed(features[rows], labels, rows, PLAIN, 7, 32)
        assert torch.equal(share, whole[rows])
        assert torch.equal(same, targets)
    assert torch.equal(features, before[0])  # what was read stays
    assert torch.equal(labels, before[1])


def test_a_glimpse_and_an_empty_window_stay_as_they_are():
    features, labels = rows_of([7, 8, 1])
    labels[2] = 0
    features[2] = 0
    changed, targets = change_speed(features, labels, slice(0, 3), PLAIN, 1, 0)
    for row in (0, 2):
        assert torch.equal(changed[row], features[row])
        assert torch.equal(targets[row], labels[row])


def test_steps_keep_the_part_that_they_are_of():
    features, labels = played([60])
    place, parts = features[0, :, 1], labels[0, :, PART]
    inside = labels[0, :, INSIDE] == 1
    far = inside & ((place - 31).abs() > 1)  # the parts meet at step 31
    assert torch.equal(parts[far], (place[far] > 31).float())
    assert set(labels[0, :, :KINDS][inside].flatten().tolist()) >= {0.0, 1.0}
