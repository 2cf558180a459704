"""Write a verdict on each claim of paper 002: differences of our runs, and their intervals."""

import argparse
from collections.abc import Sequence
from functools import partial
from statistics import mean, median
from typing import Any

from actionspan_papers.claims import (
    NOT_REPRODUCED,
    REPRODUCED,
    Finding,
    Question,
    Verdict,
    claims_experiment,
    findings_on,
    found,
)
from actionspan_papers.evidence import on_gpu, read_measurements
from actionspan_papers.experiments import read_frame, values, where
from actionspan_papers.kinds import DataFrame
from actionspan_papers.partime.learning_claims import (
    OURS,
    classification_findings,
    flow_findings,
    gradient_findings,
    mean_of,
)
from actionspan_papers.partime.printed import printed_findings
from actionspan_papers.partime.published import ENCODERS, PLAIN, POOLED, printed
from actionspan_papers.partime.settings import GradientSettings, PartimeSettings
from actionspan_papers.partime.timeline import by_stage, delays

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
_BOLD = 0.8  # share of D from which the paper prints a speed-up in bold


def _judged(arguments: argparse.Namespace, own: PartimeSettings) -> tuple[list[Finding], list[str]]:
    tables = {
        name: read_frame(getattr(arguments, name), columns) for name, columns in _TABLES.items()
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
        *on_gpu("partime", read_measurements()),
        *baseline_findings(tables["baselines"]),
        *printed_findings(),
    ]
    caption = [
        "A difference above 0 speaks for the claim. Intervals "
        f"({100 * own.confidence:g} %, Student's t) are over seeds; of speed-ups over the pairs "
        "of loop and pipeline, or over the networks that are compared. Counts (of bytes, "
        "steps, multiplications) have none. Verdicts are on the sign of the difference, not on its "
        "size.",
        "Published differences are means of the tables' cells, on GPUs and larger networks. "
        "Claims marked as not in the paper are about points that it leaves out.",
    ]
    return findings, caption


def _none_off(low: float, high: float, _: float | None, __: str) -> tuple[Verdict, str]:
    """Return the verdict on a number that should be 0 exactly."""
    if low == high == 0:
        return REPRODUCED, "Every one agrees."
    return NOT_REPRODUCED, "Some differ."


def delay_finding(rows: DataFrame) -> Finding:
    """Judge that gradients come 2(D − h) steps after their inputs."""
    off = [
        abs(delay - 2 * (stages - stage))
        for _, stages, stage, events in by_stage(rows)
        for delay in delays(events)
    ]
    text, place = "a gradient comes 2(D − h) steps after its input", "002, section III, figure 1"
    sides, measure = ("delay in the recorded events", "2(D − h)"), "steps, largest difference"
    return found(text, place, *sides, measure, float(max(off)), rule=_none_off, form="+.0f")


_KEPT, _STASHED = "KiB kept, {network}, D = {stages}", "002, section II"
_NOTHING: Sequence[Question] = (
    ("no activation or weight is stashed", _STASHED, "paper", "0", _KEPT, lambda kib: kib["paper"]),
)
_MEMORY: Sequence[Question] = (
    ("this needs less memory than PipeDream's versions", _STASHED, "paper", "stash", _KEPT,
     lambda kib: kib["stash"] - kib["paper"]),
    ("to keep inputs needs less than to keep versions of weights too", OURS, "inputs", "stash",
     _KEPT, lambda kib: kib["stash"] - kib["inputs"]),
)  # fmt: skip


def memory_findings(rows: DataFrame) -> list[Finding]:
    """Judge that nothing is stashed, by bytes that were counted in a run."""
    case = {"network": rows["network"].iloc[-1], "stages": rows["stages"].max()}
    counted = where(rows, **case).groupby("mode", sort=False)["counted"].sum() / 1024
    case |= counted.to_dict()
    nothing = findings_on(case, _NOTHING, rule=_none_off, form="+.1f")
    return nothing + findings_on(case, _MEMORY, form="+.1f")


def speed_findings(rows: DataFrame, confidence: float, cores: int) -> list[Finding]:
    """Judge the claims on measured speed-ups of two stages; a busy machine leaves them open."""
    measured = where(rows[rows["measured"].notna()], network=PLAIN)
    busy = ""
    if not len(measured):
        busy = "Two stages were not measured: there are fewer than two cores."
    elif (load := measured["load"].median()) > cores + 1:
        on = f"load {load:.1f} on {cores} cores"
        busy = f"The machine was busy ({on}): run it again when it is free."
    sides = sorted(measured["R"].unique()) or [""]
    smallest, largest = sides[0], sides[-1]
    goal, two = 2 * _BOLD, partial(_printed, stages=2)
    reached: dict[str, list[float]] = {"inference": [], "learning": []}
    middle = {}
    for (side, outputs, work), pairs in measured.groupby(["R", "F", "work"], sort=False):
        each = [values(pairs, "measured", executor=name) for name in pairs["executor"].unique()]
        best = max(each, key=median).tolist()  # of the faster executor
        middle[side, outputs, work] = median(best)
        if side == largest:
            reached[work] += [pair - goal for pair in best]
    more = [
        middle[side, outputs, "learning"] - value
        for (side, outputs, work), value in middle.items()
        if work == "inference"
    ]
    larger = [
        middle[largest, outputs, work] - value
        for (side, outputs, work), value in middle.items()
        if side == smallest
    ]
    place, text = "002, table I", f"two stages reach more than {100 * _BOLD:g} % of twice the speed"
    ends = f"D = 2, R = {largest}", f"D = 2, R = {smallest}"
    lines: list[tuple[Any, ...]] = [
        *((text, place, ends[0], f"{goal:g}", f"speed-up, {work}", ours,
           two(work=work, side=1024) - goal) for work, ours in reached.items()),
        ("learning speeds up more than inference", place, "learning, D = 2", "inference, D = 2",
         "speed-up", more, two(work="learning") - two(work="inference")),
        ("larger images speed up more", f"{place} without graph", *ends, "speed-up", larger,
         two(side=1024, graph=False) - two(side=256, graph=False)),
    ]  # fmt: skip
    return [
        found(text, place, better, worse, measure, busy or mean_of(ours, confidence), published)
        for text, place, better, worse, measure, ours, published in lines
    ]


def _printed(network: str = "plain", *, graph: bool = True, **wanted: object) -> float:
    """Return the mean of the speed-ups that the paper prints for these."""
    return mean(printed(network=network, graph=graph, **wanted).values())


def balance_findings(rows: DataFrame) -> list[Finding]:
    """Judge that pooling unbalances stages, by counted multiplications."""
    side = where(rows, network=PLAIN)["R"].max()
    findings = []
    for stages in sorted(rows["stages"].unique()):
        bound = partial(values, rows, "bound_by_operations", R=side, stages=stages)
        plain, pooled = (float(bound(network=network).mean()) for network in (PLAIN, POOLED))
        published = None
        if stages in (2, 4, 8):
            inference = partial(_printed, work="inference", stages=stages)
            published = inference("plain") - inference("pooled")
        words = ("pooling leaves stages unbalanced", "002, tables I and II")
        sides = f"{PLAIN}, D = {stages}", f"{POOLED}, D = {stages}"
        measure = "bound of the speed-up, by counting"
        findings.append(found(*words, *sides, measure, plain - pooled, published))
    return findings


def message_findings(rows: DataFrame) -> list[Finding]:
    """Judge that skip connections add to the messages, by bytes."""
    findings = []
    for network in ENCODERS:
        own = where(rows, network=network)
        deepest = own.loc[own["stages"].idxmax()]
        more = int(deepest["bytes_with_skips"]) - int(deepest["bytes_without_skips"])
        words = ("skip connections add copies between stages", "002, section V-C")
        sides = "messages with skips", "messages without"
        measure = f"KiB a sample, {network}, D = {deepest['stages']}"
        findings.append(found(*words, *sides, measure, more / 1024, form="+.1f"))
    return findings


def baseline_findings(rows: DataFrame) -> list[Finding]:
    """Judge the deepest pipelines of baselines.tsv, with the shortest batches."""
    count = int(rows["stages"].max())
    own = where(rows, stages=count).drop_duplicates("schedule").set_index("schedule")

    def stages(schedule: str, column: str) -> list[int]:
        return list(map(int, own.at[schedule, column].split()))

    def off(schedule: str, column: str, expected: Sequence[int]) -> int:
        pairs = zip(stages(schedule, column), expected, strict=True)
        return max(abs(found - each) for found, each in pairs)

    def faster(schedule: str, than: float) -> float:
        return float(own.at[schedule, "speedup"]) - than

    gpipe, pipedream, buffered, partime = "GPipe", "PipeDream", "PipeDream-2BW", "PARTIME"
    batch = int(own.at[gpipe, "batch"])
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
         faster(partime, float(own.at[gpipe, "speedup"]))),
        ("PARTIME keeps less than PipeDream-2BW", partime, buffered, "activations kept", less),
    )  # fmt: skip
    place, end = "002, section II", f", computed, D = {count}"
    return [
        *(found(a, place, b, c, m + end, off_by, rule=_none_off) for a, b, c, m, off_by in equal),
        *(found(a, place, b, c, m + end, more) for a, b, c, m, more in apart),
    ]


_CORES = {"type": int, "default": 2, "help": "that speed-ups were measured on"}
_COSINE = GradientSettings.good_cosine
_GOOD = {"type": float, "default": _COSINE, "help": f"of a good gradient (default: {_COSINE})"}
EXPERIMENT = claims_experiment(
    "002",
    _judged,
    inputs={name: f"{name}.tsv" for name in _TABLES} | {"cores": _CORES, "good-cosine": _GOOD},
    settings=(PartimeSettings,),
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
