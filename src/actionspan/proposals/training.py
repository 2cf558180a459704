"""Training the evaluator of candidates (PEM): a weighted smooth-L1 loss on balanced samples."""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import smooth_l1_loss

from actionspan.annotations.tables import read_segments
from actionspan.arrays import Int64
from actionspan.jobs.determinism import deterministic
from actionspan.parallel.member import Replica
from actionspan.proposals import examples as sampling
from actionspan.proposals.candidates import open_candidates
from actionspan.proposals.evaluator import ProposalEvaluator, save_evaluator
from actionspan.proposals.examples import Examples, Sample, Sampler
from actionspan.proposals.settings import EvaluatorSettings
from actionspan.storage.writing import digest, write_tsv
from actionspan.training.settings import rate_every
from actionspan.training.trainer import Row, Trainer

_COLUMNS = ("epoch", "learning_rate", "sampled", "training_loss", "validation_loss", "seconds")


def train_pem(
    candidates_path: Path,
    annotations_path: Path,
    settings: EvaluatorSettings,
    out: Path,
    log: Path | None = None,
) -> None:
    """Train an evaluator on the candidates of candidates.h5 and write it, and the log if asked.

    A run that was killed continues from its checkpoint, a hidden file next to `out`, and ends with
    the same bits.

    Raises:
        InputError: A file cannot be used, the disk is full, or the loss is not finite.
    """
    # read the examples
    table = open_candidates(candidates_path)
    truth = read_segments(annotations_path)
    chosen = settings.training_candidates, settings.boundary_scores
    training, validation = (
        sampling.examples_of(table, truth, subset, *chosen) for subset in ("training", "validation")
    )
    if not len(training.rows):
        answer = "the evaluator will answer 0.5 everywhere"
        line = f"{answer} and proposals are ranked by p_start * p_end"
        print(f"{candidates_path}: no candidates of training videos; {line}", file=sys.stderr)
    # train and write
    checkpoint = out.with_name(f".{out.stem}.checkpoint.pt")
    evaluator, rows = train_evaluator(
        training, validation, settings, checkpoint=checkpoint, source=table.digest
    )
    save_evaluator(out, evaluator, digest(settings, table.digest))
    if log is not None:
        write_tsv(log, _COLUMNS, [[row[name] for name in _COLUMNS] for row in rows])
    checkpoint.unlink(missing_ok=True)


def train_evaluator(
    training: Examples,
    validation: Examples | None,
    settings: EvaluatorSettings,
    *,
    checkpoint: Path | None = None,
    source: str = "",
) -> tuple[ProposalEvaluator, list[Row]]:
    """Train an evaluator; the same input and settings give the same bits.

    The weights of the last epoch are returned, with `keep: average` the mean of the last epochs'
    weights, with `best` the weights of the epoch of lowest validation loss, if there are validation
    candidates. With no training candidates at all every answer is 0.5, so that proposals are
    ranked by p_start · p_end. A `checkpoint` is continued from, written after each epoch, and
    deleted by the caller when the evaluator is written; it belongs to features of digest `source`.

    Returns:
        The evaluator and its log, a row an epoch.

    Raises:
        InputError: The training loss is not finite, or the disk is full.
    """
    with deterministic(threads=1):
        # 1. prepare the network, the samples and the checkpoint
        torch.manual_seed(settings.seed)
        evaluator = ProposalEvaluator(settings.hidden, training.inputs)
        if not len(training.rows):
            torch.nn.init.zeros_(evaluator.output.weight)
            torch.nn.init.zeros_(evaluator.output.bias)
            return evaluator.eval(), []
        optimiser = torch.optim.Adam(
            evaluator.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        choosing = validation if validation is not None and len(validation.rows) else None
        fingerprints = [each.fingerprint() for each in (training, choosing) if each is not None]
        trainer = _EvaluatorTrainer(
            digest=digest(settings, source, fingerprints),
            model=evaluator,
            replica=Replica(evaluator, optimiser),
            learning_rate=partial(rate_every, settings.learning_rate, 0.1, settings.decay_epochs),
            kept="last" if settings.keep == "best" and choosing is None else settings.keep,
            average_after=settings.epochs - settings.average_epochs,
            more=Sampler(training.targets, settings),
            checkpoint=checkpoint,
            training=training,
            validation=choosing,
            settings=settings,
        )
        trainer.resume()
        # 2. train
        trainer.fit(settings.epochs, "training the evaluator")
        evaluator.load_state_dict(trainer.weights())
    return evaluator.eval(), trainer.rows


@dataclass(kw_only=True)
class _EvaluatorTrainer(Trainer[ProposalEvaluator]):
    """An evaluator in training on samples of the candidates."""

    training: Examples
    validation: Examples | None
    more: Sampler  # draws each epoch's sample
    settings: EvaluatorSettings

    def train_epoch(self, epoch: int) -> Row:
        """Train on a new sample once; return its size and mean loss."""
        sample, size, total = self.more.draw(), self.settings.batch_size, 0.0
        for first in range(0, len(sample), size):
            chosen = sample[first : first + size]
            features, target = _batch(self.training, chosen)
            self.replica.optimiser.zero_grad()
            loss = weighted_loss(self.model(features), target, torch.ones_like(target))
            loss.backward()  # type: ignore[no-untyped-call]
            self.replica.step()
            total += loss.item() * len(chosen)
        return {"sampled": len(sample), "training_loss": total / len(sample)}

    def validate(self) -> Row:
        """Return the loss over all candidates, weighted by their sampling rates."""
        examples, total, weights = self.validation, 0.0, 0.0
        if examples is None:
            return {"validation_loss": float("nan")}
        counts = sampling.class_counts(examples.targets, self.settings)
        with torch.inference_mode():
            for rows in sampling.chunks(len(examples.rows)):
                features, target = _batch(examples, np.arange(rows.start, rows.stop))
                rates = sampling.sampling_rates(examples.targets[rows], self.settings, counts)
                weight = torch.from_numpy(rates.astype(np.float32))
                share = float(weight.sum())
                total += float(weighted_loss(self.model(features), target, weight)) * share
                weights += share
        return {"validation_loss": total / weights}


def weighted_loss(prediction: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Return the weighted mean of the smooth-L1 loss, which is 0 where all weights are 0.

    The loss is weighted entry by entry before the mean: weights applied to an already averaged
    loss would change nothing.
    """
    loss = smooth_l1_loss(prediction, target, reduction="none")
    return (loss * weight).sum() / weight.sum().clamp(min=torch.finfo(weight.dtype).tiny)


def _batch(examples: Examples, chosen: Int64 | Sample) -> tuple[Tensor, Tensor]:
    inputs = np.asarray(examples.features[examples.rows[chosen]])
    if examples.more is not None:
        inputs = np.concatenate([inputs, examples.more[chosen]], axis=1)
    return torch.from_numpy(inputs), torch.from_numpy(examples.targets[chosen].astype(np.float32))
