"""The mean of several learners' models: paper 003, algorithms 1 (line 12) and 2.

The arithmetic is the same for learners in one process and on many ranks: it asks for nothing but
a function that sums flat tensors over all learners.
"""

import copy
import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from actionspan.parallel.rounds import block_bounds
from actionspan.parallel.transfer import zeros

Total = Callable[[list[Tensor]], None]
"""Sums float32 or float64 tensors (M,), one of each learner at hand, over all learners in place."""


class Learner(NamedTuple):
    """A model in training, alike in all learners but for its values."""

    model: nn.Module
    optimiser: torch.optim.Optimizer


def ring_sum(tensors: Sequence[Tensor]) -> None:
    """Sum tensors in place, in the order of `ring_allreduce`: the same bits without ranks.

    Block b begins with rank b's values, and each rank to the right adds its own.

    Args:
        tensors: (M,) of each rank, float32 or float64.
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
def average(learners: Sequence[Learner], total: Total, count: int, whole_state: bool) -> None:
    """Give all learners the mean of their parameters, and of their other state if asked.

    Averaged are the parameters that the optimiser may change. With `whole_state` (the paper's
    customised optimiser) also

    - all tensors of the optimiser's state: Adam's m, v and step, SGD's momentum. A learner that
      had no gradient of a parameter yet, and so no state, counts as one whose state is zero;
    - the running mean and variance of each batch norm, by the law of total variance: the mean of
      the variances plus the variance of the means. The paper's z/P - m² is the same in exact
      arithmetic, but the difference of two large numbers. torch's running variance is a running
      mean of unbiased variances of batches; these are combined as they are, and the means' spread
      is divided by P, not P - 1: the P learners' data are all there is;
    - all other buffers; the mean of whole numbers is rounded.

    Without it, learners keep their own optimiser state and buffers.

    Args:
        learners: Those at hand.
        total: Sums over all learners.
        count: How many learners there are, P.
        whole_state: Whether to average all that training changes.
    """
    parameters = [trained(learner.optimiser) for learner in learners]
    if not whole_state:
        _replace_by_mean(parameters, total, count)
        return
    known = [
        torch.tensor([float(bool(optimiser.state.get(one))) for one in own])
        for (_, optimiser), own in zip(learners, parameters, strict=True)
    ]
    with_flags = [[*own, flags] for own, flags in zip(parameters, known, strict=True)]
    _replace_by_mean(with_flags, total, count)
    states = [
        _state(optimiser, [one for one, flag in zip(own, flags, strict=True) if flag > 0])
        for (_, optimiser), own, flags in zip(learners, parameters, known, strict=True)
    ]
    _replace_by_mean(states, total, count)
    _average_buffers([learner.model for learner in learners], total, count)


def trained(optimiser: torch.optim.Optimizer) -> list[nn.Parameter]:
    """Return the parameters that an optimiser may change."""
    groups = optimiser.param_groups
    return [one for group in groups for one in group["params"] if one.requires_grad]


def _state(optimiser: torch.optim.Optimizer, parameters: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors of the optimiser's state of these parameters, making what is not there."""
    group_of = {one: group for group in optimiser.param_groups for one in group["params"]}
    tensors = []
    for parameter in parameters:
        if not optimiser.state.get(parameter):
            # only the optimiser itself knows its state: let a twin make a step at a stand-in
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


def _average_buffers(models: Sequence[nn.Module], total: Total, count: int) -> None:
    """Average in float64, which leaves alone what is equal in all learners."""
    norms = [_statistics(model) for model in models]
    means = [[mean for mean, _ in own] for own in norms]
    variances = [[variance for _, variance in own] for own in norms]
    others = []
    for model, own_means, own_variances in zip(models, means, variances, strict=True):
        statistics = {id(one) for one in (*own_means, *own_variances)}
        others.append([one for one in model.buffers() if id(one) not in statistics])

    first = [[*one, *two] for one, two in zip(means, others, strict=True)]
    wide = [[one.double() for one in own] for own in first]
    _replace_by_mean(wide, total, count)
    spread = [
        [
            variance.double() + (mean.double() - common) ** 2
            for variance, mean, common in zip(own_variances, own_means, own_wide, strict=False)
        ]
        for own_variances, own_means, own_wide in zip(variances, means, wide, strict=True)
    ]
    _replace_by_mean(spread, total, count)
    for own, values in zip((*first, *variances), (*wide, *spread), strict=True):
        for tensor, value in zip(own, values, strict=True):
            tensor.copy_(value if tensor.is_floating_point() else value.round())


def _statistics(model: nn.Module) -> list[tuple[Tensor, Tensor]]:
    """Return the running mean and variance of each normalisation that has them."""
    pairs = [
        (one.running_mean, one.running_var) for one in model.modules() if isinstance(one, _NormBase)
    ]
    return [
        (mean, variance) for mean, variance in pairs if mean is not None and variance is not None
    ]


def _replace_by_mean(columns: Sequence[Sequence[Tensor]], total: Total, count: int) -> None:
    """Replace the tensors of each learner at hand by their means over all learners.

    Args:
        columns: Each learner's tensors, alike in number and shapes. They travel as one flat
            float32 tensor and one of float64, for those that are.
        total: Sums over all learners.
        count: How many learners there are.
    """
    for kind in (torch.float32, torch.float64):
        chosen = [[one for one in own if _wide(one) == kind] for own in columns]
        if not chosen[0]:
            continue
        flats = []
        for own in chosen:
            # optimisers keep some of their state on the CPU whatever the parameters' device
            flat = zeros(sum(one.numel() for one in own), kind, own[0].device)
            for part, one in _parts(flat, own):
                part.copy_(one)
            flats.append(flat)
        total(flats)
        for own, flat in zip(chosen, flats, strict=True):
            flat /= count
            for part, one in _parts(flat, own):
                one.copy_(part if one.is_floating_point() else part.round())


def _wide(tensor: Tensor) -> torch.dtype:
    whole = not tensor.is_floating_point()
    return torch.float64 if whole or tensor.dtype == torch.float64 else torch.float32


def _parts(flat: Tensor, tensors: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
    parts = torch.split(flat, [one.numel() for one in tensors])
    return [(part.view_as(one), one) for part, one in zip(parts, tensors, strict=True)]
