"""The learners of this process: one of several ranks', or all of them."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from actionspan.errors import InputError
from actionspan.parallel.communicator import Communicator
from actionspan.parallel.in_process import InProcessAveraging
from actionspan.parallel.member import Replica, share
from actionspan.parallel.replica import make_replica
from actionspan.parallel.settings import ExchangeName, ParallelSettings
from actionspan.recognition.settings import RecognitionSettings


@dataclass(frozen=True)
class Team:
    """Models that are trained side by side.

    Attributes:
        models: Of the learners of this process.
        optimisers: Of each model's parameters.
        replica: What joins them with the others.
    """

    models: Sequence[nn.Module]
    optimisers: Sequence[torch.optim.Optimizer]
    replica: Replica

    def numbers(self) -> list[int | None]:
        """Return which learners of all are in this process; a server alone is None."""
        if len(self.models) > 1:
            return list(range(len(self.models)))
        return [self.replica.worker]

    def shares(self, count: int) -> list[slice]:
        """Return which rows of a batch of `count` clips are whose, of this process's learners."""
        return [share(count, number, self.replica.workers) for number in self.numbers()]


def make_optimiser(model: nn.Module, settings: RecognitionSettings) -> torch.optim.Optimizer:
    """Return the optimiser of a model."""
    rate, decay = settings.learning_rate, settings.weight_decay
    if settings.optimiser == "sgd":
        return torch.optim.SGD(model.parameters(), lr=rate, weight_decay=decay, momentum=0.9)
    return torch.optim.Adam(model.parameters(), lr=rate, weight_decay=decay)


def make_team(
    exchange: ExchangeName,
    learners: int,
    model: nn.Module,
    settings: RecognitionSettings,
    parallel: ParallelSettings,
    comm: Communicator | None = None,
) -> Team:
    """Return this process's learners.

    Args:
        exchange: How they are joined.
        learners: How many there are in all.
        model: The one they start from.
        settings: The optimiser's.
        parallel: Of the exchange.
        comm: The ranks; None: all learners are in this process, which only `aavg` can do.

    Raises:
        InputError: The exchange cannot be had with these settings.
    """
    models = [model]
    if comm is None and exchange == "aavg":
        models += [copy.deepcopy(model) for _ in range(learners - 1)]
    optimisers = [make_optimiser(each, settings) for each in models]
    replica: Replica
    try:
        if comm is None and exchange == "aavg":
            replica = InProcessAveraging(models, optimisers, parallel)
        else:
            replica = make_replica(exchange, model, optimisers[0], parallel, comm)
    except ValueError as error:
        raise InputError(str(error)) from None
    return Team(models, optimisers, replica)
