import numpy as np
import pytest
import torch

from actionspan_papers.sbp.draws import SAMPLERS, draw_weights, sampled

COUNT = 12


@pytest.fixture(scope="module")
def gradients():
    generator = np.random.default_rng(7)
    lengths = np.linspace(0.1, 3, COUNT)[:, None]
    return lengths * generator.normal(size=(COUNT, 50)) + 0.3


def weights(sampler, gradients, ratio=0.25, draws=3000):
    magnitudes = torch.from_numpy(np.linalg.norm(gradients, axis=1))
    return draw_weights(sampler, COUNT, ratio, draws, magnitudes, seed=5)


@pytest.mark.parametrize("sampler", [name for name in SAMPLERS if name != "fixed"])
def test_the_mean_of_the_draws_is_the_full_gradient(sampler, gradients):
    drawn = weights(sampler, gradients)
    assert ((drawn > 0).sum(axis=1) == 3).all()
    mean, full = (drawn @ gradients).mean(axis=0), gradients.sum(axis=0)
    assert np.linalg.norm(mean - full) < 0.1 * np.linalg.norm(full)


def test_fixed_rows_are_the_same_every_time(gradients):
    drawn = weights("fixed", gradients)
    assert drawn.shape == (1, COUNT)
    np.testing.assert_array_equal(drawn, weights("fixed", gradients))


def test_the_error_of_chunks_is_that_of_the_formula(gradients):
    gram = gradients @ gradients.T
    _, errors = sampled(gram, weights("uniform_random", gradients))
    assert errors.mean() == pytest.approx(expected_error(gram, np.arange(COUNT) // 4), rel=0.05)


def expected_error(gram, chunks):
    """One row of m, drawn with probability 1/m, weighs m: a chunk adds m·Σ‖g‖² − ‖Σg‖²."""
    total = 0.0
    for chunk in np.unique(chunks):
        own = gram[np.ix_(chunks == chunk, chunks == chunk)]
        total += len(own) * np.trace(own) - own.sum()
    return total / gram.sum()


def test_the_same_seed_draws_the_same(gradients):
    first, again = (weights("importance", gradients, draws=5) for _ in range(2))
    np.testing.assert_array_equal(first, again)
