"""Footage that videos share, against what was put there and an exhaustive search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.features import footage
from actionspan.features.footage import shared_footage
from actionspan.features.store import UNSHARED


def test_clips_that_videos_share_are_found():
    random = np.random.default_rng(0)
    clips = random.normal(size=(6, 32))  # of one another their cosines are far below 0.9
    shown = [[0, 1, 2], [3, 1], [2, 4, 1], [5]]
    videos = [
        (np.repeat(clips[order], 7, axis=0) + random.normal(scale=0.05, size=(7 * len(order), 32)))
        for order in shown
    ]
    found = shared_footage([video.astype(np.float32) for video in videos], 0.9)
    numbers = {}
    for order, each in zip(shown, found, strict=True):
        for place, clip in enumerate(order):
            (number,) = set(each[7 * place : 7 * place + 7].tolist())
            assert (number == UNSHARED) == (clip not in (1, 2))
            assert numbers.setdefault(clip, number) == number
    assert numbers[1] != numbers[2]


def test_a_clip_that_moves_is_one_footage():
    """No two of its steps are alike, but the next step is the next step of the twin."""
    random = np.random.default_rng(3)
    clip, others = random.normal(size=(6, 32)), random.normal(size=(3, 4, 32))
    videos = [np.concatenate([other[:2], clip, other[2:]]) for other in others]
    found = shared_footage([video.astype(np.float32) for video in videos], 0.9)
    number = found[0][2]
    assert number != UNSHARED
    for each in found:
        assert each.tolist() == [UNSHARED] * 2 + [number] * 6 + [UNSHARED] * 2


@given(st.integers(0, 2**31), st.lists(st.integers(1, 6), min_size=1, max_size=5), st.data())
def test_what_has_a_twin_is_shared_with_it(seed, lengths, data):
    """Of every step with a twin in another video, the nearest before or after has its number."""
    similarity = data.draw(st.sampled_from([0.0, 0.5, 0.9]))
    random = np.random.default_rng(seed)
    videos = [random.integers(-1, 2, size=(length, 3)).astype(np.float32) for length in lengths]
    found = np.concatenate(shared_footage(videos, similarity))
    rows = np.concatenate(videos)
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    video = np.repeat(np.arange(len(lengths)), lengths)
    cosine = np.where(video[:, None] == video, -1, rows @ rows.T)
    for step, number in enumerate(found):
        if abs(cosine[step] - similarity).min() < 1e-6:
            continue
        if cosine[step].max() > similarity:
            assert number != UNSHARED
            assert (found[cosine[step] > similarity] == number).any()
    for number in set(found.tolist()) - {UNSHARED}:
        assert len(set(video[found == number])) > 1


def test_in_blocks_it_finds_the_same(monkeypatch):
    random = np.random.default_rng(2)
    videos = [random.normal(size=(length, 2)).astype(np.float32) for length in (9, 1, 14, 5)]
    whole = shared_footage(videos, 0.95)
    monkeypatch.setattr(footage, "_BLOCK", 4)
    for one, two in zip(whole, shared_footage(videos, 0.95), strict=True):
        np.testing.assert_array_equal(one, two)
    assert any((each != UNSHARED).any() for each in whole)


def test_too_many_steps_are_refused(monkeypatch):
    monkeypatch.setattr(footage, "MOST_STEPS", 5)
    with pytest.raises(ValueError, match="6 steps are too many to compare: 5 at most"):
        shared_footage([np.ones((3, 2), np.float32)] * 2, 0.9)
