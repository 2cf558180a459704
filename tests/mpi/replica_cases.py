"""Run by mpirun: trains a small network in several ways and prints what came of it, as JSON.

Each word is a case, WORKERS:EXCHANGE[,setting=value…], on the first ranks of the job.
"""

import hashlib
import itertools
import os
import sys
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import nn

from actionspan.parallel import ParallelSettings, make_replica
from mpi.ranks import from_words, run_cases

ROWS, BATCH = 34, 16  # batches of 16, 16 and 2: the last is uneven, and some ranks have none
STEPS = int(os.environ.get("STEPS", 50))


class Net(nn.Module):
    """Two paths as in MTN with a learned scalar between, parameters unused or frozen, a buffer."""

    seen: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(7, 24, 3, padding=1), nn.ReLU(), nn.Conv1d(24, 3, 1))
        self.dense = nn.Sequential(nn.Linear(7, 40), nn.Tanh(), nn.Linear(40, 3))
        self.frozen = nn.Parameter(torch.ones(3), requires_grad=False)
        self.unused = nn.Linear(3, 2)
        self.fusion = nn.Parameter(torch.tensor(0.5))
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.seen += len(x)
        conv = self.conv(x.transpose(1, 2)).transpose(1, 2)
        weight = 2 * self.fusion.sigmoid()
        return weight * conv.sigmoid() + (2 - weight) * self.dense(x).softmax(2) * self.frozen


def train(name, settings, comm, optimiser_of, passes, last) -> dict[str, Any]:
    """Return the losses of all steps, the final weights and the ranks' digests of them.

    A step has `passes` over a rank's rows; `last` names the ranks that accumulate in all of them,
    where others run the last outside.
    """
    torch.manual_seed(3)
    data, target = torch.randn(ROWS, 10, 7), torch.rand(ROWS, 10, 3)
    torch.manual_seed(comm.Get_rank() if comm is not None else 0)  # only rank 0 counts
    model = Net()
    optimiser = optimiser_of(model.parameters())
    replica = make_replica(name, model, optimiser, settings, comm)
    chunks = itertools.cycle([slice(i, min(i + BATCH, ROWS)) for i in range(0, ROWS, BATCH)])
    accumulating = {"outside": False, "none": True, "odd": replica.rank % 2 == 1}[last]
    losses = []
    for _, chunk in zip(range(STEPS), chunks, strict=False):
        x, y = data[chunk], target[chunk]
        rows = replica.share(len(x))
        optimiser.zero_grad()
        own = range(rows.start, rows.stop)
        parts = [list(part) for place in range(passes) if (part := own[place::passes])]
        total = 0.0
        for part in parts:
            within = accumulating or part is not parts[-1]
            with replica.accumulating() if within else nullcontext():
                loss = ((model(x[part]) - y[part]) ** 2).sum() / y.numel()
                loss.backward()
            total += float(loss.detach())
        replica.step()
        losses.append(total)
    replica.synchronise()
    losses = [sum(parts) for parts in zip(*replica.gather(losses, "the losses"), strict=True)]
    weights = torch.cat([one.detach().flatten() for one in model.parameters()])
    every = torch.cat([weights, *(one.flatten() for one in model.buffers())])
    digest = hashlib.sha256(every.numpy().tobytes()).hexdigest()
    made = {
        "losses": losses,
        "weights": weights.tolist(),
        "digests": replica.gather(digest, "digests"),
        "reports": replica.gather(replica.report(), "reports"),
        "seen": int(model.seen),
        "worker": (replica.worker, replica.workers),
    }
    replica.close()
    return made


OPTIMISERS = {
    "adam": partial(torch.optim.AdamW, lr=1e-3, weight_decay=0.1),
    "sgd": partial(torch.optim.SGD, lr=0.1, momentum=0.9),
}
SETTINGS = {"bucket_kib": int, "staleness": int, "overlap": bool, "wire": str, "auto_kib": int}


def run(case: str, comm: Any) -> dict[str, Any]:
    """Train as EXCHANGE[,setting=value…] says; or return the error, where it is refused."""
    name, *changes = case.split(",")
    values = dict(change.split("=") for change in changes)
    optimiser = OPTIMISERS[values.pop("optimiser", "adam")]
    passes, last = int(values.pop("passes", 1)), values.pop("last", "outside")
    given: dict[str, Any] = {key: SETTINGS[key](value) for key, value in values.items()}
    try:
        settings = ParallelSettings(**{"bucket_kib": 1, **given})
        return train(name, settings, comm, optimiser, passes, last)
    except ValueError as error:
        return {"errors": comm.gather(str(error))}


if __name__ == "__main__":
    run_cases(run, from_words(sys.argv[1:]))
