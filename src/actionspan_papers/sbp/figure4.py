"""Compare layers of transformers by how they were trained (CKA): figure 4 of paper 004."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from actionspan_papers.experiments import Row, where
from actionspan_papers.kinds import DataFrame
from actionspan_papers.sbp.figure1 import Line, layers_experiment
from actionspan_papers.sbp.published import COMPARED

if TYPE_CHECKING:
    from actionspan_papers.sbp.clips import Trained

_STYLES = {"other": "-", "same": "--"}


def _rows(trained: "Trained") -> Iterable[Row]:
    from actionspan_papers.sbp.layers import similarity_rows

    return similarity_rows(trained)


def _lines(frame: DataFrame) -> dict[str, Line]:
    return {
        f"{way}, {start} start": Line({"way": way, "start": start}, colour, style)
        for start, style in _STYLES.items()
        for colour, way in enumerate(COMPARED)
        if len(where(frame, way=way, start=start))
    }


def _caption(_: "Trained") -> list[str]:
    return [
        "Figure 4: linear CKA (unbiased HSIC) of all activations after each layer between networks "
        "trained end to end and networks trained in each way, over the validation clips of table "
        "3. Mean of the pairs of networks, lowest and highest. Layer 0 is what enters the first.",
        "Other start: networks of different seeds; between two trained end to end it is the "
        "ceiling. Same start: both began with the same random weights (the paper's began with the "
        "same trained ones).",
    ]


EXPERIMENT = layers_experiment(
    _rows, "cka", _lines, _caption, "likeness to end-to-end training", "linear CKA"
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
