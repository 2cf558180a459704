"""Write a verdict on each claim of paper 002: differences of our runs, and their intervals."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, median

from actionspan.settings import add_settings, from_arguments
from actionspan_papers.claims import (
    NOT_REPRODUCED,
    REPRODUCED,
    Finding,
    Verdict,
    found,
    write_claims,
)
from actionspan_papers.partime.learning_claims import (
    OURS,
    classification_findings,
    flow_findings,
    gradient_findings,
    mean_of,
)
from actionspan_papers.partime.published import ENCODERS, PLAIN, POOLED, SPEEDUPS
from actionspan_papers.partime.settings import GradientSettings, PartimeSettings
from actionspan_papers.partime.timeline import delays
from actionspan_papers.rows import Row, distinct, read_rows, values
from actionspan_papers.tables import add_outputs

_TABLES = {
    "speedup": ("network", "work", "executor", "measured", "load"),
    "balance": ("network", "stages", "bound_by_operations"),
    "messages": ("network", "bytes_with_skips", "bytes_without_skips"),
    "baselines": ("stages", "schedule", "batch", "speedup", "versions", "activations", "delay"),
    "timeline": ("kind", "stage", "step", "sample", "work"),
    "classification": ("stream", "window", "gradients", "part", "accuracy"),
    "flow": ("stages", "gradients", "part", "loss"),
    "memory": ("network", "mode", "counted"),
    "gradients": ("stream", "setting", "speed", "cosine"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    for name in _TABLES:
        parser.add_argument(f"--{name}", type=Path, required=True, help=f"{name}.tsv")
    parser.add_argument("--cores", type=int, default=2, help="that speed-ups were measured on")
    good = GradientSettings.good_cosine
    parser.add_argument(
        "--good-cosine", type=float, default=good, help=f"of a good gradient (default: {good})"
    )
    add_outputs(parser)
    add_settings(parser, PartimeSettings)


def run(arguments: argparse.Namespace) -> None:
    """Write the verdicts as TSV and Markdown."""
    own = from_arguments(PartimeSettings, arguments)
    tables = {
        name: read_rows(getattr(arguments, name), columns) for name, columns in _TABLES.items()
    }
    findings = [
        delay_finding(tables["timeline"]),
        *memory_findings(tables["memory"]),
        *gradient_findings(tables["gradients"], own, arguments.good_cosine),
        *classification_findings(tables["classification"], own),
        *flow_findings(tables["flow"], own),
        *speed_findings(tables["speedup"], own.confidence, arguments.cores),
        *balance_findings(tables["balance"]),
        *message_findings(tables["messages"]),
        *untestable_findings(),
        *baseline_findings(tables["baselines"]),
    ]
    caption = [
        "A difference above 0 speaks for the claim. Intervals "
        f"({100 * own.confidence:g} %, Student's t) are over seeds; of speed-ups over the pairs "
        "of loop and pipeline, or over the networks that are compared. What is counted (bytes, "
        "steps, multiplications) has none. Verdicts are on the sign of the difference, not on its "
        "size.",
        "Published differences are means of the tables' cells, on GPUs and larger networks. "
        "Claims marked as not in the paper are about what the paper leaves out.",
    ]
    write_claims(arguments, findings, "002", caption)


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


_NOT_BUILT = (
    (
        "stages balanced with the times of copies are faster",
        "section IV",
        "balance_stages weighs the times of layers alone; messages.md has the bytes of copies.",
    ),
    (
        "the flow of two stages looks like that of one; with four it is a little worse",
        "figure 4",
        "pictures of flow. flow.md has losses, and the distance to the flow of DIS.",
    ),
    (
        "a larger window brings a pipeline that learns from pixels nearer to sequential learning",
        "figure 3",
        "learning from pixels. classification.md has the same of snippets' features.",
    ),
)


def baseline_findings(rows: Sequence[Row]) -> list[Finding]:
    """Judge the deepest pipelines of baselines.tsv, with the shortest batches."""
    depth = max(distinct(rows, "stages"), key=int)
    own = {row["schedule"]: row for row in reversed(rows) if row["stages"] == depth}

    def stages(schedule: str, column: str) -> list[int]:
        return list(map(int, own[schedule][column].split()))

    def off(schedule: str, column: str, expected: Sequence[int]) -> int:
        pairs = zip(stages(schedule, column), expected, strict=True)
        return max(abs(found - each) for found, each in pairs)

    def faster(schedule: str, than: float) -> float:
        return float(own[schedule]["speedup"]) - than

    gpipe, pipedream, buffered, partime = "GPipe", "PipeDream", "PipeDream-2BW", "PARTIME"
    count, batch = int(depth), int(own[gpipe]["batch"])
    versions, kept, speed = "weights kept, by stage", "activations kept, by stage", "speed-up"
    equal = (
        ("GPipe keeps the activations of a whole batch", gpipe, f"M = {batch}", kept,
         off(gpipe, "activations", [batch] * count)),
        ("PipeDream keeps D − s + 1 versions of stage s", pipedream, "D − s + 1", versions,
         off(pipedream, "versions", range(count, 0, -1))),
        ("PipeDream leaves no device idle", pipedream, "D", speed, faster(pipedream, count)),
        ("PipeDream-2BW keeps two versions", buffered, "2", versions,
         off(buffered, "versions", [2] * count)),
        ("PipeDream-2BW's gradients are one update old", buffered, "1", "updates, by stage",
         off(buffered, "delay", [1] * count)),
        ("PARTIME is D times as fast as one device", partime, "D", speed, faster(partime, count)),
        ("PARTIME keeps no activations of other samples", partime, "1", kept,
         off(partime, "activations", [1] * count)),
    )  # fmt: skip
    less = sum(stages(buffered, "activations")) - sum(stages(partime, "activations"))
    apart = (
        ("GPipe's bubble makes it slower", partime, gpipe, speed,
         faster(partime, float(own[gpipe]["speedup"]))),
        ("PARTIME keeps less than PipeDream-2BW", partime, buffered, "activations kept", less),
    )  # fmt: skip
    place, end = "002, section II", f", computed, D = {depth}"
    return [
        *(found(a, place, b, c, m + end, off_by, rule=none_off) for a, b, c, m, off_by in equal),
        *(found(a, place, b, c, m + end, more) for a, b, c, m, more in apart),
        *(found(a, f"002, {at}", "–", "–", "–", f"Not built: {why}") for a, at, why in _NOT_BUILT),
    ]
