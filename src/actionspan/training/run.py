"""A training under way: what changes from epoch to epoch, and its checkpoint.

A run that was killed, at any moment, continues after the last complete epoch and ends with the same
model to the bit: all that an epoch uses is in the checkpoint or follows from (seed, epoch, step).
(With `ps_async` the order in which gradients arrive decides, and no two runs are the same.)
"""

import copy
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn
from torch.optim import Optimizer

from actionspan.errors import InputError
from actionspan.files.storage import write_tsv
from actionspan.files.torch_files import read_torch
from actionspan.parallel.member import Replica
from actionspan.training.keep import Keep

CHECKPOINT = ".checkpoint.pt"  # hidden, no output: Snakemake deletes the outputs of a failed job
FORMAT = "training 2"

Row = dict[str, int | float]
"""An epoch in the log: plain numbers by column."""


class Stateful(Protocol):
    """Something else that changes from epoch to epoch, e.g. a batch size that grows."""

    def state(self) -> Any:
        """Return it in tensors and plain values."""

    def restore(self, state: Any) -> None:
        """Go back to what `state` returned."""


@dataclass(kw_only=True)
class Run:
    """Everything that changes while a model is trained."""

    digest: str  # of the settings and data; a checkpoint with a different digest is not used
    models: Sequence[nn.Module]  # those that this process trains, alike after every epoch
    optimisers: Sequence[Optimizer]  # of each model's parameters
    replica: Replica  # joins them with those of other ranks
    kept: Keep  # which weights are kept
    average_after: int = 0  # for `average`: the mean is over the epochs after this one
    more: Stateful | None = None  # what else changes
    epoch: int = 0  # how many epochs are complete
    best_score: float = math.nan  # of the best epoch, where that is kept
    # the best or the mean so far; empty where the last are kept, since the model has them
    kept_weights: dict[str, Tensor] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)  # the log

    def state(self) -> dict[str, Any]:
        """Return the checkpoint, its tensors not copied; all ranks call it, rank 0 writes it."""
        return {
            "digest": f"{FORMAT} {self.digest}",
            "model": self.models[0].state_dict(),
            "optimiser": self.optimisers[0].state_dict(),
            "own": self.replica.own_state(),
            "more": self.more.state() if self.more is not None else None,
            "epoch": self.epoch,
            "best_score": self.best_score,
            "kept_weights": self.kept_weights,
            "rows": self.rows,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a checkpoint; every rank calls it with rank 0's."""
        for model, optimiser in zip(self.models, self.optimisers, strict=True):
            model.load_state_dict(state["model"])
            # an optimiser takes over the very tensors, which learners may not share
            optimiser.load_state_dict(copy.deepcopy(state["optimiser"]))
        self.replica.restore_own(state["own"])
        if self.more is not None:
            self.more.restore(state["more"])
        self.epoch, self.rows = state["epoch"], state["rows"]
        self.best_score, now = state["best_score"], self.models[0].state_dict()
        # a checkpoint is read into host memory
        self.kept_weights = {
            name: kept.to(now[name].device) for name, kept in state["kept_weights"].items()
        }

    def resume(self, checkpoint: Path) -> dict[str, Any] | None:
        """Return the state to continue from, if there is one of the same settings and data."""
        if not checkpoint.exists():
            return None
        try:
            state = read_torch(checkpoint)
            if state["digest"] == f"{FORMAT} {self.digest}":
                print(f"{checkpoint}: resuming after epoch {state['epoch']}", file=sys.stderr)
                return dict(state)
        except (InputError, LookupError, TypeError):
            pass  # no checkpoint at all
        print(f"{checkpoint}: made with different settings or data; starting over", file=sys.stderr)
        return None

    def keep(self, score: float) -> None:
        """Take the weights of the epoch just trained into those that are kept.

        The best are copied if their score is the highest so far; NaN is below all others. The mean
        is that of the weights after each epoch later than `average_after`, all with equal weight.
        The models of all ranks are alike after an epoch, so the ranks' means are too.
        """
        averaged = self.epoch + 1 - max(self.average_after, 0)  # epochs in the mean, with this one
        if self.kept == "last" or (self.kept == "average" and averaged < 1):
            return
        first = not self.kept_weights
        if self.kept == "best":
            if not first and (math.isnan(score) or score <= self.best_score):
                return
            self.best_score = score
        weights = self.models[0].state_dict()
        if first:
            self.kept_weights = copy.deepcopy(dict(weights))
            return
        for name, kept in self.kept_weights.items():  # into the same memory
            if self.kept == "average" and kept.is_floating_point():
                kept.lerp_(weights[name], 1 / averaged)
            else:
                kept.copy_(weights[name])

    def weights(self) -> dict[str, Tensor]:
        """Return the weights that are kept; those of the last epoch are the model's own."""
        return self.kept_weights or self.models[0].state_dict()

    def log(self, path: Path, columns: Sequence[str]) -> None:
        """Write the log as a table, one row an epoch."""
        write_tsv(path, columns, [[row[name] for name in columns] for row in self.rows])
