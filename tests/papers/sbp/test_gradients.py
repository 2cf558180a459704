"""Gradients of encoders on snippets: draws, products, the table of a small store, its verdicts."""

import numpy as np
import pytest
import torch
from torch import nn

from actionspan_papers.experiments import frame_of
from actionspan_papers.sbp.draws import (
    SAMPLERS,
    apart,
    block_grams,
    cosines,
    draw_weights,
    products,
    sampled,
)
from actionspan_papers.sbp.layer_claims import gradient_findings
from actionspan_papers.sbp.settings import (
    DEPTH,
    GRADIENT_COLUMNS,
    QUANTITIES,
    SAMPLING,
)
from actionspan_papers.sbp.trainings import measure
from papers.sbp.stores import make_store
from papers.steps import NOT, REPRODUCED, UNKNOWN, run_command, step_rows, verdicts

TINY = ["--videos", "2", "--input-size", "32", "--draws", "20", "--components", "4"]
TINY += ["--epochs", "1", "--ratios", "1.0", "0.5"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gradients")
    store, annotations, _ = make_store(folder, training=2, validation=0)
    words = ["--snippets", store, "--annotations", annotations, *TINY]
    return folder, step_rows(folder, "sbp", "gradients", *words, figure=True, run=run_command)


def test_all_snippets_give_the_full_gradient_half_of_them_less_and_blocks_have_cosines(table):
    folder, rows = table
    assert tuple(rows[0]) == GRADIENT_COLUMNS
    full, half = ([row for row in rows if row["keep_ratio"] == ratio] for ratio in ("1", "0.5"))
    assert len(full) == 2 * 5
    for row in full:
        assert float(row["cosine"]) == pytest.approx(1, abs=1e-6)
        assert float(row["error"]) == pytest.approx(0, abs=1e-6)
        assert row["kept"] == row["snippets"]
    assert all(float(row["error"]) > 0 for row in half)
    assert {int(row["kept"]) for row in half} == {(int(row["snippets"]) + 1) // 2 for row in half}
    depth = [row for row in rows if row["part"] == DEPTH]
    assert len(depth) == 2 * 18 * len(QUANTITIES)
    assert {row["block"] for row in depth} >= {"stem", "1", "16", "head"}
    known = np.array([float(row["neighbours"]) for row in depth])
    assert (np.abs(known) <= 1 + 1e-6).all()
    assert "| importance |" in (folder / "gradients.md").read_text()
    assert "<svg" in (folder / "gradients.svg").read_text()


def rows_of(importance, uniform, *, bottom=0.8, top=0.3):
    """A table of three videos; cosines by ratio."""
    rows = []
    for video in range(3):
        for ratio, cosine in uniform.items():
            for sampler in ("uniform_random", "diverse_feature", "diverse_gradient", "importance"):
                value = importance[ratio] if sampler == "importance" else cosine
                rows.append(row(SAMPLING, video, sampler=sampler, keep_ratio=ratio, cosine=value))
        for quantity in QUANTITIES:
            for place, block in enumerate(("stem", "1", "head")):
                value = bottom + (top - bottom) * place / 2
                rows.append(row(DEPTH, video, quantity=quantity, block=block, neighbours=value))
    return rows


def row(part, video, **cells):
    own = {
        name: f"{v + 0.01 * video:.6g}" if isinstance(v, float) else v for name, v in cells.items()
    }
    return {**dict.fromkeys(GRADIENT_COLUMNS, ""), "part": part, "video": str(video), **own}


def findings(rows):
    return gradient_findings(frame_of(rows), 0.95)


def test_importance_sampling_is_judged_by_the_paper_s_samplers():
    uniform = {"0.5": 0.8, "0.25": 0.57}
    better = findings(rows_of({"0.5": 0.97, "0.25": 0.8}, uniform))
    for text in ("nearer to the full gradient", "of twice the snippets", "samplers are alike"):
        assert verdicts(better, text) == {REPRODUCED}
    assert verdicts(better, "gradients of parameters") == {REPRODUCED}
    worse = findings(rows_of({"0.5": 0.7, "0.25": 0.6}, uniform, top=0.9))
    for text in ("of twice the snippets", "gradients of activations"):
        assert verdicts(worse, text) == {NOT}


def test_one_video_leaves_claims_open():
    rows = [r for r in rows_of({"0.5": 0.9}, {"0.5": 0.8}) if r["video"] == "0"]
    assert verdicts(findings(rows)) == {UNKNOWN}


COUNT = 12


@pytest.fixture(scope="module")
def gradients():
    generator = np.random.default_rng(7)
    lengths = np.linspace(0.1, 3, COUNT)[:, None]
    return lengths * generator.normal(size=(COUNT, 50)) + 0.3


def weights(sampler, gradients, draws=3000):
    magnitudes = torch.from_numpy(np.linalg.norm(gradients, axis=1))
    return draw_weights(sampler, COUNT, 0.25, draws, magnitudes, seed=5)


@pytest.mark.parametrize("sampler", [name for name in SAMPLERS if name != "fixed"])
def test_the_mean_of_the_draws_is_the_full_gradient(sampler, gradients):
    drawn = weights(sampler, gradients)
    assert ((drawn > 0).sum(axis=1) == 3).all()
    mean, full = (drawn @ gradients).mean(axis=0), gradients.sum(axis=0)
    assert np.linalg.norm(mean - full) < 0.1 * np.linalg.norm(full)


def test_fixed_rows_and_the_same_seed_are_the_same_every_time(gradients):
    assert weights("fixed", gradients).shape == (1, COUNT)
    for sampler in ("fixed", "importance"):
        first, again = (weights(sampler, gradients, draws=5) for _ in range(2))
        np.testing.assert_array_equal(first, again)


def chain():
    torch.manual_seed(2)
    convolution = nn.Conv2d(2, 4, 3, stride=2, bias=False)
    return [
        nn.Sequential(convolution, nn.BatchNorm2d(4).eval(), nn.ReLU()),
        nn.Sequential(nn.ReLU(), nn.Flatten()),  # a block without parameters
        nn.Linear(36, 3),
    ]


def by_definition(blocks, inputs, gradients):
    """(T, P) each snippet's gradient of all parameters, by one backward pass each."""
    parameters = [each for block in blocks for each in block.parameters()]
    rows = []
    for row in range(len(inputs)):
        features = nn.Sequential(*blocks)(inputs)
        found = torch.autograd.grad((features[row] * gradients[row]).sum(), parameters)
        rows.append(torch.cat([each.flatten() for each in found]))
    return torch.stack(rows)


def test_products_are_those_of_the_whole_gradients():
    blocks, inputs, gradients = chain(), torch.randn(5, 2, 8, 8), torch.randn(5, 3)
    grams = block_grams(blocks, inputs, gradients)
    whole = by_definition(blocks, inputs, gradients).double()
    summed = sum(gram.parameter_gradients for gram in grams)
    np.testing.assert_allclose(summed, (whole @ whole.T).numpy(), rtol=1e-5, atol=1e-6)
    assert not grams[1].parameter_gradients.any()
    np.testing.assert_allclose(grams[2].activation_gradients, products(gradients))
    features = products(nn.Sequential(*blocks)(inputs))
    np.testing.assert_allclose(grams[2].activations, features, rtol=1e-5)
    # what goes into a block is what comes out of the one below
    below = blocks[0](inputs[:1]).detach().requires_grad_()
    (blocks[2](blocks[1](below)) * gradients[:1]).sum().backward()
    first = grams[0].activation_gradients.diagonal()[0]
    np.testing.assert_allclose(first, below.grad.square().sum().item(), rtol=1e-5)


def test_frozen_parameters_have_no_part_and_what_does_not_fit_is_named():
    blocks, inputs, gradients = chain(), torch.randn(3, 2, 8, 8), torch.randn(3, 3)
    blocks[0].requires_grad_(False)
    grams = block_grams(blocks, inputs, gradients)
    assert [gram.parameter_gradients.any() for gram in (grams[0], grams[2])] == [False, True]
    with pytest.raises(ValueError, match="0 blocks: 1 at least"):
        block_grams([], inputs, gradients)
    with pytest.raises(ValueError, match=r"gradients \(3, 4\) of features \(3, 3\)"):
        block_grams(blocks, inputs, torch.zeros(3, 4))


def test_a_sum_of_some_gradients_is_compared_with_the_sum_of_all():
    gradients = np.random.default_rng(4).normal(size=(6, 40))
    weights = np.array([[2.0, 0, 0, 3, 0, 0], [1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0]])
    cosine, error = sampled(gradients @ gradients.T, weights)
    full = gradients.sum(axis=0)
    one = 2 * gradients[0] + 3 * gradients[3]
    first = one @ full / np.linalg.norm(one) / np.linalg.norm(full)
    assert cosine == pytest.approx([first, 1, np.nan], nan_ok=True)
    assert error[[0, 2]] == pytest.approx([((one - full) ** 2).sum() / (full**2).sum(), 1])
    assert error[1] == pytest.approx(0, abs=1e-12)


def test_cosines_and_pairs():
    found = cosines(np.array([[4.0, 2, 0], [2, 1, 0], [0, 0, 0]]))
    assert found[0, 1] == pytest.approx(1)
    assert np.isnan(found[2]).all()
    neighbours, distant = apart(6)
    assert np.argwhere(neighbours).tolist() == [[t + 1, t] for t in range(5)]
    assert {t - s for t, s in np.argwhere(distant)} == {3, 4, 5}
    # of very few snippets neighbours are not distant
    assert not (apart(2)[1]).any()
    assert not (apart(1)[0]).any()


def mean_score(values, counts):
    return float((values * counts).sum() / counts.sum())


def first_video(values, counts):
    return values[0] if counts[0] else np.nan


def scored(*, shift, noise=0.0, score=mean_score):
    """Return the measures of two ways of training on three seeds and 12 videos."""
    generator = np.random.default_rng(1)
    base = generator.uniform(0.2, 0.6, (3, 12))
    better = base + shift + noise * generator.normal(size=base.shape)
    ways = {"worse": list(base), "better": list(better)}
    found = measure(ways, score, videos=12, resamples=200)
    return found["worse"], found["better"]


def test_what_is_better_on_every_video_and_seed_is_surely_so():
    worse, better = scored(shift=0.05)
    # the videos differ by far more than the two ways, but they are the same videos
    assert better.drawn.std() > 1
    difference = better.above(worse, 0.95)
    assert (difference.value, difference.low, difference.high) == pytest.approx((5, 5, 5))
    # a measure that some resample lacks still has an interval
    worse, better = scored(shift=0.05, score=first_video)
    assert better.above(worse, 0.95).low == pytest.approx(5)
    # below the noise a difference is open, and an estimate is a percentage
    worse, better = scored(shift=0.001, noise=0.1)
    difference = better.above(worse, 0.95)
    assert difference.low < 0 < difference.high
    estimate = worse.estimate(0.95)
    assert estimate.value == pytest.approx(worse.seeds.mean())
    assert 0 <= estimate.low < estimate.value < estimate.high <= 100
