"""What the evaluator sees beside its features: by hand, in training and in use alike."""

import dataclasses

import numpy as np
import pytest
import torch

from actionspan.annotations.tables import read_annotations, read_segments
from actionspan.cli import main
from actionspan.proposals import ProposalEvaluator
from actionspan.proposals.candidates import open_candidates
from actionspan.proposals.evaluator import (
    boundary_inputs,
    evaluator_from_state,
    evaluator_state,
    load_evaluator,
    save_evaluator,
    to_seconds,
)
from actionspan.proposals.examples import Examples, best_overlap, examples_of
from actionspan.proposals.pgm import Candidates
from actionspan.proposals.settings import EvaluatorSettings
from actionspan.proposals.training import train_evaluator
from actionspan.storage import scratch as scratch_module
from actionspan.storage.model_files import Part


def some_candidates(count=7, seed=0):
    rng = np.random.default_rng(seed)
    return Candidates(
        segments=np.sort(rng.random((count, 2)), axis=1).astype(np.float32),
        scores=rng.random((count, 2)).astype(np.float32),
        features=rng.random((count, 32)).astype(np.float32),
    )


def test_an_evaluator_sees_what_it_was_built_for():
    given = some_candidates()
    torch.manual_seed(0)
    few, more = ProposalEvaluator(8), ProposalEvaluator(8, features=35)
    assert (few.evaluate_candidates(given) == few.evaluate(given.features)).all()
    length = (given.segments[:, 1] - given.segments[:, 0])[:, None]
    inputs = np.concatenate([given.features, given.scores, length], axis=1)
    assert (more.evaluate_candidates(given) == more.evaluate(inputs)).all()
    for change in (
        {"scores": given.scores[:, ::-1]},
        {"segments": given.segments * np.float32(0.5)},
        {"features": given.features[:, ::-1]},
    ):
        other = dataclasses.replace(given, **change)
        assert (more.evaluate_candidates(other) != more.evaluate_candidates(given)).any()
        same = few.evaluate_candidates(other) == few.evaluate_candidates(given)
        assert same.all() == ("features" not in change)


def test_an_evaluator_of_any_width_is_kept(tmp_path):
    given = some_candidates()
    for features in (32, 35):
        evaluator = ProposalEvaluator(hidden=5, features=features)
        save_evaluator(tmp_path / "pem.safetensors", evaluator, "digest")
        expected = evaluator.evaluate_candidates(given)
        for kept in (
            load_evaluator(tmp_path / "pem.safetensors"),
            evaluator_from_state(Part(evaluator_state(evaluator), "evaluator")),
        ):
            assert (kept.evaluate_candidates(given) == expected).all()


def test_it_learns_what_the_features_do_not_tell():
    """The target is p_start · p_end times the length; features are noise."""
    many = some_candidates(3000)
    more = boundary_inputs(many.scores, many.segments)
    targets = np.sqrt(more.prod(axis=1).astype(float))
    data = Examples(features=many.features, rows=np.arange(3000), targets=targets)
    other = some_candidates(500, seed=1)
    truth = np.sqrt(boundary_inputs(other.scores, other.segments).prod(axis=1))
    agreement = []
    for examples in (data, dataclasses.replace(data, more=more)):
        evaluator, _ = train_evaluator(examples, None, EvaluatorSettings(epochs=10))
        agreement.append(np.corrcoef(evaluator.evaluate_candidates(other), truth)[0, 1])
    assert agreement[0] < 0.3
    assert agreement[1] > 0.7


def test_further_inputs_belong_to_their_row():
    """`more` is of the examples, `features` of all candidates."""
    many = some_candidates(40)
    rows = np.arange(1, 40, 2)
    more = boundary_inputs(many.scores, many.segments)[rows]
    targets = np.linspace(0, 1, 20)
    settings = EvaluatorSettings(epochs=2, hidden=8)
    spread = Examples(features=many.features, rows=rows, targets=targets, more=more)
    packed = Examples(
        features=np.concatenate([many.features[rows], more], axis=1),
        rows=np.arange(20),
        targets=targets,
    )
    assert spread.inputs == packed.inputs == 35
    one, two = (train_evaluator(given, given, settings) for given in (spread, packed))
    logs = [[{**row, "seconds": 0} for row in rows] for _, rows in (one, two)]
    assert logs[0] == logs[1]
    for first, second in zip(one[0].parameters(), two[0].parameters(), strict=True):
        assert torch.equal(first, second)


@pytest.fixture
def files(toy, tmp_path):
    """candidates.h5 and annotations.json of the toy run."""
    words = ["--probabilities", str(tmp_path / "probabilities.h5")]
    assert main(["proposals", "candidates", *words, "--out", str(tmp_path / "candidates.h5")]) == 0
    return tmp_path / "candidates.h5", tmp_path / "annotations.json"


def test_examples_in_files_have_the_bits_of_memory(files, monkeypatch):
    table, truth = open_candidates(files[0]), read_segments(files[1])
    annotated = {one.video_id: one for one in read_annotations(files[1])}
    monkeypatch.setattr(scratch_module, "_SMALL", 0)
    made = examples_of(table, truth, "training", 20, True)
    rows, targets = [], []
    for row in np.flatnonzero(np.array(table.subset) == "training"):
        rows += range(table.offsets[row], table.offsets[row + 1])[:20]
        instances = annotated[table.video_id[row]].instances
        seconds = to_seconds(table.video(row).segments[:20], table.duration_seconds[row])
        targets += list(best_overlap(seconds, [(one.start, one.end) for one in instances]))
    assert len(rows) > 20
    assert made.rows.tolist() == rows
    assert made.targets.tolist() == targets
    wanted = boundary_inputs(table.scores[rows], table.segments[rows])
    np.testing.assert_array_equal(made.more, wanted)
    plain = examples_of(table, truth, "training", 20)
    assert plain.more is None
    assert plain.rows.tolist() == rows
    assert examples_of(table, truth, "testing", 20, True).more.shape == (0, 3)


def test_training_from_files_gives_the_bits_of_memory(files, tmp_path, monkeypatch):
    words = ["--candidates", str(files[0]), "--annotations", str(files[1]), "--epochs", "2"]
    for small, name in ((1 << 30, "memory.pt"), (0, "files.pt")):
        monkeypatch.setattr(scratch_module, "_SMALL", small)
        assert main(["proposals", "train", *words, "--out", str(tmp_path / name)]) == 0
    assert (tmp_path / "memory.pt").read_bytes() == (tmp_path / "files.pt").read_bytes()
