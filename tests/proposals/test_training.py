"""PEM: the network, balanced samples, the loss, poor data; killed it ends with the same bits."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from actionspan.annotations.tables import read_annotations, write_annotations
from actionspan.proposals import ProposalEvaluator
from actionspan.proposals import examples as sampling_module
from actionspan.proposals import training as module
from actionspan.proposals.candidates import write_candidates
from actionspan.proposals.evaluator import rank_all, rank_candidates, save_evaluator
from actionspan.proposals.examples import Examples, balanced_sample, best_overlap, sampling_rates
from actionspan.proposals.pgm import Candidates
from actionspan.proposals.settings import CandidateSettings, EvaluatorSettings
from actionspan.proposals.training import train_evaluator, train_pem, weighted_loss
from actionspan.storage import scratch as scratch_module
from actionspan.storage.model_files import read_model
from actionspan.storage.writing import read_tsv

QUICK = EvaluatorSettings(epochs=3, hidden=8)


def examples(targets, seed=0):
    """Candidates whose features are their target, and noise."""
    targets = np.asarray(targets, float)
    rng = np.random.default_rng(seed)
    features = rng.normal(0, 0.1, (len(targets), 32)).astype(np.float32)
    features[:, 0] += targets
    return Examples(features=features, rows=np.arange(len(targets)), targets=targets)


def classes(targets):
    """Return how many of them are high, middle and low."""
    return [
        int((targets > 0.6).sum()),
        int(((targets >= 0.2) & (targets <= 0.6)).sum()),
        int((targets < 0.2).sum()),
    ]


def test_the_network_is_two_layers_in_closed_form():
    evaluator = ProposalEvaluator()
    assert sum(parameter.numel() for parameter in evaluator.parameters()) == 32 * 256 + 256 + 257
    features = np.random.default_rng(0).random((7, 32))
    one, one_bias, two, two_bias = (
        parameter.detach().double().numpy() for parameter in evaluator.parameters()
    )
    hidden = np.maximum(features @ one.T + one_bias, 0)
    expected = 1 / (1 + np.exp(-(hidden @ two.T + two_bias)[:, 0]))
    np.testing.assert_allclose(evaluator.evaluate(features), expected, rtol=1e-5)


def test_the_low_threshold_is_a_fifth():
    """Typed 2.2 in a well-known implementation, every candidate counts as low."""
    targets = np.array([0.61, 0.6, 0.5, 0.2, 0.19, 0.0, 0.1, 0.15])
    rates = sampling_rates(targets, EvaluatorSettings())
    assert rates.tolist() == [1, 1 / 3, 1 / 3, 1 / 3, 0.5, 0.5, 0.5, 0.5]
    with pytest.raises(ValueError, match=r"low_threshold 2\.2"):
        EvaluatorSettings(low_threshold=2.2)
    with pytest.raises(ValueError, match=r"low_threshold 0\.2: .*at most"):
        EvaluatorSettings(high_threshold=0.1)


@pytest.mark.parametrize(
    ("counts", "ratios", "expected"),
    [
        ((30, 200, 5000), {}, [30, 30, 60]),  # one to one to two
        ((10, 4, 5), {}, [10, 4, 5]),  # fewer than asked: all of them
        ((0, 10, 100), {}, [0, 10, 20]),  # no high: middle ones stand for them
        ((0, 0, 50), {}, [0, 0, 50]),
        ((10, 100, 1000), {"middle_ratio": 2.5, "low_ratio": 4.0}, [10, 25, 40]),
        ((1, 10, 0), {"middle_ratio": 0.1}, [1, 1, 0]),  # less than half a candidate is one
    ],
)
def test_a_sample_has_the_ratios_asked_for_and_what_small_classes_have(counts, ratios, expected):
    targets = np.repeat([0.9, 0.4, 0.1], counts)
    settings = EvaluatorSettings(**ratios)
    sample = balanced_sample(targets, settings, np.random.default_rng(0))
    assert classes(targets[sample]) == expected


def sample_in_memory(targets, settings, generator):
    """Draw as before there were chunks and files: from lists of all members."""
    high, low = targets > settings.high_threshold, targets < settings.low_threshold
    counts = [int(mask.sum()) for mask in (high, ~(high | low), low)]
    unit, drawn = 0.0, []
    ratios = (1.0, settings.middle_ratio, settings.low_ratio)
    for mask, count, ratio in zip((high, ~(high | low), low), counts, ratios, strict=True):
        unit = unit or (count / ratio if count else 0.0)
        if count:
            rate = min(1.0, ratio * unit / count)
            members = generator.permutation(mask.nonzero()[0])
            drawn.append(members[: max(round(rate * count), 1)])
    return generator.permutation(np.concatenate(drawn)) if drawn else np.zeros(0)


@given(
    st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.4, 0.6, 0.7, 1.0]), max_size=80),
    st.integers(1, 90),
    st.booleans(),
)
def test_a_sample_drawn_in_chunks_and_files_is_that_of_memory(targets, chunk, files):
    targets, settings = np.array(targets, float), EvaluatorSettings(middle_ratio=0.7)
    generators = [np.random.default_rng(5) for _ in range(2)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling_module, "_CHUNK", chunk)
        patch.setattr(scratch_module, "_SMALL", 0 if files else 1 << 24)
        for _ in range(2):  # the random numbers go on in the same place
            sample = balanced_sample(targets, settings, generators[0])
            wanted = sample_in_memory(targets, settings, generators[1])
            assert sample.tolist() == wanted.tolist()


def test_weights_change_the_loss():
    """With a loss averaged before it is weighted, weights would do nothing."""
    prediction = torch.tensor([0.5, 0.5, 0.5, 0.5])
    target = torch.tensor([0.5, 1.0, 0.0, 0.3])
    each = torch.tensor([0.0, 0.125, 0.125, 0.02])  # half the squared error
    for values in ([1.0, 0, 0, 0], [0.0, 1, 0, 0], [1.0, 1, 1, 1], [0.25, 1, 0.5, 0]):
        weight = torch.tensor(values)
        expected = float((each * weight).sum() / weight.sum())
        assert float(weighted_loss(prediction, target, weight)) == pytest.approx(expected)
    assert float(weighted_loss(prediction, target, torch.zeros(4))) == 0.0


def test_validation_loss_is_that_of_balanced_classes():
    """An evaluator that always answers the same, against many low and few high candidates."""
    targets = np.concatenate([np.full(10, 1.0), np.full(1000, 0.0)])
    data = Examples(
        features=np.zeros((1010, 32), np.float32), rows=np.arange(1010), targets=targets
    )
    evaluator, log = train_evaluator(data, data, EvaluatorSettings(epochs=1))
    answer = float(evaluator.evaluate(np.zeros((1, 32)))[0])
    balanced = ((1 - answer) ** 2 / 2 * 10 + answer**2 / 2 * 20) / 30
    assert log[0]["validation_loss"] == pytest.approx(balanced, rel=1e-4)
    assert log[0]["sampled"] == 30


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    rng = np.random.default_rng(0)
    training = examples(rng.random(500))
    state = torch.random.get_rng_state()
    for name, count, seed in (("a", 1, 0), ("b", 2, 0), ("c", 1, 1)):
        torch.set_num_threads(count)
        evaluator, _ = train_evaluator(training, None, dataclasses.replace(QUICK, seed=seed))
        assert torch.get_num_threads() == count
        save_evaluator(tmp_path / f"{name}.pt", evaluator, "digest")
    assert (tmp_path / "a.pt").read_bytes() == (tmp_path / "b.pt").read_bytes()
    assert (tmp_path / "a.pt").read_bytes() != (tmp_path / "c.pt").read_bytes()
    assert torch.equal(state, torch.random.get_rng_state())


@pytest.mark.parametrize(
    "targets", [[], [0.0] * 20, [1.0] * 20, [0.4] * 20, [0.7], [0.0, 1.0]], ids=str
)
def test_poor_data_give_numbers(targets):
    data = examples(targets)
    for validation in (None, examples([]), data):
        evaluator, log = train_evaluator(data, validation, QUICK)
        assert all(torch.isfinite(weight).all() for weight in evaluator.parameters())
        assert all(math.isfinite(row["training_loss"]) for row in log)
        answer = evaluator.evaluate(np.random.default_rng(0).random((3, 32)))
        assert np.isfinite(answer).all()
        if not targets:
            assert answer.tolist() == [0.5] * 3
        elif validation is data:
            assert all(math.isfinite(row["validation_loss"]) for row in log)


def test_targets_are_the_best_tiou_with_any_instance():
    found = best_overlap([[0, 1], [0, 2], [8, 9]], [[0, 1], [1, 2], [0, 4]])
    assert found.tolist() == [1, 0.5, 0]
    assert best_overlap([[0, 1]], np.zeros((0, 2))).tolist() == [0]


def test_many_videos_are_ranked_on_one_thread_as_each_alone():
    evaluator, seen, rng = ProposalEvaluator(hidden=5), [], np.random.default_rng(0)
    evaluator.register_forward_pre_hook(
        lambda *_: seen.append((torch.get_num_threads(), torch.is_inference_mode_enabled()))
    )
    videos = [
        Candidates(
            segments=np.sort(rng.random((count, 2), dtype=np.float32), axis=1),
            scores=rng.random((count, 2), dtype=np.float32),
            features=rng.random((count, 32), dtype=np.float32),
        )
        for count in (3, 0, 40)
    ]
    torch.set_num_threads(2)
    ranked = rank_all([(video, 9.0) for video in videos], evaluator)
    for answer in (
        evaluator.evaluate(videos[2].features),
        evaluator.evaluate_candidates(videos[2]),
    ):
        assert len(answer) == 40
    assert torch.get_num_threads() == 2
    assert seen == [(1, True)] * 5
    for video, (segments, scores) in zip(videos, ranked, strict=True):
        alone, its_scores = rank_candidates(video, 9.0, evaluator)
        assert (segments == alone).all()
        assert (scores == its_scores).all()
        assert (scores <= evaluator.evaluate_candidates(video).max(initial=0)).all()


# ---- from files to files ----

EPOCHS = 4
# a large step, so that epochs differ
SETTINGS = EvaluatorSettings(hidden=8, epochs=EPOCHS, decay_epochs=2, learning_rate=0.2)


@pytest.fixture
def train(toy, tmp_path):
    candidates = tmp_path / "candidates.h5"
    write_candidates(tmp_path / "probabilities.h5", candidates, CandidateSettings(candidates=100))

    def run(name, settings=SETTINGS):
        out = tmp_path / name / "pem.safetensors"
        log = out.with_name("pem_log.tsv")
        train_pem(candidates, tmp_path / "annotations.json", settings, out, log)
        return out

    return run


def stop_in_epoch(patch, number):
    train_epoch, begun = module._EvaluatorTrainer.train_epoch, iter(range(1, 100))

    def failing(*arguments):
        if next(begun) == number:
            raise KeyboardInterrupt
        return train_epoch(*arguments)

    patch.setattr(module._EvaluatorTrainer, "train_epoch", failing)


def logged(out):
    rows = read_tsv(out.with_name("pem_log.tsv"))
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def weights(out):
    return read_model(out).value["evaluator"]["weights"]


@pytest.mark.parametrize("keep", ["best", "average", "last"])
def test_killed_after_each_epoch_it_ends_with_the_same_bits(train, tmp_path, monkeypatch, keep):
    settings = dataclasses.replace(SETTINGS, keep=keep, average_epochs=3)
    whole = train("whole", settings)
    for _ in range(EPOCHS - 1):  # each of these processes makes one epoch
        with monkeypatch.context() as patch:
            stop_in_epoch(patch, 2)
            with pytest.raises(KeyboardInterrupt):
                train("killed", settings)
        assert (tmp_path / "killed/.pem.checkpoint.pt").exists()
    killed = train("killed", settings)
    assert killed.read_bytes() == whole.read_bytes()
    assert logged(killed) == logged(whole)
    assert {path.name for path in killed.parent.iterdir()} == {"pem.safetensors", "pem_log.tsv"}


def test_the_best_epoch_is_kept_or_the_last_or_the_mean_of_the_last(train):
    def kept(keep, epochs=EPOCHS):
        changes = {"keep": keep, "epochs": epochs, "average_epochs": 2}
        return weights(train(f"{keep} of {epochs}", dataclasses.replace(SETTINGS, **changes)))

    best, third, last, average = kept("best"), kept("last", 3), kept("last"), kept("average")
    rows = logged(train("again", dataclasses.replace(SETTINGS, keep="best")))
    lowest = 1 + int(np.argmin([float(row["validation_loss"]) for row in rows]))
    assert lowest < EPOCHS, "the case must tell best from last"
    expected = kept("last", lowest)
    for name, value in best.items():
        assert torch.equal(value, expected[name])
        torch.testing.assert_close(average[name], (third[name] + last[name]) / 2)
    assert not all(torch.equal(best[name], last[name]) for name in best)
    assert not all(torch.equal(average[name], last[name]) for name in best)


def test_the_log_has_a_column_for_each_number(train):
    out = train("out")
    rows = read_tsv(out.with_name("pem_log.tsv"))
    assert list(rows[0]) == [
        *("epoch", "learning_rate", "sampled", "training_loss", "validation_loss", "seconds")
    ]
    assert [row["epoch"] for row in rows] == list("1234")
    np.testing.assert_allclose(
        [float(row["learning_rate"]) for row in rows], [0.2, 0.2, 0.02, 0.02]
    )
    assert all(float(row["seconds"]) > 0 and int(row["sampled"]) > 0 for row in rows)


@pytest.mark.parametrize("change", ["settings", "truth"])
def test_a_checkpoint_of_something_else_is_not_used(train, tmp_path, monkeypatch, capsys, change):
    with monkeypatch.context() as patch:
        stop_in_epoch(patch, 3)
        with pytest.raises(KeyboardInterrupt):
            train("out")
    settings = SETTINGS
    if change == "settings":
        settings = dataclasses.replace(SETTINGS, seed=1)
    else:
        path = tmp_path / "annotations.json"
        first, *others = read_annotations(path)
        write_annotations(path, [dataclasses.replace(first, instances=()), *others])
    capsys.readouterr()
    out = train("out", settings)
    line = "pem.checkpoint.pt: made with different settings or data; starting over"
    assert line in capsys.readouterr().err
    assert out.read_bytes() == train("fresh", settings).read_bytes()
