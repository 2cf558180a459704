"""The closed form of the gradients of a pipeline, from whole histories of inputs and weights.

It shares no code with the engine: every factor of the product is evaluated on its own, at the input
and the weights that the formula names.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from streaming.networks import squared

Weights = dict[str, Tensor]


class Found(NamedTuple):
    """Gradients of each stage, step and parameter, outputs of samples, and the last weights."""

    gradients: list[dict[int, list[Tensor]]]
    outputs: list[Tensor]
    weights: list[Weights]


def closed_form(
    stages: Sequence[nn.Module],
    samples: Sequence[tuple[Tensor, Tensor]],
    rate: float,
    mode: str = "paper",
    *,
    printed: bool = False,
) -> Found:
    """Run the equations of the pipeline step by step with plain SGD.

    `printed` evaluates the Jacobian of stage h + 1 at the input of step t, and the last factor with
    the weights of step t - 1, as equations (8), (10) and (11) of the paper have it.
    """
    count, last = len(stages), len(samples)
    steps = last + (count - 1) * (1 if mode == "paper" else 2)
    weights: list[list[Weights]] = [
        [{name: w.detach().clone() for name, w in stage.named_parameters()}] for stage in stages
    ]
    inputs: list[dict[int, Tensor]] = [
        {t: x for t, (x, _) in enumerate(samples)},
        *({} for _ in range(count - 1)),
    ]
    made: list[dict[int, Tensor]] = [{} for _ in stages]
    gradients: list[dict[int, list[Tensor]]] = [{} for _ in stages]
    for t in range(steps):
        for h, stage in enumerate(stages):
            if t in inputs[h]:
                made[h][t] = functional_call(stage, weights[h][t], (inputs[h][t],)).detach()
                if h + 1 < count:
                    inputs[h + 1][t + 1] = made[h][t]
        for h in range(count):
            weights[h].append(dict(weights[h][t]))
            signal = _signal(stages, samples, weights, inputs, made, h, t, mode, printed)
            if signal is None:
                continue
            at, version = _place(h, h, t, count, mode)
            if at not in inputs[h]:
                continue
            if printed:
                version = max(0, version - 1)
            wanted = {k: w.clone().requires_grad_() for k, w in weights[h][version].items()}
            output = functional_call(stages[h], wanted, (inputs[h][at],))
            result = torch.autograd.grad(output, list(wanted.values()), signal)
            gradients[h][t] = list(result)
            for (name, value), gradient in zip(weights[h][t].items(), result, strict=True):
                weights[h][t + 1][name] = torch.add(value, gradient, alpha=-rate)
    outputs = [made[-1][t] for t in sorted(made[-1])]
    return Found(gradients, outputs, [history[-1] for history in weights])


def _place(k: int, h: int, t: int, count: int, mode: str) -> tuple[int, int]:
    """Return the step of the input and that of the weights of stage k's factor in q_h(t)."""
    now = t - (k - h)
    sample = t + h - 2 * count + 2
    if mode == "paper":
        return now, now
    return sample + k, now if mode == "inputs" else sample + k


def _signal(
    stages: Sequence[nn.Module],
    samples: Sequence[tuple[Tensor, Tensor]],
    weights: list[list[Weights]],
    inputs: list[dict[int, Tensor]],
    made: list[dict[int, Tensor]],
    h: int,
    t: int,
    mode: str,
    printed: bool,
) -> Tensor | None:
    """Return u_h(t), the gradient of the loss through all stages right of h, if there is one."""
    count = len(stages)
    sample = t + h - 2 * count + 2
    if not 0 <= sample < len(samples):
        return None
    output = made[-1][sample + count - 1].requires_grad_()
    (signal,) = torch.autograd.grad(squared(output, samples[sample][1]), output)
    for k in range(count - 1, h, -1):
        at, version = _place(k, h, t, count, mode)
        given = inputs[k].get(at)
        if printed and k == h + 1:
            given = made[h].get(t)
        if given is None:
            return None
        given = given.detach().requires_grad_()
        answer = functional_call(stages[k], weights[k][version], (given,))
        (signal,) = torch.autograd.grad(answer, given, signal)
    return signal
