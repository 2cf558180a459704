"""The numbers that paper 002 prints (published.tsv: both tables), and the claims they decide."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from statistics import mean
from typing import NamedTuple

from actionspan_papers.claims import Finding, by_print, table_of

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


def _printed_cells() -> Iterator[tuple[Cell, str]]:
    """Yield the cells of tables I and II as they are printed; a star marks bold.

    Table II does not name the work; its text compares it with the inference of table I.
    """
    for row in table_of("partime", "published"):
        for graph, stages in product(("eager", "graph"), (2, 4, 8)):
            place = graph == "graph", int(row["side"]), int(row["outputs"]), stages
            yield Cell(row["network"], row["work"], *place), row[f"{graph} {stages}"]


_CELLS = dict(_printed_cells())
SPEEDUPS: Mapping[Cell, float] = {cell: float(text.rstrip("*")) for cell, text in _CELLS.items()}
"""The speed-ups of tables I and II."""
BOLD: Mapping[tuple[str, str], frozenset[Cell]] = {
    key: frozenset(cell for cell, text in _CELLS.items() if cell[:2] == key and text.endswith("*"))
    for key in dict.fromkeys(cell[:2] for cell in _CELLS)
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


_SHARES = {"plain": 0.8, "pooled": 0.5, "resnet": 0.5}
"""Of D, above which a speed-up is in bold."""


def printed_findings() -> list[Finding]:
    """Judge the statements of sections V-A to V-C by the printed speed-ups."""
    bold = {f"bold_{network}_{work}": _misprinted(network, work) for network, work in BOLD}
    margins = {key: 0.5 - len(wrong) for key, wrong in bold.items()}
    words = {key: f"Differ: {', '.join(wrong) or 'none'}." for key, wrong in bold.items()}
    # 1. the most on eight devices
    seven = printed(network="plain", work="inference", graph=True, side=1024, stages=8).values()
    three = max(printed(network="pooled", side=1024, stages=8).values())
    # 2. learning against inference, and graph against none, cell by cell
    learning = {
        cell: value - SPEEDUPS[cell._replace(work="inference")]
        for cell, value in printed(network="plain", work="learning").items()
    }
    graph = {
        cell: value - SPEEDUPS[cell._replace(graph=False)]
        for cell, value in printed(graph=True).items()
    }
    plain, pooled = (
        {cell: more for cell, more in graph.items() if cell.network == network}
        for network in ("plain", "pooled")
    )
    small, large = (
        mean(more for cell, more in plain.items() if cell.side == side) for side in (256, 1024)
    )
    # 3. shares of D, and the same network with and without skips
    shares = {
        stages: mean(value / stages for value in printed(network="resnet", stages=stages).values())
        for stages in (2, 4, 8)
    }
    alike = mean(printed(network="resnet").values()) - mean(printed(network="pooled").values())
    margins |= {
        **{"seven": min(seven) - 6.5, "three": three - 2.5},  # what rounds to the printed
        **{"learning": min(learning.values()), "graph": small - large},
        "faster": min(printed(network="plain").values()) - 1,
        "graph_pooled": min(pooled.values()),
        **{"faster_too": min(SPEEDUPS.values()) - 1, "skips": 0.25 - abs(alike)},
        "nearer": min(shares[2], shares[4]) - shares[8],
    }
    words |= {
        **{"seven": ", ".join(map(str, seven)), "three": str(three)},
        "learning": _named(cell for cell, more in learning.items() if more < 0),
        "graph_pooled": _named(cell for cell, more in pooled.items() if more < 0),
        "faster_too": _named(cell for cell, value in SPEEDUPS.items() if value < 1),
        "nearer": ", ".join(f"{share:.2f} of {stages}" for stages, share in shares.items()),
    }
    return by_print("partime", margins, words)


def _misprinted(network: str, work: str) -> list[str]:
    """Return the cells that are in bold and should not be, or the other way round."""
    return [
        f"{value:g} of {cell.stages}" + (" in bold" if cell in BOLD[network, work] else " not")
        for cell, value in printed(network=network, work=work).items()
        if (cell in BOLD[network, work]) != (value > _SHARES[network] * cell.stages)
    ]


def _named(cells: Iterable[Cell]) -> str:
    named = [f"{cell.side}/{cell.outputs}, D = {cell.stages}" for cell in cells]
    return f"{len(named)} cells: {'; '.join(named)}"
