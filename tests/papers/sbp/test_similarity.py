"""Linear CKA and the cosine of neighbours."""

import itertools

import pytest
import torch

from actionspan_papers.sbp.figure1 import neighbour_cosine
from actionspan_papers.sbp.figure4 import linear_cka


def features(examples, width, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(examples, width, generator=generator, dtype=torch.float64)


def test_hsic_is_that_of_its_definition():
    # Song et al.: sums over distinct i, j, q, r of one[i, j] (other[i, j] + other[q, r] - 2
    # other[i, q]), here for products of six examples by brute force
    one, other = features(6, 3, 1), features(6, 2, 2)

    def hsic(a, b):
        k, m = a @ a.T, b @ b.T
        terms = [
            k[i, j] * (m[i, j] + m[q, r] - 2 * m[i, q])
            for i, j, q, r in itertools.permutations(range(6), 4)
        ]
        return sum(terms) / len(terms)

    expected = hsic(one, other) / (hsic(one, one) * hsic(other, other)) ** 0.5
    assert linear_cka(one, other) == pytest.approx(float(expected))
    with pytest.raises(ValueError, match="3 and 3 examples: the same number of both, at least 4"):
        linear_cka(one[:3], other[:3])


def test_neighbours_are_compared_frame_by_frame():
    frames = torch.tensor([[[1.0, 0], [2, 0], [0, 3]], [[1, 0], [-1, 0], [-1, 0]]])
    assert neighbour_cosine(frames) == pytest.approx((1 + 0 - 1 + 1) / 4)
    empty = torch.cat([frames, torch.zeros(1, 3, 2)])
    assert neighbour_cosine(empty) == pytest.approx(neighbour_cosine(frames))
