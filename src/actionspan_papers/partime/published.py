"""The numbers that paper 002 prints: tables I and II, and figure 3's baselines."""

from collections.abc import Mapping
from itertools import product
from typing import NamedTuple

PLAIN, POOLED = "convolutions", "pooled convolutions"
ENCODERS = ("resnet18", "efficientnet_lite0")
KINDS: Mapping[str, str] = {PLAIN: "plain", POOLED: "pooled", **dict.fromkeys(ENCODERS, "resnet")}
"""Their like in the paper: table I has `plain`, table II `pooled` (top) and `resnet` (bottom)."""


class Cell(NamedTuple):
    """Where a speed-up is printed; R is the side of the images, F the number of outputs."""

    network: str
    work: str
    graph: bool
    side: int
    outputs: int
    stages: int


# Lines are R = 256, then 1024, of F = 1, 10, 100 each. Columns are without CUDA graph: 2, 4, 8
# stages; with: 2, 4, 8. Table II does not name the runs; its text compares it with the
# inference of table I.
_PRINTED: Mapping[tuple[str, str], str] = {
    ("plain", "inference"): """
        1.12 1.17 1.15 1.89 3.74 6.41
        1.09 1.12 1.10 1.68 3.65 6.46
        1.08 1.11 1.08 1.72 3.13 5.05
        1.82 3.28 5.27 1.86 3.87 7.14
        1.82 3.21 5.53 1.88 3.57 6.65
        1.72 2.79 4.44 1.69 2.99 4.81""",
    ("plain", "learning"): """
        1.36 1.45 1.46 1.96 3.80 7.16
        1.38 1.42 1.48 1.99 4.11 7.45
        1.28 1.46 1.48 1.99 3.57 6.70
        1.81 3.43 5.63 1.95 3.66 6.61
        1.85 3.63 6.26 1.95 3.81 7.37
        1.88 3.39 5.57 1.89 3.57 6.35""",
    ("pooled", "inference"): """
        1.16 1.13 1.06 0.78 2.59 4.31
        1.11 1.04 1.00 0.99 2.55 3.48
        1.10 1.06 1.00 1.69 2.67 4.39
        1.63 1.67 1.18 1.43 2.61 2.89
        1.66 1.64 1.38 0.80 1.64 2.52
        1.43 1.63 1.49 1.20 1.24 2.79""",
    ("resnet", "inference"): """
        1.10 1.07 1.04 1.40 2.94 2.11
        1.11 1.04 1.02 1.77 2.99 4.50
        1.11 1.06 0.98 1.66 2.93 4.31
        1.24 1.23 0.99 1.42 2.34 1.50
        1.23 1.20 1.15 1.07 2.72 3.88
        1.27 1.22 1.14 1.69 3.28 2.94""",
}
_MARKED: Mapping[tuple[str, str], str] = {
    ("plain", "inference"): "---bbb ---bbb ---bb- bb-bbb bb-bbb b--bb-",
    ("plain", "learning"): "---bbb ---bbb ---bbb bb-bbb bbbbbb bb-bbb",
    ("pooled", "inference"): "----bb ----b- ---bbb b--bb- b----- b--b--",
    ("resnet", "inference"): "b--bb- b--bbb b--bbb b--bb- b--bb- b--bb-",
}
"""Which of these cells are in bold (b)."""
_PLACES = [
    (graph, side, outputs, stages)
    for side, outputs, graph, stages in product((256, 1024), (1, 10, 100), (False, True), (2, 4, 8))
]

SPEEDUPS: Mapping[Cell, float] = {
    Cell(network, work, *place): float(number)
    for (network, work), text in _PRINTED.items()
    for place, number in zip(_PLACES, text.split(), strict=True)
}
"""The speed-ups of tables I and II."""
BOLD: Mapping[tuple[str, str], frozenset[Cell]] = {
    (network, work): frozenset(
        Cell(network, work, *place)
        for place, mark in zip(_PLACES, text.replace(" ", ""), strict=True)
        if mark == "b"
    )
    for (network, work), text in _MARKED.items()
}
"""Those in bold, by network and work."""

SEQUENTIAL_ACCURACY: Mapping[int, float] = {64: 0.489, 256: 0.553, 1024: 0.639}
"""Figure 3's test accuracy without a pipeline, by the size of the window (CIFAR-10)."""


def printed(**wanted: object) -> dict[Cell, float]:
    """Return the speed-ups of the cells that have these values."""
    return {
        cell: value
        for cell, value in SPEEDUPS.items()
        if all(getattr(cell, name) == each for name, each in wanted.items())
    }


def printed_range(network: str, work: str, stages: int, *, graph: bool) -> str:
    """Return the lowest and highest speed-up of a network and number of stages, as printed."""
    values = printed(network=network, work=work, stages=stages, graph=graph).values()
    return f"{min(values):.2f} to {max(values):.2f}" if values else ""
