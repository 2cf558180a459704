"""Compare neighbouring frames inside a trained transformer: figure 1 of paper 004."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from actionspan_papers.estimates import Estimate
from actionspan_papers.experiments import Experiment, Row, Table, values, where
from actionspan_papers.kinds import DataFrame, Figure, Flags, Tensor
from actionspan_papers.sbp.published import END_TO_END
from actionspan_papers.sbp.settings import LAYER_KINDS

if TYPE_CHECKING:
    from actionspan_papers.sbp.clips import Clips, Trained
    from actionspan_papers.sbp.transformer import VideoTransformer


class Line(NamedTuple):
    """A line of a measure over the layers: the cells of its rows, and its look.

    Colour 0 is the axes', 1 the first of `COLOURS`.
    """

    cells: Mapping[str, str]
    colour: int
    style: str


def layers_experiment(
    rows: "Callable[[Trained], Iterable[Row]]",
    column: str,
    lines: Callable[[DataFrame], Mapping[str, Line]],
    caption: "Callable[[Trained], Sequence[str]]",
    title: str,
    label: str,
) -> Experiment:
    """Return an experiment on the networks of table 3: a measure by layer.

    Args:
        rows: Returns the rows; their column `layer` is 0 for what enters the first.
        column: The measure.
        lines: Returns the lines of a figure, and of a table, by name.
        caption: Returns the lines above the table.
        title: Of the figure.
        label: Of its axis.
    """

    def read(arguments: Flags) -> "Trained":
        from actionspan_papers.sbp.clips import read_trained

        return read_trained(arguments.networks)

    def table(frame: DataFrame, trained: "Trained") -> Table:
        layers = frame["layer"].unique()
        shown: list[Row] = []
        for name, line in lines(frame).items():
            found = where(frame, **line.cells)
            ranges = {str(layer): _range_of(found, column, layer) for layer in layers}
            shown.append({"line": name, **ranges})
        titles = {"line": "", **{str(layer): f"layer {layer}" for layer in layers}}
        return Table(caption=caption(trained), titles=titles, rows=shown)

    def draw(figure: Figure, frame: DataFrame, _: "Trained") -> None:
        from actionspan.storage.figures import COLOURS, INK

        axes = figure.subplots()
        layers = frame["layer"].unique().tolist()
        for name, line in lines(frame).items():
            found = where(frame, **line.cells)
            ranges = [_range_of(found, column, layer) for layer in layers]
            colour = (INK, *COLOURS)[line.colour]
            lows, highs = [one.low for one in ranges], [one.high for one in ranges]
            axes.fill_between(layers, lows, highs, color=colour, alpha=0.12, linewidth=0)
            means = [one.value for one in ranges]
            look: dict[str, Any] = {"marker": "o", "markersize": 3, "linewidth": 1.4}
            axes.plot(layers, means, line.style, color=colour, label=name, **look)
        axes.set_xticks(layers)
        axes.set(title=title, xlabel="layer (0: what enters the first)", ylabel=label)
        figure.legend(loc="outside right center", frameon=False, fontsize=7.5)

    return Experiment(
        inputs={"networks": "what `papers sbp table3` trained, .pt"},
        read=read,
        rows=rows,
        table=table,
        figure=draw,
        size=(7.2, 3.6),
        forms={column: ".4f"},
        repeatable=True,
    )


def _range_of(frame: DataFrame, column: str, layer: int) -> Estimate:
    """Return the mean of the runs, with the lowest and highest instead of an interval."""
    found = values(frame, column, layer=layer)
    return Estimate(value=float(found.mean()), low=float(found.min()), high=float(found.max()))


def neighbour_cosine(frames: Tensor) -> float:
    """Return the mean cosine of the vectors of each frame and of the next one, of (B, T, P).

    Frames without any value are left out.
    """
    from torch.nn import functional

    cosine = functional.cosine_similarity(frames[:, :-1], frames[:, 1:], dim=2)
    there = (frames.norm(dim=2) > 0).double()
    pairs = there[:, :-1] * there[:, 1:]
    return float((cosine.double() * pairs).sum() / pairs.sum())


def by_frame(nodes: Tensor, frames: int) -> Tensor:
    """Return (B, T, P), all nodes of each frame in one vector, of (B, N, D) nodes."""
    return nodes.reshape(len(nodes), frames, -1)


def _states_and_gradients(
    network: "VideoTransformer", clips: "Clips", batch: int = 100
) -> list[Tensor]:
    """Return the nodes before the first layer and after each, and the loss's gradients there.

    Both are one tensor (2, n, N, D).
    """
    import torch
    from torch.nn import functional

    from actionspan_papers.sbp.clips import states_of

    parts = []
    batches = zip(torch.split(clips.inputs, batch), torch.split(clips.labels, batch), strict=True)
    for inputs, labels in batches:
        states = states_of(network, inputs)
        scores = network.classifier(network.norm(states[-1]).mean(dim=1))
        loss = functional.cross_entropy(scores, labels, reduction="sum")
        gradients = torch.autograd.grad(loss, states)
        both = zip(states, gradients, strict=True)
        parts.append([torch.stack([state.detach(), given]) for state, given in both])
    return [torch.cat(layer, dim=1) for layer in zip(*parts, strict=True)]


def _rows(trained: "Trained") -> Iterator[Row]:
    """Yield a row a seed, kind and layer: the cosine of neighbouring frames of end-to-end nets.

    Activations are also compared without their mean over clips and frames, which all share.
    """
    from actionspan_papers.sbp.clips import training_and_validation

    _, clips = training_and_validation(trained.settings)
    for seed, network in enumerate(trained.networks[END_TO_END], start=1):
        for layer, both in enumerate(_states_and_gradients(network, clips)):
            frames, given = (by_frame(part, network.grid[0]) for part in both)
            centred = frames - frames.mean(dim=(0, 1))
            for kind, nodes in zip(LAYER_KINDS, (frames, centred, given), strict=True):
                cosine = neighbour_cosine(nodes)
                yield {"seed": seed, "kind": kind, "layer": layer, "cosine": cosine}


def _lines(_: DataFrame) -> dict[str, Line]:
    return {
        kind: Line({"kind": kind}, number, style)
        for number, (kind, style) in enumerate(
            zip(LAYER_KINDS, ("-", "--", "-"), strict=True), start=1
        )
    }


def _caption(trained: "Trained") -> list[str]:
    from actionspan_papers.sbp.clips import SECONDS

    apart = float(SECONDS) / trained.settings.frames
    return [
        f"Figure 1: cosine of what belongs to a frame and to the next one, {apart:g} s later, in "
        "the networks of table 3 that were trained end to end, over its validation clips: "
        "activations after each layer, the same without their mean over clips and frames, and the "
        "loss's gradients of them. Mean over seeds, lowest and highest. Layer 0 is what enters the "
        "first.",
        "Above the last layer all nodes go into one mean, so that their gradients there are alike "
        "by construction.",
    ]


EXPERIMENT = layers_experiment(_rows, "cosine", _lines, _caption, "neighbouring frames", "cosine")
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
