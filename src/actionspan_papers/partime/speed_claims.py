"""The claims of paper 002 about speed, balance, messages, delay and memory."""

from collections.abc import Mapping, Sequence
from statistics import mean, median

from actionspan_papers.claims import NOT_REPRODUCED, REPRODUCED, Finding, Verdict, found
from actionspan_papers.partime.learning_claims import OURS, mean_of
from actionspan_papers.partime.names import ENCODERS, PLAIN, POOLED
from actionspan_papers.partime.published import SPEEDUPS
from actionspan_papers.partime.timeline_report import delays
from actionspan_papers.rows import Row, distinct, values

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
    largest, smallest = (f"D = 2, R = {sides[end] if sides else ''}" for end in (-1, 0))
    findings = []
    for work in ("inference", "learning"):
        reached = [
            value - BOLD * _TWO
            for (side, _, own), values_ in best.items()
            if side == sides[-1] and own == work
            for value in values_
        ]
        claim = found(
            f"two stages reach more than {100 * BOLD:g} % of twice the speed",
            "002, table I",
            largest,
            f"{BOLD * _TWO:g}",
            f"speed-up, {work}",
            busy or mean_of(reached, confidence),
            _printed(work=work, side=1024) - BOLD * _TWO,
        )
        findings.append(claim)
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
    more = found(
        "learning speeds up more than inference",
        *("002, table I", "learning, D = 2", "inference, D = 2", "speed-up"),
        busy or mean_of(by_work, confidence),
        _printed(work="learning") - _printed(work="inference"),
    )
    larger = found(
        "larger images speed up more",
        *("002, table I without graph", largest, smallest, "speed-up"),
        busy or mean_of(by_side, confidence),
        _printed(side=1024, graph=False) - _printed(side=256, graph=False),
    )
    return [*findings, more, larger]


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
    findings = []
    for stages in sorted(distinct(rows, "stages"), key=int):
        chosen = {"R": side, "stages": stages}
        plain, pooled = (
            float(values(rows, "bound_by_operations", network=network, **chosen).mean())
            for network in (PLAIN, POOLED)
        )
        printed = [
            _printed(network, "inference", stages=int(stages))
            for network in ("plain", "pooled")
            if int(stages) in (2, 4, 8)
        ]
        claim = found(
            "pooling leaves stages unbalanced",
            "002, tables I and II",
            f"{PLAIN}, D = {stages}",
            f"{POOLED}, D = {stages}",
            "bound of the speed-up, by counting",
            plain - pooled,
            printed[0] - printed[1] if printed else None,
        )
        findings.append(claim)
    return findings


def message_findings(rows: Sequence[Row]) -> list[Finding]:
    """Judge that skip connections add to what is sent, by bytes."""
    findings = []
    for network in ENCODERS:
        own = [row for row in rows if row["network"] == network]
        deepest = max(own, key=lambda row: int(row["stages"]))
        more = int(deepest["bytes_with_skips"]) - int(deepest["bytes_without_skips"])
        measure = f"KiB a sample, {network}, D = {deepest['stages']}"
        text, better = "skip connections add copies between stages", "messages with skips"
        sides = better, "messages without"
        claim = found(text, "002, section V-C", *sides, measure, more / 1024, form="+.1f")
        findings.append(claim)
    return findings


def delay_finding(rows: Sequence[dict[str, str]]) -> Finding:
    """Judge that gradients come 2(D − h) steps after their inputs."""
    off = [
        abs(delay - 2 * (int(stages) - int(stage)))
        for kind, stages, stage in dict.fromkeys(
            (row["kind"], row["stages"], row["stage"]) for row in rows
        )
        for delay in delays(list(rows), kind, stage)
    ]
    return found(
        "a gradient comes 2(D − h) steps after its input",
        "002, section III, figure 1",
        "delay in the recorded events",
        "2(D − h)",
        "steps, largest difference",
        max(off),
        rule=none_off,
        form="+.0f",
    )


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
    measure, place = f"KiB kept, {network}, D = {deepest}", "002, section II"
    now, inputs, stash = (kept[mode] / 1024 for mode in ("paper", "inputs", "stash"))
    less = "this needs less memory than PipeDream's versions"
    between = "to keep inputs needs less than to keep versions of weights too"
    return [
        found(
            "no activation or weight is stashed",
            *(place, "paper", "0", measure, now),
            rule=none_off,
            form="+.1f",
        ),
        found(less, place, "paper", "stash", measure, stash - now, form="+.1f"),
        found(between, OURS, "inputs", "stash", measure, stash - inputs, form="+.1f"),
    ]


def untestable_findings() -> list[Finding]:
    """Return the claims that need hardware that a test of this size does not have."""
    linear = "the speed-up is almost linear in the number of stages"
    device = "It takes a device for each stage; speedup.md has bounds and emulations."
    graph = "CUDA graph speeds up small images more"
    sides = "with CUDA graph, D = 2", "without, D = 2", "speed-up"
    gpus = "It takes GPUs; here stages are threads and processes of a CPU."
    gained = _printed(side=256) - _printed(side=256, graph=False)
    findings = []
    for count in (4, 8):
        own = f"D = {count}", f"{BOLD * count:g}", "speed-up, wall time"
        printed = _printed(stages=count) - BOLD * count
        findings.append(found(linear, "002, table I", *own, device, printed))
    return [*findings, found(graph, "002, table I", *sides, gpus, gained)]
