"""The mean of several learners' models: paper 003, algorithms 1 (line 12) and 2.

The arithmetic is the same for learners in one process and on many ranks: all it needs is a function
that sums flat tensors over all learners.
"""

import copy
import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from actionspan.parallel.ring import block_bounds
from actionspan.parallel.transfer import zeros

_Total = Callable[[list[Tensor]], None]
"""Sums float32 or float64 tensors (M,), one a learner at hand, in place over all learners."""


class Learner(NamedTuple):
    """A model in training; all learners have the same structure."""

    model: nn.Module
    optimiser: torch.optim.Optimizer

    def own_state(self) -> dict[str, Any]:
        """Return what averages of parameters leave to each learner: its own tensors, no copies."""
        return {"optimiser": self.optimiser.state_dict(), "buffers": list(self.model.buffers())}

    @torch.no_grad()
    def restore_own(self, state: dict[str, Any]) -> None:
        """Take over a copy of an `own_state`."""
        self.optimiser.load_state_dict(copy.deepcopy(state["optimiser"]))
        for buffer, value in zip(self.model.buffers(), state["buffers"], strict=True):
            buffer.copy_(value)


def ring_sum(tensors: Sequence[Tensor]) -> None:
    """Sum tensors, (M,) for each rank, in place in the order of `ring_allreduce`: the same bits.

    Block b starts with rank b's values, and each rank to the right adds its own.
    """
    size = len(tensors)
    bounds = block_bounds(len(tensors[0]), size)
    for block, (begin, end) in enumerate(itertools.pairwise(bounds)):
        total = tensors[block][begin:end].clone()
        for further in range(1, size):
            total += tensors[(block + further) % size][begin:end]
        for tensor in tensors:
            tensor[begin:end] = total


@torch.no_grad()
def average(learners: Sequence[Learner], total: _Total, count: int, whole_state: bool) -> None:
    """Give all learners the mean of their parameters, and of their remaining state if asked.

    `learners` are those at hand of P = `count`; `total` sums over all. Averaged are the parameters
    that the optimiser may change. With `whole_state` (the paper's customised optimiser) also

    - all tensors of the optimiser's state: Adam's m, v and step, SGD's momentum. Where a learner
      has had no gradient of a parameter yet, and so has no state, its state counts as zero;
    - the running mean and variance of each batch norm, by the law of total variance: the mean of
      the variances plus the variance of the means. The paper's z/P - m² is the same in exact
      arithmetic, but the difference of two large numbers. torch's running variance is a running
      mean of unbiased variances of batches; these are combined as they are, and the spread of the
      means is divided by P, not P - 1: the P learners' data are all there is;
    - all other buffers; means of integers are rounded.

    Otherwise learners keep their own optimiser state and buffers.
    """
    parameters = [trained(learner.optimiser) for learner in learners]
    if not whole_state:
        _replace_by_mean(parameters, total, count)
        return

    # parameters, with a flag for each that has optimiser state
    flags = [
        torch.tensor([float(bool(optimiser.state.get(parameter))) for parameter in own])
        for (_, optimiser), own in zip(learners, parameters, strict=True)
    ]
    with_flags = [[*own, own_flags] for own, own_flags in zip(parameters, flags, strict=True)]
    _replace_by_mean(with_flags, total, count)

    # the state of each parameter for which any learner has some
    states = [
        _state(optimiser, list(itertools.compress(own, own_flags > 0)))
        for (_, optimiser), own, own_flags in zip(learners, parameters, flags, strict=True)
    ]
    _replace_by_mean(states, total, count)
    _average_buffers([learner.model for learner in learners], total, count)


def trained(optimiser: torch.optim.Optimizer) -> list[nn.Parameter]:
    """Return the parameters that an optimiser may change."""
    groups = optimiser.param_groups
    return [each for group in groups for each in group["params"] if each.requires_grad]


def _state(optimiser: torch.optim.Optimizer, parameters: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors of the optimiser's state of these parameters, making missing ones."""
    group_of = {each: group for group in optimiser.param_groups for each in group["params"]}
    tensors = []
    for parameter in parameters:
        if not optimiser.state.get(parameter):
            # only the optimiser itself knows its state: a twin takes a step with a stand-in
            stand_in = torch.zeros_like(parameter)
            stand_in.grad = torch.zeros_like(parameter)
            twin = copy.copy(optimiser)
            twin.state = defaultdict(dict)
            twin.param_groups = [{**group_of[parameter], "params": [stand_in]}]
            twin.step()
            state = twin.state[stand_in]
            for value in state.values():
                if isinstance(value, Tensor):
                    value.zero_()
            optimiser.state[parameter] = state
        state = optimiser.state[parameter]
        tensors += [state[key] for key in sorted(state) if isinstance(state[key], Tensor)]
    return tensors


def _average_buffers(models: Sequence[nn.Module], total: _Total, count: int) -> None:
    """Average in float64, which leaves values unchanged that are equal in all learners."""
    # each model's means and variances of normalisations, and its other buffers
    norms = [_statistics(model) for model in models]
    means = [[mean for mean, _ in own] for own in norms]
    variances = [[variance for _, variance in own] for own in norms]
    others = []
    for model, own in zip(models, norms, strict=True):
        statistics = {id(tensor) for pair in own for tensor in pair}
        others.append([buffer for buffer in model.buffers() if id(buffer) not in statistics])

    # the means first, since the spread is around the common mean
    first = [[*own, *rest] for own, rest in zip(means, others, strict=True)]
    # copies: the means themselves are still needed
    wide = [[tensor.to(torch.float64, copy=True) for tensor in own] for own in first]
    _replace_by_mean(wide, total, count)
    spread = [
        [
            variance.double() + (mean.double() - common) ** 2
            for (mean, variance), common in zip(own, own_wide, strict=False)
        ]
        for own, own_wide in zip(norms, wide, strict=True)
    ]
    _replace_by_mean(spread, total, count)

    for tensors, values in zip((*first, *variances), (*wide, *spread), strict=True):
        for tensor, value in zip(tensors, values, strict=True):
            tensor.copy_(value if tensor.is_floating_point() else value.round())


def _statistics(model: nn.Module) -> list[tuple[Tensor, Tensor]]:
    """Return the running mean and variance of each normalisation that has them."""
    norms = [module for module in model.modules() if isinstance(module, _NormBase)]
    pairs = [(norm.running_mean, norm.running_var) for norm in norms]
    return [(mean, var) for mean, var in pairs if mean is not None and var is not None]


def _replace_by_mean(columns: Sequence[Sequence[Tensor]], total: _Total, count: int) -> None:
    """Replace the tensors of each learner at hand by their means over all learners.

    They have the same shapes in all learners, and travel as one flat float32 tensor, and one of
    float64 for float64 and integers.
    """
    for kind in (torch.float32, torch.float64):
        chosen = [[tensor for tensor in own if _wide(tensor) == kind] for own in columns]
        if not chosen[0]:
            continue
        flats = []
        for own in chosen:
            # optimisers keep some of their state on the CPU whatever the parameters' device
            flat = zeros(sum(tensor.numel() for tensor in own), kind, own[0].device)
            for part, tensor in _parts(flat, own):
                part.copy_(tensor)
            flats.append(flat)
        total(flats)
        for own, flat in zip(chosen, flats, strict=True):
            flat /= count
            for part, tensor in _parts(flat, own):
                tensor.copy_(part if tensor.is_floating_point() else part.round())


def _wide(tensor: Tensor) -> torch.dtype:
    narrow = tensor.is_floating_point() and tensor.dtype != torch.float64
    return torch.float32 if narrow else torch.float64


def _parts(flat: Tensor, tensors: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
    parts = torch.split(flat, [tensor.numel() for tensor in tensors])
    return [(part.view_as(tensor), tensor) for part, tensor in zip(parts, tensors, strict=True)]
