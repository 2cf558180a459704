"""Run by mpirun: learners that average their models, on ranks and in one process, as JSON.

Each word is a case, RANKS:METHOD[,setting=value…], on the first ranks of the job. A line tells the
digests of all learners' models, buffers and optimiser states at the ends of three epochs: of the
ranks, of those of a run that was stopped after the first epoch and goes on from its checkpoint, and
of learners in one process.
"""

import hashlib
import sys

import torch
from torch import nn

from actionspan.parallel import InProcessAveraging, ParallelSettings, make_replica
from actionspan.parallel.member import share
from mpi.ranks import from_words, run_cases

EPOCHS, STEPS, BATCH = 3, 5, 11
LAST = 3  # rows of the last batch of an epoch, of which the first of 4 ranks has none


class Net(nn.Module):
    """Batch norm, dropout, and a path that only the last learner takes, in the last batches."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(3, 13, 3)
        self.norm = nn.BatchNorm1d(13)
        self.drop = nn.Dropout(0.3)
        self.last = nn.Linear(13, 2)
        self.rare = nn.Linear(13, 2)

    def forward(self, x, rare):
        hidden = self.drop(self.norm(self.first(x)).relu()).mean(2)
        return self.last(hidden) + (self.rare(hidden) if rare else 0)


def new_learner(seed, optimiser):
    """Return a model and its optimiser; the seed is to count on rank 0 alone."""
    torch.manual_seed(seed)
    model = Net()
    if optimiser == "sgd":
        return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)


def backward(model, optimiser, learner, learners, epoch, step):
    """Compute a learner's gradients of one step."""
    torch.manual_seed(1000 * epoch + step)
    batch = torch.randn(BATCH if step < STEPS - 1 else LAST, 3, 8) + epoch
    rows = share(len(batch), learner, learners)
    optimiser.zero_grad()
    torch.manual_seed(10_000 * epoch + 100 * step + learner)  # dropout
    if rows.stop > rows.start:
        rare = learner == learners - 1 and step == STEPS - 1
        model(batch[rows], rare).square().mean().backward()


def digests(model, optimiser):
    """Return fingerprints of parameters, buffers and the optimiser's state."""
    states = [optimiser.state.get(one, {}) for one in model.parameters()]
    kinds = {
        "parameters": list(model.parameters()),
        "buffers": list(model.buffers()),
        "state": [one[key] for one in states for key in sorted(one)],
    }
    return {
        name: hashlib.sha256(b"".join(x.detach().numpy().tobytes() for x in tensors)).hexdigest()
        for name, tensors in kinds.items()
    }


def train_epoch(averaging, learners, size, epoch):
    """Train learners by their numbers; return each one's digests, its own and in validation."""
    for step in range(STEPS):
        for number, pair in learners.items():
            backward(*pair, number, size, epoch, step)
        averaging.step()
    averaging.synchronise()
    with averaging.first_buffers():
        validated = [digests(*pair) for pair in learners.values()]
    return [[digests(*pair), seen] for pair, seen in zip(learners.values(), validated, strict=True)]


def on_ranks(name, settings, comm, optimiser, stopped=False):
    """Train on ranks; stop after an epoch and go on with new objects from a checkpoint, or not."""
    rank, size = comm.Get_rank(), comm.Get_size()
    model, own_optimiser = new_learner(rank, optimiser)
    replica = make_replica(name, model, own_optimiser, settings, comm)
    made, sent = [], 0
    for epoch in range(EPOCHS):
        made += train_epoch(replica, {rank: (model, own_optimiser)}, size, epoch)
        if stopped and epoch == 0:
            state = comm.bcast((model.state_dict(), own_optimiser.state_dict()), root=0)
            own = replica.own_state()
            assert (own is None) == (rank > 0 or settings.average_state and name == "aavg")
            sent += replica.report().get("sent_bytes", 0)
            replica.close()
            model, own_optimiser = new_learner(50 + rank, optimiser)
            model.load_state_dict(state[0])
            own_optimiser.load_state_dict(state[1])
            replica = make_replica(name, model, own_optimiser, settings, comm)
            replica.restore_own(own)
    report = replica.report()
    sent += report.get("sent_bytes", 0)
    every = comm.gather(made), replica.averages, sum(comm.allgather(sent))
    replica.close()
    return every


def in_one_process(settings, learners, optimiser):
    """Train the same learners without ranks."""
    pairs = [new_learner(number, optimiser) for number in range(learners)]
    averaging = InProcessAveraging(*zip(*pairs, strict=True), settings)
    numbered = dict(enumerate(pairs))
    epochs = [train_epoch(averaging, numbered, learners, epoch) for epoch in range(EPOCHS)]
    return list(zip(*epochs, strict=True)), averaging.averages


def values(optimiser):
    """Return how many values parameters, optimiser state and batch norm have, and tensors."""
    parameters = sum(one.numel() for one in Net().parameters())
    tensors = len(list(Net().parameters()))
    state = parameters if optimiser == "sgd" else 2 * parameters + tensors
    return {"parameters": parameters, "tensors": tensors, "state": state, "channels": 13}


def run(case, comm):
    """Train in all ways; return rank 0's row, or the errors of all ranks where it is refused."""
    name, *changes = case.split(",")
    given = dict(change.split("=") for change in changes)
    optimiser = given.pop("optimiser", "adam")
    settings = ParallelSettings(
        averaging_steps=int(given.get("k", -1)),
        average_state=given.get("whole", "1") == "1",
        wire=given.get("wire", "float32"),
        overlap=given.get("overlap", "0") == "1",
    )
    try:
        made, averages, sent = on_ranks(name, settings, comm, optimiser)
    except ValueError as error:
        return {"errors": comm.gather(str(error))}
    resumed, _, sent_again = on_ranks(name, settings, comm, optimiser, stopped=True)
    if comm.Get_rank():
        return None
    oracle, averages_there = in_one_process(settings, comm.Get_size(), optimiser)
    return {
        "ranks": made,
        "resumed": resumed,
        "in_process": oracle,
        "averages": [averages, averages_there],
        "sent": [sent, sent_again],
        "values": values(optimiser),
    }


if __name__ == "__main__":
    run_cases(run, from_words(sys.argv[1:]))
