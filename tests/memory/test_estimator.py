"""What the sampled gradient is on average: all samples of short videos, one by one."""

import itertools

import pytest
import torch

from actionspan.memory import estimator, sampling
from actionspan.memory.sampling import Rows, inclusion, kept_count, systematic
from memory.encoders import EXECUTIONS, WEIGHTS, Step, flat, row_gradients, seeded, tiny, video

each_weight = pytest.mark.parametrize("weight", WEIGHTS)


@pytest.fixture
def mean_gradients(monkeypatch):
    """The mean gradient over outcomes, pairs of a probability and the rows drawn."""

    def mean(frames, outcomes, **how):
        total = 0
        for probability, rows in outcomes:
            monkeypatch.setattr(estimator, "sample_rows", lambda *_, rows=rows, **__: rows)
            total = total + probability * flat(Step(tiny(), frames, **how).gradients)
        return total

    return mean


def chunk_sizes(order, kept):
    """The chunks of rows in an order, and the size of each row's own."""
    edges = [len(order) * i // kept for i in range(kept + 1)]
    chunks = [order[first:last] for first, last in itertools.pairwise(edges)]
    return chunks, {row: float(len(chunk)) for chunk in chunks for row in chunk}


def samples(order, kept):
    """Yield all rows that one random place in each chunk gives, with their probability."""
    chunks, sizes = chunk_sizes(order, kept)
    choices = list(itertools.product(*chunks))
    for choice in choices:
        rows = sorted(choice)
        weights = torch.tensor([sizes[row] for row in rows], dtype=torch.float64)
        yield 1 / len(choices), Rows(torch.tensor(rows), weights)


def expected_mean(weight, rows, probabilities, kept):
    """The means that the definitions of the weights give, by each row's gradient (T, P)."""
    return {
        "paper": (probabilities[:, None] * rows).sum(0),
        "even": kept / len(rows) * rows.sum(0),
        "unbiased": rows.sum(0),
    }[weight]


def probabilities_in(order, kept):
    _, sizes = chunk_sizes(order, kept)
    return torch.tensor([1 / sizes[t] for t in range(len(order))], dtype=torch.float64)


def assert_same(found, expected):
    assert float((found - expected).abs().max() / expected.abs().max()) < 1e-12


@pytest.mark.parametrize("execution", EXECUTIONS)
@each_weight
@pytest.mark.parametrize(("count", "kept"), [(6, 3), (6, 2), (7, 4), (7, 3), (5, 2), (4, 1)])
def test_the_mean_over_all_samples(mean_gradients, count, kept, weight, execution):
    frames, order = video(count), list(range(count))
    rows, _ = row_gradients(tiny(), frames)
    how = {"keep_ratio": kept / count, "gradient_weight": weight, "execution": execution}
    found = mean_gradients(frames, samples(order, kept), piece=2, **how)
    assert_same(found, expected_mean(weight, rows, probabilities_in(order, kept), kept))
    even = kept / count * rows.sum(0)
    if weight == "paper" and count % kept:  # which is why there are weights
        assert float((found - even).norm() / even.norm()) > 0.01
    elif weight == "paper":
        assert_same(found, even)


@pytest.mark.parametrize("sampler", ["diverse_feature", "diverse_gradient"])
@each_weight
def test_the_mean_over_all_samples_of_sorted_rows(mean_gradients, monkeypatch, sampler, weight):
    frames, kept = video(7), 3
    rows, signal = row_gradients(tiny(), frames)
    by = tiny()(frames) if sampler == "diverse_feature" else signal
    order = by.detach().norm(dim=1).argsort().tolist()
    outcomes = list(samples(order, kept))
    drawn = {tuple(each.rows.tolist()): each.weights for _, each in outcomes}
    how = {"keep_ratio": kept / 7, "sampler": sampler, "gradient_weight": weight}

    def watched(*arguments, **named):
        found = sampling.sample_rows(*arguments, **named)
        assert torch.equal(drawn[tuple(found.rows.tolist())], found.weights)
        return found

    monkeypatch.setattr(estimator, "sample_rows", watched)
    for seed in range(10):
        Step(tiny(), frames, generator=seeded(seed), **how)
    found = mean_gradients(frames, outcomes, **how)
    assert_same(found, expected_mean(weight, rows, probabilities_in(order, kept), kept))


@each_weight
def test_the_mean_over_all_starts_of_importance(mean_gradients, weight):
    frames, kept = video(7), 3
    rows, signal = row_gradients(tiny(), frames)
    probabilities = inclusion(signal.norm(dim=1), kept)
    others = probabilities[probabilities < 1]
    # The rows change where a point passes the end of a row.
    cuts = sorted({0.0, 1.0, *(others.cumsum(0) % 1).tolist()})
    outcomes = []
    for low, high in itertools.pairwise(cuts):
        drawn = systematic(probabilities, kept, (low + high) / 2)
        outcomes.append((high - low, Rows(drawn, 1 / probabilities[drawn])))
    how = {"keep_ratio": kept / 7, "sampler": "importance", "gradient_weight": weight}
    found = mean_gradients(frames, outcomes, **how)
    assert_same(found, expected_mean(weight, rows, probabilities, kept))


def test_importance_looks_at_the_gradients_of_the_features(monkeypatch):
    frames, seen = video(9), []
    _, signal = row_gradients(tiny(), frames)

    def watched(*arguments, magnitudes, **named):
        seen.append(magnitudes)
        return sampling.sample_rows(*arguments, magnitudes=magnitudes, **named)

    monkeypatch.setattr(estimator, "sample_rows", watched)
    Step(tiny(), frames, sampler="importance", keep_ratio=0.5)
    torch.testing.assert_close(seen[0], signal.norm(dim=1), rtol=1e-12, atol=0)


@pytest.mark.parametrize("execution", EXECUTIONS)
@each_weight
def test_the_mean_of_parts_with_ratios_of_their_own(monkeypatch, weight, execution):
    """Parts 2 and 3 keep 4 of 7 rows, part 1 keeps 2 of these: all 12 × 4 samples."""
    frames = video(7)
    rows, _ = row_gradients(tiny(), frames)
    first = tiny()[0].weight.numel() + tiny()[0].bias.numel()
    every = Rows(torch.arange(4), torch.ones(4, dtype=torch.float64))
    how = {"gradient_weight": weight, "execution": execution, "piece": 3}
    total = 0
    for top_part, top in samples(list(range(7)), 4):
        for part, below in samples(list(range(4)), 2):
            # of 7 rows the top, of these 4 all for part 2 and then 2 for part 1
            drawn = iter([top, every, below])
            monkeypatch.setattr(estimator, "sample_rows", lambda *_, d=drawn, **__: next(d))
            step = Step(tiny(), frames, keep_ratio=[2 / 7, 4 / 7, 4 / 7], **how)
            total = total + top_part * part * flat(step.gradients)
    # 4 of 7 in chunks of 1, 2, 2, 2, and 2 of 4 in chunks of 2.
    top_of = torch.tensor([1.0] + [0.5] * 6, dtype=torch.float64)[:, None]
    full = rows.sum(0)
    above, below = {
        "paper": ((top_of * rows).sum(0), (top_of * 0.5 * rows).sum(0)),
        "even": (4 / 7 * full, 2 / 7 * full),
        "unbiased": (full, full),
    }[weight]
    assert_same(total, torch.cat([below[:first], above[first:]]))


@pytest.mark.parametrize("sampler", ["uniform_random", "fixed", "checkerboard"])
def test_rows_of_a_part_are_among_those_of_the_part_after_it(sampler):
    how = {"sampler": sampler, "gradient_weight": "even"}
    drawn = estimator.Estimator(ratios=(0.1, 0.3, 0.3, 0.8), **how)
    for count in (1, 3, 20, 33):
        levels = drawn.draw(count, seeded(count))
        sizes = [len(level.rows) for level in levels]
        assert sizes == [kept_count(count, ratio) for ratio in drawn.ratios]
        for below, above in itertools.pairwise(levels):
            assert set(below.rows.tolist()) <= set(above.rows.tolist())
    # below the last part they are drawn at random whatever the sampler
    drawn = estimator.Estimator(ratios=(0.2, 0.8), **how)
    assert len({tuple(drawn.draw(20, seeded(s))[0].rows.tolist()) for s in range(5)}) > 1


@pytest.mark.parametrize("sampler", ["importance", "diverse_gradient"])
def test_rows_drawn_in_backward_follow_from_the_generator(sampler):
    how = {"sampler": sampler, "keep_ratio": 1 / 3}
    found = [flat(Step(tiny(), video(9), generator=seeded(s), **how).gradients) for s in range(6)]
    assert len({tuple(each.tolist()) for each in found}) > 1
    again = flat(Step(tiny(), video(9), generator=seeded(0), **how).gradients)
    assert torch.equal(again, found[0])
