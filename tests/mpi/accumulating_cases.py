"""Run by mpirun: steps of several backward passes, and of one, by each exchange, as JSON.

Each word is a case, WORKERS:EXCHANGE[,setting=value…], on the first ranks of the job. It tells each
rank's weights after some steps of one pass over all its videos, and of a pass a video.
"""

import sys
from typing import Any

import torch
from torch import nn

from actionspan.parallel import ParallelSettings, make_replica
from mpi.ranks import from_words, run_cases

VIDEOS = (5, 2, 6, 1, 7)  # of each step: some ranks have one of them or none


class Net(nn.Module):
    """Parameters that all videos use, only the first or the fourth of a step, or none."""

    def __init__(self, kind: torch.dtype) -> None:
        super().__init__()
        self.every = nn.Sequential(nn.Linear(5, 30), nn.Tanh(), nn.Linear(30, 4))
        self.first, self.fourth, self.never = nn.Linear(5, 4), nn.Linear(5, 4), nn.Linear(5, 4)
        self.to(kind)

    def forward(self, video, number):
        rest = {0: self.first, 3: self.fourth}.get(number)
        return self.every(video) + (0 if rest is None else rest(video))


def weights_of(model):
    return torch.cat([each.detach().flatten() for each in model.parameters()]).tolist()


def train(name, settings, comm, passes, last) -> list[float]:
    """Return this rank's weights; `last`: which ranks run their last pass outside the block."""
    kind = torch.float32 if name == "ps_async" else torch.float64
    torch.manual_seed(comm.Get_rank() if comm is not None else 0)  # only rank 0 counts
    model = Net(kind)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
    replica = make_replica(name, model, optimiser, settings, comm)
    outside = {"all": True, "none": False, "odd": replica.rank % 2 == 1}[last]
    for step, count in enumerate(VIDEOS):
        torch.manual_seed(100 + step)
        videos = [torch.randn(3 + number, 5).to(kind) for number in range(count)]
        own = range(count)[replica.share(count)]
        optimiser.zero_grad()
        losses = (model(videos[number], number).square().sum() / 30 for number in own)
        if passes == "one" and own:
            torch.stack(list(losses)).sum().backward()
        elif passes == "several":
            for number, loss in zip(own, losses, strict=True):
                if number == own[-1] and outside:
                    loss.backward()
                else:
                    with replica.accumulating():
                        loss.backward()
        replica.step()
    replica.synchronise()
    weights = weights_of(model)
    replica.close()
    return weights


def run(case: str, comm: Any) -> dict[str, Any]:
    """Train by one pass a step and by several."""
    name, *changes = case.split(",")
    given = dict(change.split("=") for change in changes)
    last, overlap = given.pop("last", "all"), given.pop("overlap", "0") == "1"
    numbers = {key: int(value) for key, value in given.items()}
    settings = ParallelSettings(**{"bucket_kib": 1, "overlap": overlap, **numbers})
    made = {passes: train(name, settings, comm, passes, last) for passes in ("one", "several")}
    return {key: comm.gather(value) for key, value in made.items()} if comm is not None else made


if __name__ == "__main__":
    run_cases(run, from_words(sys.argv[1:]))
