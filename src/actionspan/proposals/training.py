"""Training the evaluator of candidates (PEM): a weighted smooth-L1 loss on balanced samples."""

import sys
from collections.abc import Callable
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import smooth_l1_loss

from actionspan.dataset.tables import read_annotations
from actionspan.files.storage import digest, write_tsv
from actionspan.parallel.member import Replica
from actionspan.proposals.evaluator import ProposalEvaluator, save_evaluator
from actionspan.proposals.examples import Examples, examples_of
from actionspan.proposals.sampling import Rows, Sampler, sampling_rates
from actionspan.proposals.settings import EvaluatorSettings
from actionspan.proposals.store import open_candidates
from actionspan.running.determinism import deterministic
from actionspan.training.fit import fit
from actionspan.training.run import Row, Run
from actionspan.training.schedule import rate_every

VALIDATION_ROWS = 65536  # rows evaluated at once
FALL = 0.1  # what the learning rate is multiplied by after each `decay_epochs`


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """One line of the training log. `validation_loss` is NaN without validation candidates."""

    epoch: int
    learning_rate: float
    sampled: int
    training_loss: float
    validation_loss: float
    seconds: float = field(compare=False)


LOG_COLUMNS = tuple(each.name for each in fields(Epoch))


def train_pem(
    candidates_path: Path,
    annotations_path: Path,
    settings: EvaluatorSettings,
    out: Path,
    log: Path | None = None,
) -> None:
    """Train an evaluator on the training videos' candidates and write it.

    A run that was killed continues from its checkpoint and ends with the same bits.

    Args:
        candidates_path: candidates.h5.
        annotations_path: The canonical annotations.json.
        settings: Network, optimiser and sampling.
        out: The evaluator to write, pem.pt; the checkpoint stands beside it, hidden.
        log: The table of losses to write, one row an epoch; None: none.

    Raises:
        InputError: A file cannot be used, there is no room, or the loss is no longer a number.
    """
    table = open_candidates(candidates_path)
    annotations = read_annotations(annotations_path)
    limit, scores = settings.training_candidates, settings.boundary_scores
    training, validation = (
        examples_of(table, annotations, subset, limit, scores)
        for subset in ("training", "validation")
    )
    if not len(training.rows):
        print(
            f"{candidates_path}: no candidates of training videos; the evaluator will answer "
            "0.5 everywhere and proposals are ranked by p_start * p_end",
            file=sys.stderr,
        )
    checkpoint = out.with_name(f".{out.stem}.checkpoint.pt")

    def report(epoch: Epoch) -> None:
        print(
            f"epoch {epoch.epoch}/{settings.epochs}: {epoch.sampled} candidates, "
            f"training loss {epoch.training_loss:.5f}, "
            f"validation loss {epoch.validation_loss:.5f}",
            file=sys.stderr,
        )

    evaluator, epochs = train_evaluator(
        training, validation, settings, report, checkpoint=checkpoint, source=table.digest
    )
    save_evaluator(out, evaluator, digest(settings, table.digest))
    if log is not None:
        write_tsv(log, LOG_COLUMNS, [astuple(epoch) for epoch in epochs])
    checkpoint.unlink(missing_ok=True)


def train_evaluator(
    training: Examples,
    validation: Examples | None,
    settings: EvaluatorSettings,
    report: Callable[[Epoch], None] = lambda epoch: None,
    *,
    checkpoint: Path | None = None,
    source: str = "",
) -> tuple[ProposalEvaluator, list[Epoch]]:
    """Train an evaluator; the same input and settings give the same bits.

    The weights of the epoch of lowest validation loss are returned; with `keep: last`, or without
    validation candidates, those of the last. With no training candidates at all every answer is
    0.5, so that proposals are ranked by p_start · p_end.

    Args:
        training: Candidates to learn from.
        validation: Candidates to choose the epoch by.
        settings: Network, optimiser and sampling.
        report: Called after each epoch.
        checkpoint: Where to continue from and what to write after each epoch; the caller deletes
            it when the evaluator is written. None: no checkpoint.
        source: Digest of the features, which the checkpoint belongs to.

    Returns:
        The evaluator and its log.

    Raises:
        InputError: The training loss is no longer a number, or there is no room.
    """
    with deterministic(threads=1):
        torch.manual_seed(settings.seed)
        evaluator = ProposalEvaluator(settings.hidden, training.inputs)
        if not len(training.rows):
            torch.nn.init.zeros_(evaluator.output.weight)
            torch.nn.init.zeros_(evaluator.output.bias)
            return evaluator.eval(), []
        optimiser = torch.optim.Adam(
            evaluator.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        sampler = Sampler(training.targets, settings)
        choosing = validation if validation is not None and len(validation.rows) else None
        fingerprints = [each.fingerprint() for each in (training, choosing) if each is not None]
        run = Run(
            digest=digest(settings, source, fingerprints),
            models=[evaluator],
            optimisers=[optimiser],
            replica=Replica(optimiser),
            keep_best=settings.keep == "best" and choosing is not None,
            more=sampler,
        )
        if checkpoint is not None and (state := run.resume(checkpoint)) is not None:
            run.restore(state)
        fit(
            run,
            settings.epochs,
            lambda _: _train_epoch(
                evaluator, optimiser, training, sampler.draw(), settings.batch_size
            ),
            lambda: {"validation_loss": _validation_loss(evaluator, choosing, settings)},
            learning_rate=lambda epoch: rate_every(
                settings.learning_rate, FALL, settings.decay_epochs, epoch
            ),
            score=lambda row: -row["validation_loss"],
            checkpoint=checkpoint,
            report=lambda row: report(_epoch(row)),
        )
        evaluator.load_state_dict(run.weights())
    return evaluator.eval(), [_epoch(row) for row in run.rows]


def _epoch(row: Row) -> Epoch:
    return Epoch(**row)  # type: ignore[arg-type]


def weighted_loss(prediction: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Return the weighted mean of the smooth-L1 loss, which is 0 where all weights are 0.

    The loss is weighted entry by entry before the mean: weights applied to an already averaged
    loss would change nothing.
    """
    loss = smooth_l1_loss(prediction, target, reduction="none")
    return (loss * weight).sum() / weight.sum().clamp(min=torch.finfo(weight.dtype).tiny)


def _train_epoch(
    evaluator: ProposalEvaluator,
    optimiser: torch.optim.Optimizer,
    examples: Examples,
    sample: Rows,
    batch_size: int,
) -> Row:
    """Make one pass over the sample; return its size and its mean loss."""
    total = 0.0
    for first in range(0, len(sample), batch_size):
        chosen = sample[first : first + batch_size]
        features, target = _batch(examples, chosen)
        optimiser.zero_grad()
        loss = weighted_loss(evaluator(features), target, torch.ones_like(target))
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        total += loss.item() * len(chosen)
    return {"sampled": len(sample), "training_loss": total / len(sample)}


def _validation_loss(
    evaluator: ProposalEvaluator, examples: Examples | None, settings: EvaluatorSettings
) -> float:
    """Return the loss over all candidates, weighted by their sampling rates."""
    if examples is None:
        return float("nan")
    rates = sampling_rates(examples.targets, settings)
    total = weights = 0.0
    with torch.inference_mode():
        for first in range(0, len(rates), VALIDATION_ROWS):
            chosen = np.arange(first, min(first + VALIDATION_ROWS, len(rates)))
            features, target = _batch(examples, chosen)
            weight = torch.from_numpy(rates[chosen].astype(np.float32))
            share = float(weight.sum())
            total += float(weighted_loss(evaluator(features), target, weight)) * share
            weights += share
    return total / weights


def _batch(examples: Examples, chosen: Rows) -> tuple[Tensor, Tensor]:
    """Return the inputs and targets of the chosen examples."""
    inputs = np.asarray(examples.features[examples.rows[chosen]])
    if examples.more is not None:
        inputs = np.concatenate([inputs, examples.more[chosen]], axis=1)
    return torch.from_numpy(inputs), torch.from_numpy(examples.targets[chosen].astype(np.float32))
