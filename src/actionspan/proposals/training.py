"""Training the evaluator of candidates: balanced samples and a weighted smooth-L1 loss."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import smooth_l1_loss

from actionspan.proposals.evaluator import ProposalEvaluator, one_thread
from actionspan.proposals.settings import EvaluatorSettings

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

VALIDATION_ROWS = 65536  # rows evaluated at once


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Candidates to train on.

    `features` is float32 (R, 32), an array or a memory map of all candidates; `rows` (M,) says
    which of its rows belong here; `targets` (M,) is each one's best tIoU with the truth. `more`
    (M, E) are further inputs of each, beside the features.
    """

    features: NDArray[np.float32]
    rows: Rows
    targets: Array
    more: NDArray[np.float32] | None = None

    @property
    def inputs(self) -> int:
        """How many numbers of a candidate the evaluator sees."""
        more: int = 0 if self.more is None else self.more.shape[1]
        return int(self.features.shape[1]) + more


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """One line of the training log. `validation_loss` is NaN without validation candidates."""

    epoch: int
    learning_rate: float
    sampled: int
    training_loss: float
    validation_loss: float


def sampling_rates(targets: Array, settings: EvaluatorSettings) -> Array:
    """Return the share at which each candidate is sampled, so that the classes are balanced.

    High candidates (tIoU above `high_threshold`) are all taken; of the middle and of the low ones
    (below `low_threshold`) as many as `middle_ratio` and `low_ratio` for each high one, or all
    there are. Where no candidate is high the middle ones stand for them, and where none is middle
    either, all low ones are taken.

    Args:
        targets: (M,) best tIoU of each candidate with the truth.
        settings: Thresholds and ratios.

    Returns:
        (M,) rates in 0…1; not all 0 unless M is 0.
    """
    rates = np.zeros(len(targets))
    unit = 0.0  # how many candidates stand for a ratio of 1
    ratios = (1.0, settings.middle_ratio, settings.low_ratio)
    for members, ratio in zip(_classes(targets, settings), ratios, strict=True):
        if len(members):
            unit = unit or len(members) / ratio
            rates[members] = min(1.0, ratio * unit / len(members))
    return rates


def balanced_sample(
    targets: Array, settings: EvaluatorSettings, generator: np.random.Generator
) -> Rows:
    """Draw high, middle and low candidates at their rates, as many of each every time.

    Args:
        targets: (M,) best tIoU of each candidate with the truth.
        settings: Thresholds and ratios.
        generator: Where the random numbers come from.

    Returns:
        Indexes of the drawn candidates, in random order, none twice.
    """
    rates = sampling_rates(targets, settings)
    drawn = [
        generator.permutation(members)[: max(round(rates[members[0]] * len(members)), 1)]
        for members in _classes(targets, settings)
        if len(members)
    ]
    return generator.permutation(np.concatenate(drawn)) if drawn else np.zeros(0, np.int64)


def _classes(targets: Array, settings: EvaluatorSettings) -> tuple[Rows, Rows, Rows]:
    """Return the indexes of the high, the middle and the low candidates."""
    high = targets > settings.high_threshold
    low = targets < settings.low_threshold
    return high.nonzero()[0], (~high & ~low).nonzero()[0], low.nonzero()[0]


def weighted_loss(prediction: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Return the weighted mean of the smooth-L1 loss, which is 0 where all weights are 0.

    The loss is weighted entry by entry before the mean: weights applied to an already averaged
    loss would change nothing.
    """
    loss = smooth_l1_loss(prediction, target, reduction="none")
    return (loss * weight).sum() / weight.sum().clamp(min=torch.finfo(weight.dtype).tiny)


def train_evaluator(
    training: Examples,
    validation: Examples | None,
    settings: EvaluatorSettings,
    report: Callable[[Epoch], None] = lambda epoch: None,
) -> tuple[ProposalEvaluator, list[Epoch]]:
    """Train an evaluator; the same input and settings give the same bits.

    The weights of the epoch of lowest validation loss are returned, without validation
    candidates those of the last. With no training candidates at all every answer is 0.5, so that
    proposals are ranked by p_start · p_end.

    Args:
        training: Candidates to learn from.
        validation: Candidates to choose the epoch by.
        settings: Network, optimiser and sampling.
        report: Called after each epoch.

    Returns:
        The evaluator and its log.
    """
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        return _train(training, validation, settings, report)


def _train(
    training: Examples,
    validation: Examples | None,
    settings: EvaluatorSettings,
    report: Callable[[Epoch], None],
) -> tuple[ProposalEvaluator, list[Epoch]]:
    evaluator = ProposalEvaluator(settings.hidden, training.inputs)
    if not len(training.rows):
        torch.nn.init.zeros_(evaluator.output.weight)
        torch.nn.init.zeros_(evaluator.output.bias)
        return evaluator.eval(), []
    optimizer = torch.optim.Adam(
        evaluator.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, settings.decay_epochs, gamma=0.1)
    generator = np.random.default_rng(settings.seed)
    log: list[Epoch] = []
    best: tuple[float, dict[str, Tensor]] | None = None
    for number in range(1, settings.epochs + 1):
        sample = balanced_sample(training.targets, settings, generator)
        learning_rate = optimizer.param_groups[0]["lr"]
        training_loss = _train_epoch(evaluator, optimizer, training, sample, settings.batch_size)
        schedule.step()
        validation_loss = _validation_loss(evaluator, validation, settings)
        log.append(
            Epoch(
                epoch=number,
                learning_rate=learning_rate,
                sampled=len(sample),
                training_loss=training_loss,
                validation_loss=validation_loss,
            )
        )
        report(log[-1])
        if best is None or not validation_loss >= best[0]:
            weights = {name: value.clone() for name, value in evaluator.state_dict().items()}
            best = (validation_loss, weights)
    assert best is not None
    evaluator.load_state_dict(best[1])
    return evaluator.eval(), log


def _train_epoch(
    evaluator: ProposalEvaluator,
    optimizer: torch.optim.Optimizer,
    examples: Examples,
    sample: Rows,
    batch_size: int,
) -> float:
    """Make one pass over the sample and return its mean loss."""
    total = 0.0
    for first in range(0, len(sample), batch_size):
        chosen = sample[first : first + batch_size]
        features, target = _batch(examples, chosen)
        optimizer.zero_grad()
        loss = weighted_loss(evaluator(features), target, torch.ones_like(target))
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        total += loss.item() * len(chosen)
    return total / len(sample)


def _validation_loss(
    evaluator: ProposalEvaluator, examples: Examples | None, settings: EvaluatorSettings
) -> float:
    """Return the loss over all candidates, weighted by their sampling rates."""
    if examples is None or not len(examples.rows):
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
