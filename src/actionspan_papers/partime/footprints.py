"""The bytes of the stages of a pipeline that learns: by the closed form, and counted in a run."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from actionspan.streaming.balance import StageBytes, stage_bytes
from actionspan.streaming.learning import Gradients, Loss, MakeOptimiser
from actionspan.streaming.messages import Value, bytes_of, message_of
from actionspan.streaming.pipeline import Pipeline


def footprints(
    stages: Sequence[nn.Module],
    sample: Tensor,
    target: Tensor,
    loss: Loss,
    mode: Gradients,
    moments: int = 0,
) -> list[StageBytes]:
    """Return the bytes of each stage by the closed form; what autograd saves is counted.

    Args:
        stages: In order.
        sample: As the first takes it.
        target: Of the sample.
        loss: Of the last output and the target.
        mode: Where Jacobians are taken.
        moments: Numbers that the optimiser keeps of each parameter: 0 of SGD, 2 of Adam.
    """
    found = []
    value: Value = sample
    for index, stage in enumerate(stages):
        arriving = bytes_of(message_of(index, value, "the input").tensors)
        last = index == len(stages) - 1
        saved, value = _saved(stage, value, (lambda out: loss(out, target)) if last else None)
        learned = bytes_of(tuple(p for p in stage.parameters() if p.requires_grad))
        buffers = bytes_of(tuple(stage.buffers()))
        found.append(
            stage_bytes(
                index,
                len(stages),
                gradients=mode,
                weights=bytes_of(tuple(stage.parameters())) + buffers,
                learned=learned,
                optimiser=moments * learned,
                saved=saved,
                message=arriving,
                signal=bytes_of(message_of(index, value, "the output").tensors),
                target=bytes_of((target,)),
                buffers=buffers,
            )
        )
    return found


def kept_bytes(
    stages: Sequence[nn.Module],
    sample: Tensor,
    target: Tensor,
    loss: Loss,
    optimiser: MakeOptimiser,
    mode: Gradients,
) -> list[int]:
    """Return the bytes of inputs, buffers and weights that each stage keeps of the past."""
    with Pipeline(stages, loss=loss, optimiser=optimiser, gradients=mode) as pipeline:
        for _ in range(4 * len(stages) + 1):  # the weights of the fill are gone
            pipeline.step(sample, target)
        states = pipeline.state_dict()["stages"]
    counted = []
    for state in states:
        history = state["history"] or {"kept": []}
        held: dict[int, Tensor] = {}
        for _, message, _, buffers, weights in history["kept"]:
            tensors = [*message[1], *buffers.values(), *(weights or {}).values()]
            held |= {tensor.data_ptr(): tensor for tensor in tensors}
        counted.append(bytes_of(tuple(held.values())))
    return counted


def _saved(
    stage: nn.Module, value: Value, loss: Callable[[Value], Tensor] | None
) -> tuple[int, Value]:
    """Return the bytes that autograd saves of a sample beside weights and input, and the output."""
    given = message_of(0, value, "the input")
    inputs = [tensor.requires_grad_() for tensor in given.tensors]
    known = {t.untyped_storage().data_ptr() for t in [*inputs, *stage.parameters()]}
    held: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            held[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
        output: Value = stage(inputs[0] if given.alone else tuple(inputs))
        if loss is not None:
            loss(output)
    plain = message_of(0, output, "the output").value
    return sum(held.values()), plain
