"""The claims of paper 002 about speed, balance, messages, delay and memory."""

from collections.abc import Mapping, Sequence
from statistics import mean, median
from typing import Any

import numpy as np

from actionspan.papers.claims import NOT_REPRODUCED, REPRODUCED, Claim, Finding, Verdict
from actionspan.papers.partime.learning_claims import OURS, exact, judged
from actionspan.papers.partime.names import ENCODERS, PLAIN, POOLED
from actionspan.papers.partime.published import SPEEDUPS
from actionspan.papers.partime.timeline_report import delays
from actionspan.papers.rows import Row, distinct, values

BOLD = 0.8
"""Share of D from which the paper prints a speed-up in bold."""
_TWO = 2


def speed_findings(rows: Sequence[Row], confidence: float, cores: int) -> list[Finding]:
    """Judge the claims on measured speed-ups of two stages; a busy machine leaves them open."""
    measured = [row for row in rows if row["measured"] and row["network"] == PLAIN]
    sides = sorted(distinct(measured, "R"), key=int)
    loads = [float(row["load"]) for row in measured]
    busy = ""
    if not measured:
        busy = "Two stages were not measured: there are fewer than two cores."
    elif median(loads) > cores + 1:
        busy = (
            f"The machine was busy (load {median(loads):.1f} on {cores} cores): run it again when "
            "it is free."
        )
    best = _best(measured)
    found = []
    for work in ("inference", "learning"):
        claim = Claim(
            text=f"two stages reach more than {100 * BOLD:g} % of twice the speed",
            source="002, table I",
            better=f"D = 2, R = {sides[-1] if sides else ''}",
            worse=f"{BOLD * _TWO:g}",
            measure=f"speed-up, {work}",
            key=work,
            published=_printed(work=work, side=1024) - BOLD * _TWO,
        )
        reached = [
            value
            for (side, _, own), values_ in best.items()
            if side == sides[-1] and own == work
            for value in values_
        ]
        found.append(
            claim.judged(busy) if busy else judged(claim, np.array(reached) - 1.6, confidence)
        )
    more = Claim(
        text="learning speeds up more than inference",
        source="002, table I",
        better="learning, D = 2",
        worse="inference, D = 2",
        measure="speed-up",
        key="work",
        published=_printed(work="learning") - _printed(work="inference"),
    )
    larger = Claim(
        text="larger images speed up more",
        source="002, table I without graph",
        better=f"D = 2, R = {sides[-1] if sides else ''}",
        worse=f"D = 2, R = {sides[0] if sides else ''}",
        measure="speed-up",
        key="R",
        published=_printed(side=1024, graph=False) - _printed(side=256, graph=False),
    )
    if busy:
        return [*found, more.judged(busy), larger.judged(busy)]
    middle = {key: median(values_) for key, values_ in best.items()}
    by_work = [
        middle[side, outputs, "learning"] - value
        for (side, outputs, work), value in middle.items()
        if work == "inference"
    ]
    by_side = [
        middle[sides[-1], outputs, work] - value
        for (side, outputs, work), value in middle.items()
        if side == sides[0]
    ]
    return [
        *found,
        judged(more, np.array(by_work), confidence),
        judged(larger, np.array(by_side), confidence),
    ]


def _best(rows: Sequence[Row]) -> Mapping[tuple[str, str, str], list[float]]:
    """Return the speed-ups of the pairs by R, F and work, of the executor that is faster."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for side, outputs, work in dict.fromkeys((row["R"], row["F"], row["work"]) for row in rows):
        each = [
            list(map(float, values(rows, "measured", R=side, F=outputs, work=work, executor=name)))
            for name in distinct(rows, "executor")
        ]
        found[side, outputs, work] = max(each, key=median)
    return found


def _printed(
    network: str = "plain",
    work: str | None = None,
    side: int | None = None,
    stages: int = _TWO,
    *,
    graph: bool = True,
) -> float:
    """Return the mean of the speed-ups that the paper prints for these."""
    return mean(
        value
        for cell, value in SPEEDUPS.items()
        if (cell.network, cell.stages, cell.graph) == (network, stages, graph)
        and work in (None, cell.work)
        and side in (None, cell.side)
    )


def balance_findings(rows: Sequence[Row]) -> list[Finding]:
    """Judge that pooling unbalances stages, by counted multiplications."""
    side = max(distinct([row for row in rows if row["network"] == PLAIN], "R"), key=int)
    found = []
    for stages in sorted(distinct(rows, "stages"), key=int):
        bounds = [
            float(
                values(rows, "bound_by_operations", network=network, R=side, stages=stages).mean()
            )
            for network in (PLAIN, POOLED)
        ]
        printed = None
        if int(stages) in (2, 4, 8):
            pair = [
                _printed(network, "inference", stages=int(stages))
                for network in ("plain", "pooled")
            ]
            printed = pair[0] - pair[1]
        claim = Claim(
            text="pooling leaves stages unbalanced",
            source="002, tables I and II",
            better=f"{PLAIN}, D = {stages}",
            worse=f"{POOLED}, D = {stages}",
            measure="bound of the speed-up, by counting",
            key=stages,
            published=printed,
        )
        found.append(claim.judged(exact(bounds[0] - bounds[1], claim.form)))
    return found


def message_findings(rows: Sequence[Row]) -> list[Finding]:
    """Judge that skip connections add to what is sent, by bytes."""
    found = []
    for network in ENCODERS:
        own = [row for row in rows if row["network"] == network]
        deepest = max(own, key=lambda row: int(row["stages"]))
        claim = Claim(
            text="skip connections add copies between stages",
            source="002, section V-C",
            better="messages with skips",
            worse="messages without",
            measure=f"KiB a sample, {network}, D = {deepest['stages']}",
            key=network,
            form="+.1f",
        )
        more = int(deepest["bytes_with_skips"]) - int(deepest["bytes_without_skips"])
        found.append(claim.judged(exact(more / 1024, claim.form)))
    return found


def delay_finding(rows: Sequence[dict[str, str]]) -> Finding:
    """Judge that gradients come 2(D − h) steps after their inputs."""
    off = [
        abs(delay - 2 * (int(stages) - int(stage)))
        for kind, stages, stage in dict.fromkeys(
            (row["kind"], row["stages"], row["stage"]) for row in rows
        )
        for delay in delays(list(rows), kind, stage)
    ]
    claim = Claim(
        text="a gradient comes 2(D − h) steps after its input",
        source="002, section III, figure 1",
        better="delay in the recorded events",
        worse="2(D − h)",
        measure="steps, largest difference",
        key="delay",
        rule=none_off,
        form="+.0f",
    )
    return claim.judged(exact(float(max(off)), claim.form))


def none_off(low: float, high: float, _: float | None, __: str) -> tuple[Verdict, str]:
    """Return the verdict on a number that should be 0 exactly."""
    if low == high == 0:
        return REPRODUCED, "Every one agrees."
    return NOT_REPRODUCED, "Some differ."


def memory_findings(rows: Sequence[Row]) -> list[Finding]:
    """Judge that nothing is stashed, by bytes that were counted in a run."""
    network = distinct(rows, "network")[-1]
    deepest = max(distinct(rows, "stages"), key=int)
    chosen = {"network": network, "stages": deepest}
    kept = {
        mode: float(values(rows, "counted", mode=mode, **chosen).sum())
        for mode in distinct(rows, "mode")
    }
    shared: dict[str, Any] = {
        "measure": f"KiB kept, {network}, D = {deepest}",
        "key": "memory",
        "form": "+.1f",
    }
    nothing = Claim(
        text="no activation or weight is stashed",
        source="002, section II",
        better="paper",
        worse="0",
        rule=none_off,
        **shared,
    )
    less = Claim(
        text="this needs less memory than PipeDream's versions",
        source="002, section II",
        better="paper",
        worse="stash",
        **shared,
    )
    between = Claim(
        text="to keep inputs needs less than to keep versions of weights too",
        source=OURS,
        better="inputs",
        worse="stash",
        **shared,
    )
    return [
        nothing.judged(exact(kept["paper"] / 1024, "+.1f")),
        less.judged(exact((kept["stash"] - kept["paper"]) / 1024, "+.1f")),
        between.judged(exact((kept["stash"] - kept["inputs"]) / 1024, "+.1f")),
    ]


def untestable_findings() -> list[Finding]:
    """Return the claims that need hardware that a test of this size does not have."""
    stages = [
        Claim(
            text="the speed-up is almost linear in the number of stages",
            source="002, table I",
            better=f"D = {count}",
            worse=f"{BOLD * count:g}",
            measure="speed-up, wall time",
            key=str(count),
            published=_printed(stages=count) - BOLD * count,
        )
        for count in (4, 8)
    ]
    graph = Claim(
        text="CUDA graph speeds up small images more",
        source="002, table I",
        better="with CUDA graph, D = 2",
        worse="without, D = 2",
        measure="speed-up",
        key="graph",
        published=_printed(side=256) - _printed(side=256, graph=False),
    )
    why = "It takes a device for each stage; speedup.md has bounds and emulations."
    return [
        *(claim.judged(why) for claim in stages),
        graph.judged("It takes GPUs; here stages are threads and processes of a CPU."),
    ]
