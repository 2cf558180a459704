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

CHECKPOINT = ".checkpoint.pt"  # hidden, no output: Snakemake deletes the outputs of a failed job
FORMAT = "training 1"

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
    keep_best: bool  # keep the epoch with the highest score, rather than the last
    more: Stateful | None = None  # what else changes
    epoch: int = 0  # how many epochs are complete
    best_score: float = math.nan  # of the epoch that is kept
    # of that epoch; empty where the last epoch is kept, since the model has them
    best_weights: dict[str, Tensor] = field(default_factory=dict)
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
            "best_weights": self.best_weights,
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
        self.best_score, self.best_weights = state["best_score"], state["best_weights"]

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
        """Keep a copy of the weights if their epoch is the best so far; NaN is below all others."""
        if not self.keep_best:
            return
        if self.best_weights and (math.isnan(score) or score <= self.best_score):
            return
        self.best_score = score
        weights = self.models[0].state_dict()
        if not self.best_weights:
            self.best_weights = copy.deepcopy(dict(weights))
        else:  # into the same memory
            for name, kept in self.best_weights.items():
                kept.copy_(weights[name])

    def weights(self) -> dict[str, Tensor]:
        """Return the weights of the epoch that is kept; of the last they are the model's own."""
        return self.best_weights or self.models[0].state_dict()

    def log(self, path: Path, columns: Sequence[str]) -> None:
        """Write the log as a table, one row an epoch."""
        write_tsv(path, columns, [[row[name] for name in columns] for row in self.rows])
