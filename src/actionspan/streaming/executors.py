"""The ways to run stages, behind one interface, and the checks that hold for all of them."""

import socket
from collections.abc import Sequence
from typing import Literal, get_args

import torch

from actionspan.streaming.learning import Learning
from actionspan.streaming.sockets import module_tensors
from actionspan.streaming.stage import Module, Options, Part, Place, trainable
from actionspan.streaming.worker import Runs

Executor = Literal["sequential", "thread", "process", "stream", "graph"]


def parts_of_pipeline(stages: Sequence[Module], learning: Sequence[Learning | None]) -> list[Part]:
    """Return the stages with their places.

    Raises:
        ValueError: No stage is given, two share a parameter, or one that learns has no optimiser.
    """
    if not stages:
        raise ValueError("a pipeline needs at least one stage")
    owners: dict[int, int] = {}
    parts, before = [], False
    for index, (module, how) in enumerate(zip(stages, learning, strict=True)):
        tensors = module_tensors(module)
        for tensor in tensors:
            if owners.setdefault(id(tensor), index) != index:
                raise ValueError(
                    f"stages {owners[id(tensor)] + 1} and {index + 1} share a parameter or a "
                    "buffer; each stage learns on its own, so put both into one stage"
                )
        learns = how is not None and bool(trainable(module))
        place = Place(index, len(stages), before or learns, before)
        if learns and how is not None and how.optimiser is None:
            raise ValueError(f"{place} learns and needs an optimiser")
        parts.append(Part(module, place, how))
        before = before or learns
    return parts


def start(
    name: str, parts: list[Part], options: Options, devices: Sequence[torch.device | str] | None
) -> Runs:
    """Return the executor of a name, with all its threads or processes running.

    Raises:
        ValueError: The executor does not exist, or cannot run these stages here.
    """
    if devices is not None and name not in ("stream", "graph"):
        raise ValueError(
            f'devices: executor {name!r} runs on CPU; "stream" or "graph" take devices'
        )
    if name == "sequential":
        from actionspan.streaming.worker import SequentialExecutor

        return SequentialExecutor(parts, options)
    if name == "thread":
        from actionspan.streaming.threads import ThreadExecutor

        return ThreadExecutor(parts, options)
    if name == "process":
        if not hasattr(socket, "send_fds"):
            raise ValueError('executor "process" needs Linux or macOS; use "thread"')
        from actionspan.streaming.processes import ProcessExecutor

        return ProcessExecutor(parts, options)
    if name == "stream":
        from actionspan.streaming.cuda import StreamExecutor

        return StreamExecutor(parts, options, devices)
    if name == "graph":
        from actionspan.streaming.graph import GraphExecutor

        return GraphExecutor(parts, options, devices)
    raise ValueError(f"executor {name!r}: one of {', '.join(get_args(Executor))}")
