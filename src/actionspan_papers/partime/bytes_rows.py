"""The bytes of the stages of a pipeline that learns: by the closed form, and counted in a run."""

from collections.abc import Sequence
from dataclasses import asdict, fields

import torch
from torch import Tensor, nn

from actionspan.jobs.determinism import deterministic
from actionspan.networks.division import Fork, Join, division
from actionspan.streaming.balance import StageBytes, layers_of, stage_bytes
from actionspan.streaming.learning import Gradients
from actionspan.streaming.messages import Value, bytes_of, message_of
from actionspan.streaming.pipeline import Pipeline
from actionspan_papers.experiments import Cell, Row
from actionspan_papers.partime.balance_rows import stages_by_counting
from actionspan_papers.partime.networks import LEARN, Case, Whole, counted_cases, squared
from actionspan_papers.partime.published import ENCODERS, PLAIN
from actionspan_papers.partime.settings import MODES, SpeedSettings

PARTS = [field.name for field in fields(StageBytes)]  # what a stage needs bytes for


def footprints(
    stages: Sequence[nn.Module], sample: Tensor, target: Tensor, mode: Gradients
) -> list[StageBytes]:
    """Return the bytes of each stage that learns with SGD, by the closed form.

    What autograd saves of the sample is counted, with `squared` of the last output and the target.
    """
    found = []
    value: Value = sample
    for index, stage in enumerate(stages):
        arriving = bytes_of(message_of(index, value, "the input").tensors)
        last = index == len(stages) - 1
        saved, value = _saved(stage, value, target if last else None)
        buffers = bytes_of(tuple(stage.buffers()))
        size = stage_bytes(
            index,
            len(stages),
            gradients=mode,
            weights=bytes_of(tuple(stage.parameters())) + buffers,
            learned=bytes_of(tuple(p for p in stage.parameters() if p.requires_grad)),
            saved=saved,
            message=arriving,
            signal=bytes_of(message_of(index, value, "the output").tensors),
            target=bytes_of((target,)),
            buffers=buffers,
        )
        found.append(size)
    return found


def _saved(stage: nn.Module, value: Value, target: Tensor | None) -> tuple[int, Value]:
    """Return the bytes that autograd saves except weights and input, and the output."""
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
        if target is not None:
            squared(output, target)
    return sum(held.values()), message_of(0, output, "the output").value


def kept_bytes(
    stages: Sequence[nn.Module], sample: Tensor, target: Tensor, mode: Gradients
) -> list[int]:
    """Return the bytes of inputs, buffers and weights that each stage keeps of the past."""
    with Pipeline(stages, gradients=mode, **LEARN) as pipeline:
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


def memory_rows(settings: SpeedSettings) -> list[Row]:
    """Return a row a network, number of stages, mode and stage."""
    chosen = (PLAIN, settings.sides[0]), ("resnet18", settings.encoder_side)
    with deterministic(threads=1):
        return [
            row
            for name, side in chosen
            for depth in settings.depths
            for mode in MODES
            for row in _of_stages(Case(name, side, settings.outputs[-1]), depth, mode, settings)
        ]


def _of_stages(case: Case, depth: int, mode: Gradients, settings: SpeedSettings) -> list[Row]:
    network, sample = case.network(settings), case.sample()
    target = case.target(network)
    stages = stages_by_counting(layers_of(network, division), sample, depth)
    sizes = footprints(stages, sample, target, mode)
    counted = kept_bytes(stages, sample, target, mode)
    named = {**case.named, "stages": depth, "mode": mode}
    return [
        {**named, "stage": stage, **asdict(size), "total": size.total, "counted": kept}
        for stage, (size, kept) in enumerate(zip(sizes, counted, strict=True), start=1)
    ]


def message_rows(settings: SpeedSettings) -> list[Row]:
    """Return a row a network and number of stages."""
    with deterministic(threads=1):
        return [row for case in counted_cases(settings) for row in _of_cuts(case, settings)]


def _of_cuts(case: Case, settings: SpeedSettings) -> list[Row]:
    network, sample = case.network(settings).eval(), case.sample()
    layers = layers_of(network, division)
    blocks = _blocks(layers) if case.name in ENCODERS else []
    found: list[Row] = []
    for depth in settings.depths:
        stages = stages_by_counting(layers, sample, depth)
        sent = cut_bytes(stages, sample)
        row: dict[str, Cell] = {
            **case.named,
            "stages": depth,
            "crossed": sum(both > main for both, main in sent),
            "bytes_with_skips": sum(both for both, _ in sent),
            "bytes_without_skips": sum(main for _, main in sent),
            "bound": stages.bound,
            "bytes_whole_blocks": "",
            "bound_whole_blocks": "",
        }
        if len(blocks) >= depth:
            whole = stages_by_counting(blocks, sample, depth)
            row["bytes_whole_blocks"] = sum(both for both, _ in cut_bytes(whole, sample))
            row["bound_whole_blocks"] = whole.bound
        found.append(row)
    return found


def cut_bytes(stages: Sequence[nn.Module], sample: Value) -> list[tuple[int, int]]:
    """Return for each cut the bytes of the message, and of its first tensor alone."""
    sent, value = [], sample
    for stage in stages[:-1]:
        value = stage(value)
        tensors = message_of(0, value, "the output").tensors
        sent.append((bytes_of(tensors), bytes_of(tensors[:1])))
    return sent


def _blocks(links: Sequence[nn.Module]) -> list[nn.Module]:
    """Return a chain with its residual blocks left whole: from a `Fork` to its `Join`."""
    blocks: list[list[nn.Module]] = []
    inside = False
    for link in links:
        if not inside:
            blocks.append([])
        blocks[-1].append(link)
        inside = isinstance(link, Fork) or (inside and not isinstance(link, Join))
    return [Whole(block) for block in blocks]
