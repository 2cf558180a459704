"""Run by mpirun: the `actionspan` command with a fault in one rank.

The first word is the fault, DEED@PLACE:RANK:COUNT, e.g. `raise@step:1:7`: rank 1 raises before its
seventh training step; `-` is none. The words after it are the command's. `slow` is for that time
and all that follow; the place `start` is before MPI starts, `exchange` before gradients or models
are exchanged.
"""

import os
import resource
import signal
import sys
import time
from types import ModuleType
from typing import Any

import torch


def leave_the_compiler_out() -> None:
    """Do without torch's compiler, which training never calls: half of the time of the start."""
    dynamo, inductor, config = (
        ModuleType(f"torch.{name}") for name in ("_dynamo", "_inductor", "_inductor.config")
    )
    vars(dynamo)["disable"] = lambda function, recursive=True, *, wrapping=True: function
    vars(dynamo)["graph_break"] = lambda: None
    vars(inductor)["config"] = config
    torch._dynamo, torch._inductor = dynamo, inductor
    sys.modules.update({module.__name__: module for module in (dynamo, inductor, config)})


def fail() -> None:
    raise RuntimeError("a bug of this rank")


def full() -> None:
    """Let no file grow beyond 100 bytes; bytecode would be left cut off."""
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


DEEDS = {
    "raise": fail,
    "sleep": lambda: time.sleep(600),
    "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "slow": lambda: time.sleep(0.05),
    "full": full,
}
PLACES = {
    "read": "read_samples",
    "step": "training_step",
    "data": "batches",
    "validation": "validate",
    "checkpoint": "write_sealed",
    "exchange": "make_replica",
}


def put_in_place(fault: str) -> None:
    """Put the fault in its place, if it is this rank's."""
    from actionspan.parallel.launch import world
    from actionspan.temporal import training as train_module
    from actionspan.training import trainer

    where, rank, count = fault.split(":")
    deed, place = where.split("@")
    if place == "start":
        if os.environ.get("PMI_RANK", "0") == rank:
            DEEDS[deed]()
        return
    if world().Get_rank() != int(rank):
        return
    module: Any = trainer if place in ("checkpoint", "exchange") else train_module
    module = train_module.TemporalTrainer if place == "validation" else module
    original, left = getattr(module, PLACES[place]), int(count)

    def counted() -> None:
        nonlocal left
        left -= 1
        if not left or (left < 0 and deed == "slow"):
            DEEDS[deed]()

    def call(*arguments, **options):
        counted()
        return original(*arguments, **options)

    def items(*arguments):
        for item in original(*arguments):
            counted()
            yield item

    def replica(*arguments, **options):
        made = original(*arguments, **options)
        step = made.step
        made.step = lambda: (counted(), step())[1]
        return made

    ways = {"data": items, "exchange": replica}
    setattr(module, PLACES[place], ways.get(place, call))


if __name__ == "__main__":
    fault = sys.argv.pop(1)
    if not {"gloo", "periodic"} & set(sys.argv):  # torch.distributed imports the compiler
        leave_the_compiler_out()
    from actionspan.cli import main
    from actionspan.jobs.supervisor import supervise

    supervise(sys.argv[1:])  # as `main` does first, before there is an MPI
    if fault != "-":
        put_in_place(fault)
    sys.exit(main())
