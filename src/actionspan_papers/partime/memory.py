"""Count the bytes that the stages of a pipeline need in each gradient mode."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from actionspan.networks.division import division
from actionspan.running.determinism import deterministic
from actionspan.streaming.balance import StageBytes, layers_of, stage_bytes
from actionspan.streaming.learning import Gradients, Loss, MakeOptimiser
from actionspan.streaming.messages import Value, bytes_of, message_of
from actionspan.streaming.pipeline import Pipeline
from actionspan_papers.experiments import Experiment, Row, Table, values
from actionspan_papers.partime.balance import stages_by_counting
from actionspan_papers.partime.networks import Case, sgd, squared
from actionspan_papers.partime.published import PLAIN
from actionspan_papers.partime.settings import MODES, SpeedSettings

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

_PARTS = [field.name for field in fields(StageBytes)]  # what a stage needs bytes for


def footprints(
    stages: Sequence[nn.Module], sample: Tensor, target: Tensor, loss: Loss, mode: Gradients
) -> list[StageBytes]:
    """Return the bytes of each stage that learns with SGD, by the closed form.

    What autograd saves of the sample is counted, with the loss of the last output and the target.
    """
    found = []
    value: Value = sample
    for index, stage in enumerate(stages):
        arriving = bytes_of(message_of(index, value, "the input").tensors)
        last = index == len(stages) - 1
        saved, value = _saved(stage, value, (lambda out: loss(out, target)) if last else None)
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
    return sum(held.values()), message_of(0, output, "the output").value


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


def _rows(_: argparse.Namespace, settings: SpeedSettings) -> list[Row]:
    """Return a row a network, number of stages, mode and stage."""
    outputs = settings.outputs[-1]
    cases = [
        Case(PLAIN, settings.sides[0], outputs),
        Case("resnet18", settings.encoder_side, outputs),
    ]
    with deterministic(threads=1):
        return [
            row
            for case in cases
            for depth in settings.depths
            for mode in MODES
            for row in _of_stages(case, depth, mode, settings)
        ]


def _of_stages(case: Case, depth: int, mode: Gradients, settings: SpeedSettings) -> list[Row]:
    network, sample = case.network(settings), case.sample()
    target = case.target(network)
    stages, _ = stages_by_counting(layers_of(network, division), sample, depth)
    sizes = footprints(stages, sample, target, squared, mode)
    counted = kept_bytes(stages, sample, target, squared, sgd, mode)
    named = {**case.named, "stages": depth, "mode": mode}
    return [
        {**named, "stage": stage, **asdict(size), "total": size.total, "counted": kept}
        for stage, (size, kept) in enumerate(zip(sizes, counted, strict=True), start=1)
    ]


def _table(*_: object) -> Table:
    caption = [
        "Bytes of each stage that learns with SGD, by the closed form: "
        f"{', '.join(_PARTS)}; saved tensors are those of one sample. `counted` is what the stage "
        "really kept of the past, to compare with `kept`.",
        "PipeDream's D − h + 1 versions of the weights hold for its timetable; in this one `stash` "
        "needs 2(D − h) beside those of now. Cuts are those of counted multiplications.",
    ]
    names = ("network", "stages", "mode", "stage", *_PARTS, "total", "counted")
    return Table(caption=caption, titles={name: name for name in names} | {"stages": "D"})


def _draw(figure: "Figure", rows: "DataFrame", *_: object) -> None:
    from actionspan.files.figures import COLOURS

    networks, depths = rows["network"].unique(), rows["stages"].unique()
    panels = figure.subplots(1, len(networks), squeeze=False)[0]
    for axes, network in zip(panels, networks, strict=True):
        for place, mode in enumerate(MODES):
            totals = [
                sum(values(rows, "total", network=network, stages=depth, mode=mode)) / 2**20
                for depth in depths
            ]
            places = [number + 0.27 * (place - 1) for number in range(len(depths))]
            axes.bar(places, totals, 0.25, color=COLOURS[place], label=mode)
        axes.set_xticks(range(len(depths)), map(str, depths))
        axes.set(title=network, xlabel="stages D")
    panels[0].set_ylabel("all stages (MiB)")
    panels[0].legend(frameon=False)


EXPERIMENT = Experiment(
    rows=_rows, table=_table, figure=_draw, size=(8.4, 3.4), settings=(SpeedSettings,)
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
