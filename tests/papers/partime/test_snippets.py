"""Streams of snippets, and the window that slides over them."""

import numpy as np
import pytest
import torch

from actionspan_papers.partime.classification_rows import (
    changed_share,
    split_videos,
    stream_of,
    windows,
)

LABELS = np.arange(20) % 3


@pytest.fixture
def snippets():
    """Five videos of 20 snippets; a feature is 100 · video + snippet."""
    return [
        ((100 * video + np.arange(20, dtype=np.float32))[:, None].repeat(2, axis=1), LABELS)
        for video in range(5)
    ]


def test_as_played_a_video_stays_together_and_in_order(snippets):
    x, y = stream_of(snippets, "played", 100, seed=1)
    first = x[:20, 0]
    assert torch.equal(torch.diff(first), torch.ones(19))
    assert torch.equal(y, x[:, 0].long() % 100 % 3)


def test_shuffled_has_the_same_snippets_in_another_order(snippets):
    played, _ = stream_of(snippets, "played", 100, seed=1)
    shuffled, labels = stream_of(snippets, "shuffled", 100, seed=1)
    assert sorted(shuffled[:, 0].tolist()) == sorted(played[:, 0].tolist())
    assert not torch.equal(shuffled, played)
    assert torch.equal(labels, shuffled[:, 0].long() % 100 % 3)


def test_a_short_stream_still_has_all_videos(snippets):
    x, _ = stream_of(snippets, "played", 25, seed=1)
    assert len(x) == 25
    assert {int(value) // 100 for value in x[:, 0]} == set(range(5))


def test_videos_that_rates_are_chosen_on_are_not_learned(snippets):
    kept, held = split_videos(snippets)
    first = {float(features[0, 0]) for features, _ in kept}
    assert first.isdisjoint({float(features[0, 0]) for features, _ in held})
    assert len(kept) + len(held) == 5


def test_a_window_changes_by_its_oldest_sample():
    x, y = torch.arange(10.0)[:, None], torch.arange(10)
    made = [sorted(labels.tolist()) for _, labels in windows(x, y, 4)]
    assert made == [list(range(first, first + 4)) for first in range(7)]
    samples = list(windows(x, y, 4))
    changed = [(a != b).sum().item() for (_, a), (_, b) in zip(samples, samples[1:], strict=False)]
    assert changed == [1] * 6


def test_a_window_of_one_is_the_stream():
    x, y = torch.arange(3.0)[:, None], torch.arange(3)
    assert [labels.tolist() for _, labels in windows(x, y, 1)] == [[0], [1], [2]]


@pytest.mark.parametrize(
    ("stages", "window", "share"), [(1, 64, 0), (2, 64, 1 / 32), (4, 16, 6 / 16), (4, 1, 1)]
)
def test_the_share_of_the_window_that_changes(stages, window, share):
    assert changed_share(stages, window) == share
