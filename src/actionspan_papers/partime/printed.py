"""The claims of paper 002 that its own tables decide, contradictions among them."""

from collections.abc import Iterable
from statistics import mean

from actionspan_papers.claims import Finding, by_print
from actionspan_papers.partime.published import BOLD, SPEEDUPS, Cell, printed

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
