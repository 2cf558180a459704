"""What the sampled gradient is on average: all samples of short videos, one by one."""

import itertools

import pytest
import torch

from actionspan.memory import estimator, sampling
from actionspan.memory.sampling import Rows, inclusion, kept_count, sample_rows, systematic
from memory.encoders import Step, flat, row_gradients, seeded, tiny, video

WEIGHTS = ("paper", "even", "unbiased")


def chunks_of(order, kept):
    return [order[len(order) * i // kept : len(order) * (i + 1) // kept] for i in range(kept)]


def mean_gradients(monkeypatch, frames, outcomes, **how):
    """Return the mean gradient over outcomes, pairs of a probability and the rows drawn."""
    total = 0
    for probability, rows in outcomes:
        monkeypatch.setattr(estimator, "sample_rows", lambda *_, rows=rows, **__: rows)
        total = total + probability * flat(Step(tiny(), frames, **how).gradients)
    return total


def samples(order, kept):
    """Yield all rows that one random place in each chunk gives, with their probability."""
    chunks = chunks_of(order, kept)
    weight = {row: float(len(chunk)) for chunk in chunks for row in chunk}
    choices = list(itertools.product(*chunks))
    for choice in choices:
        rows = sorted(choice)
        weights = torch.tensor([weight[row] for row in rows], dtype=torch.float64)
        yield 1 / len(choices), Rows(torch.tensor(rows), weights)


def expected_means(rows, probabilities, kept):
    count = len(rows)
    return {
        "paper": (probabilities[:, None] * rows).sum(0),
        "even": kept / count * rows.sum(0),
        "unbiased": rows.sum(0),
    }


def assert_same(found, expected):
    assert float((found - expected).abs().max() / expected.abs().max()) < 1e-12


@pytest.mark.parametrize("execution", ["split", "replay"])
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize(("count", "kept"), [(6, 3), (6, 2), (7, 4), (7, 3), (5, 2), (4, 1)])
def test_the_mean_over_all_samples(monkeypatch, count, kept, weight, execution):
    frames, order = video(count), list(range(count))
    rows, _ = row_gradients(tiny(), frames)
    sizes = {row: len(chunk) for chunk in chunks_of(order, kept) for row in chunk}
    probabilities = torch.tensor([1 / sizes[t] for t in order], dtype=torch.float64)
    how = {"keep_ratio": kept / count, "gradient_weight": weight, "execution": execution}
    found = mean_gradients(monkeypatch, frames, samples(order, kept), piece=2, **how)
    expected = expected_means(rows, probabilities, kept)
    assert_same(found, expected[weight])
    if count % kept == 0:
        assert_same(
            found, kept / count * rows.sum(0) * (count / kept if weight == "unbiased" else 1)
        )
    elif weight == "paper":  # which is why there are weights
        assert float((found - expected["even"]).norm() / expected["even"].norm()) > 0.01


def test_what_is_enumerated_is_what_the_sampler_draws():
    generator = seeded()
    for count, kept in ((6, 3), (7, 4), (7, 3)):
        all_of_them = {
            tuple(rows.rows.tolist()): rows.weights for _, rows in samples(range(count), kept)
        }
        seen = set()
        for _ in range(600):
            rows, weights = sample_rows("uniform_random", count, kept / count, generator)
            seen.add(tuple(rows.tolist()))
            assert torch.equal(all_of_them[tuple(rows.tolist())], weights)
        assert seen == set(all_of_them)


@pytest.mark.parametrize("sampler", ["diverse_feature", "diverse_gradient"])
@pytest.mark.parametrize("weight", WEIGHTS)
def test_the_mean_over_all_samples_of_sorted_rows(monkeypatch, sampler, weight):
    frames, kept = video(7), 3
    rows, signal = row_gradients(tiny(), frames)
    by = tiny()(frames) if sampler == "diverse_feature" else signal
    order = by.detach().norm(dim=1).argsort().tolist()
    outcomes = list(samples(order, kept))
    drawn = {tuple(each.rows.tolist()): each.weights for _, each in outcomes}
    real = sampling.sample_rows
    how = {"keep_ratio": kept / 7, "sampler": sampler, "gradient_weight": weight}

    def watched(*arguments, **named):
        found = real(*arguments, **named)
        assert torch.equal(drawn[tuple(found.rows.tolist())], found.weights)
        return found

    for seed in range(10):
        monkeypatch.setattr(estimator, "sample_rows", watched)
        Step(tiny(), frames, generator=seeded(seed), **how)
    sizes = {row: len(chunk) for chunk in chunks_of(order, kept) for row in chunk}
    probabilities = torch.tensor([1 / sizes[t] for t in range(7)], dtype=torch.float64)
    found = mean_gradients(monkeypatch, frames, outcomes, **how)
    assert_same(found, expected_means(rows, probabilities, kept)[weight])


@pytest.mark.parametrize("weight", WEIGHTS)
def test_the_mean_over_all_starts_of_importance(monkeypatch, weight):
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
    found = mean_gradients(monkeypatch, frames, outcomes, **how)
    assert_same(found, expected_means(rows, probabilities, kept)[weight])


def test_importance_looks_at_the_gradients_of_the_features(monkeypatch):
    frames = video(9)
    _, signal = row_gradients(tiny(), frames)
    seen = []
    real = sampling.sample_rows

    def watched(*arguments, magnitudes, **named):
        seen.append(magnitudes)
        return real(*arguments, magnitudes=magnitudes, **named)

    monkeypatch.setattr(estimator, "sample_rows", watched)
    Step(tiny(), frames, sampler="importance", keep_ratio=0.5)
    torch.testing.assert_close(seen[0], signal.norm(dim=1), rtol=1e-12, atol=0)


@pytest.mark.parametrize("execution", ["split", "replay"])
@pytest.mark.parametrize("weight", WEIGHTS)
def test_the_mean_of_parts_with_ratios_of_their_own(monkeypatch, weight, execution):
    """Parts 2 and 3 keep 4 of 7 rows, part 1 keeps 2 of these: all 12 × 4 samples."""
    frames = video(7)
    rows, _ = row_gradients(tiny(), frames)
    first = tiny()[0].weight.numel() + tiny()[0].bias.numel()
    total = 0
    for top_part, top in samples(list(range(7)), 4):
        for part, below in samples(list(range(4)), 2):
            drawn = {7: top, 4: below}
            monkeypatch.setattr(
                estimator,
                "sample_rows",
                lambda _, count, *__, drawn=drawn, **___: drawn.get(count, EVERY(count)),
            )
            how = {"gradient_weight": weight, "execution": execution, "piece": 3}
            step = Step(tiny(), frames, keep_ratio=[2 / 7, 4 / 7, 4 / 7], **how)
            total = total + top_part * part * flat(step.gradients)
    if weight != "paper":
        scales = {"even": (2 / 7, 4 / 7), "unbiased": (1, 1)}[weight]
        full = rows.sum(0)
        assert_same(total, torch.cat([scales[0] * full[:first], scales[1] * full[first:]]))
    else:
        # 4 of 7 in chunks of 1, 2, 2, 2, and 2 of 4 in chunks of 2.
        top_of = torch.tensor([1.0] + [0.5] * 6, dtype=torch.float64)[:, None]
        expected = [(top_of * 0.5 * rows).sum(0)[:first], (top_of * rows).sum(0)[first:]]
        assert_same(total, torch.cat(expected))


def EVERY(count):  # noqa: N802
    return Rows(torch.arange(count), torch.ones(count, dtype=torch.float64))


def test_rows_of_a_part_are_among_those_of_the_part_after_it():
    for sampler in ("uniform_random", "fixed", "checkerboard"):
        drawn = estimator.Estimator(
            ratios=(0.1, 0.3, 0.3, 0.8), sampler=sampler, gradient_weight="even"
        )
        for count in (1, 3, 20, 33):
            levels = drawn.draw(count, seeded(count))
            sizes = [len(level.rows) for level in levels]
            assert sizes == [kept_count(count, ratio) for ratio in drawn.ratios]
            for below, above in itertools.pairwise(levels):
                assert set(below.rows.tolist()) <= set(above.rows.tolist())


def test_rows_below_are_drawn_at_random_whatever_the_sampler():
    drawn = estimator.Estimator(ratios=(0.2, 0.8), sampler="fixed", gradient_weight="even")
    below = {tuple(drawn.draw(20, seeded(seed))[0].rows.tolist()) for seed in range(5)}
    assert len(below) > 1


@pytest.mark.parametrize("sampler", ["importance", "diverse_gradient"])
def test_rows_drawn_in_backward_follow_from_the_generator(sampler):
    how = {"sampler": sampler, "keep_ratio": 1 / 3}
    found = [flat(Step(tiny(), video(9), generator=seeded(s), **how).gradients) for s in range(6)]
    assert len({tuple(each.tolist()) for each in found}) > 1
    again = flat(Step(tiny(), video(9), generator=seeded(0), **how).gradients)
    assert torch.equal(again, found[0])
