"""Streams of snippets, and the window that slides over them."""

import numpy as np
import pytest
import torch

from actionspan_papers.partime import classification as rows
from actionspan_papers.partime.classification import stream_of

LABELS = np.arange(20) % 3
# five videos of 20 snippets; a feature is 100 · video + snippet
SNIPPETS = [
    ((100 * video + np.arange(20, dtype=np.float32))[:, None].repeat(2, axis=1), LABELS)
    for video in range(5)
]


def test_shuffled_has_the_snippets_of_a_stream_as_played_in_another_order():
    x, y = stream_of(SNIPPETS, "played", 100, seed=1)
    assert torch.equal(torch.diff(x[:20, 0]), torch.ones(19))  # a video stays together
    shuffled, labels = stream_of(SNIPPETS, "shuffled", 100, seed=1)
    assert sorted(shuffled[:, 0].tolist()) == sorted(x[:, 0].tolist())
    assert not torch.equal(shuffled, x)
    for features, own in ((x, y), (shuffled, labels)):
        assert torch.equal(own, features[:, 0].long() % 100 % 3)


def test_a_short_stream_has_all_videos_and_rates_are_chosen_on_others():
    x, _ = stream_of(SNIPPETS, "played", 25, seed=1)
    assert len(x) == 25
    assert {int(value) // 100 for value in x[:, 0]} == set(range(5))
    kept, held = rows.split_videos(SNIPPETS)
    first, other = ({float(features[0, 0]) for features, _ in part} for part in (kept, held))
    assert (first & other, len(kept) + len(held)) == (set(), 5)


@pytest.mark.parametrize(("size", "samples"), [(1, 3), (4, 10)])
def test_a_window_changes_by_its_oldest_sample(size, samples):
    """A window of one is the stream."""
    x, y = torch.arange(float(samples))[:, None], torch.arange(samples)
    made = [labels for _, labels in rows.windows(x, y, size)]
    expected = [list(range(first, first + size)) for first in range(samples - size + 1)]
    assert [sorted(labels.tolist()) for labels in made] == expected
    changed = [(a != b).sum().item() for a, b in zip(made, made[1:], strict=False)]
    assert changed == [1] * (samples - size)


def test_the_share_of_the_window_that_changes():
    sizes = ((1, 64), (2, 64), (4, 16), (4, 1))
    assert [rows.changed_share(*size) for size in sizes] == [0, 1 / 32, 6 / 16, 1]
