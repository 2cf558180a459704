"""Write a verdict on each claim of paper 002: differences of our runs, and their intervals."""

from collections.abc import Sequence
from functools import partial
from statistics import mean, median

import numpy as np

from actionspan.arrays import Float64
from actionspan_papers import claims
from actionspan_papers.claims import Finding, Judged
from actionspan_papers.estimates import Estimate, over_seeds
from actionspan_papers.evidence import on_gpu, read_measurements
from actionspan_papers.experiments import read_frame, values, where
from actionspan_papers.kinds import DataFrame, Flags
from actionspan_papers.partime.classification import gaps
from actionspan_papers.partime.flow import patterns, ratios
from actionspan_papers.partime.gradients import by_speed
from actionspan_papers.partime.published import ENCODERS, PLAIN, POOLED, printed, printed_findings
from actionspan_papers.partime.settings import LAST_ONLY, GradientSettings, PartimeSettings, Variant
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
_PATTERN = 0.9  # correlation from which two curves follow the same pattern
_NEAR = 0.05  # share by which a loss may be higher and still be like another
_STREAMS = {"random": "random streams", "frames": "frames"}
_measured = partial(claims.measured, "partime")


def _judged(arguments: Flags, own: PartimeSettings) -> Judged:
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


def _none_off(low: float, high: float, *_: object) -> tuple[claims.Verdict, str]:
    """Return the verdict on a number that should be 0 exactly."""
    if low == high == 0:
        return claims.REPRODUCED, "Every one agrees."
    return claims.NOT_REPRODUCED, "Some differ."


def _mean_of(differences: Sequence[float] | Float64, confidence: float) -> Estimate | str:
    """Return the mean difference over seeds with its interval, or why there is none."""
    each = np.asarray(differences)
    if len(each) < 2:
        return "Fewer than two seeds show nothing about the next."
    if np.isnan(each).any():
        return "Some run has no value."
    return over_seeds([each], confidence)


def delay_finding(rows: DataFrame) -> Finding:
    """Judge that gradients come 2(D − h) steps after their inputs."""
    off = [
        abs(delay - 2 * (stages - stage))
        for _, stages, stage, events in by_stage(rows)
        for delay in delays(events)
    ]
    return _measured({"delay": max(off)}, rule=_none_off)[0]


def memory_findings(rows: DataFrame) -> list[Finding]:
    """Judge that nothing is stashed, by bytes that were counted in a run."""
    case = {"network": rows["network"].iloc[-1], "stages": rows["stages"].max()}
    kib = where(rows, **case).groupby("mode", sort=False)["counted"].sum() / 1024
    less = {"stash": kib["stash"] - kib["paper"], "inputs": kib["stash"] - kib["inputs"]}
    return _measured({"nothing": kib["paper"]}, case, rule=_none_off) + _measured(less, case)


def gradient_findings(rows: DataFrame, own: PartimeSettings, good: float) -> list[Finding]:
    """Judge the claims that gradients are good on slow streams, and bad on others."""
    findings = []
    mean_of = partial(_mean_of, confidence=own.confidence)
    for kind, runs in rows.groupby("stream", sort=False):
        settings = [setting for setting, _ in by_speed(runs)]
        slow, fast = settings[0], settings[-1]
        for stages in own.stages:
            case = {"stream": _STREAMS[kind], "stages": stages, "good": good}
            cosines = partial(values, runs, "cosine", stages=stages, stage=1)
            of_slow, of_fast = (cosines(setting=each, gradients="paper") for each in (slow, fast))
            ours = {
                "slow": mean_of(of_slow - good),
                "slower": mean_of(of_slow - of_fast),
                "mended": mean_of(cosines(setting=fast, gradients="inputs") - of_fast),
            }
            findings += _measured(ours, {**case, "slow": slow, "fast": fast})
    return findings


def classification_findings(rows: DataFrame, own: PartimeSettings) -> list[Finding]:
    """Judge the claims on windows and numbers of stages (figure 3)."""
    narrow, wide = rows["window"].min(), rows["window"].max()
    few, many = own.stages[0], own.stages[-1]
    mean_of = partial(_mean_of, confidence=own.confidence)
    findings = []
    for order, runs in rows.groupby("stream", sort=False):
        case = {"stream": order, "narrow": narrow, "wide": wide, "few": few, "many": many}
        at_narrow, at_wide = (where(runs, window=window) for window in (narrow, wide))
        narrows = {stages: gaps(at_narrow, Variant(stages, "paper")) for stages in own.stages}
        for stages in own.stages:
            of_wide = gaps(at_wide, Variant(stages, "paper"))
            ours = {
                "sequential": mean_of(of_wide),
                "window": mean_of(narrows[stages] - of_wide),
                "all_stages": mean_of(gaps(at_wide, Variant(stages, LAST_ONLY)) - of_wide),
            }
            findings += _measured(ours, {**case, "stages": stages})
        if few != many:
            findings += _measured({"fewer": mean_of(narrows[many] - narrows[few])}, case)
    return findings


def flow_findings(rows: DataFrame, own: PartimeSettings) -> list[Finding]:
    """Judge the claims on the loss of flow over time (figure 5)."""
    mean_of = partial(_mean_of, confidence=own.confidence)
    findings = []
    for stages in own.stages:
        way = Variant(stages, "paper")
        ours = {
            "pattern": mean_of(patterns(rows, way) - _PATTERN),
            "learned_pattern": mean_of(patterns(rows, way, learned=True) - _PATTERN),
        }
        findings += _measured(ours, {"stages": stages, "pattern": _PATTERN})
    few, many = own.stages[0], own.stages[-1]
    of_few, of_many = (ratios(rows, Variant(stages, "paper")) for stages in (few, many))
    near = 1 + _NEAR
    case = {"few": few, "many": many, "near": near, "lost": 100 * _NEAR}
    return findings + _measured(
        {"little": mean_of(near - of_few), "worse": mean_of(of_many - 1)}, case
    )


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
    case = {"smallest": smallest, "largest": largest, "goal": goal, "percent": 100 * _BOLD}
    findings = []
    for work, ours in reached.items():
        published = {"twice": two(work=work, side=1024) - goal}
        twice = {"twice": busy or _mean_of(ours, confidence)}
        findings += _measured(twice, {**case, "work": work}, published)
    compared = {"learning": more, "larger": larger}
    published = {
        "learning": two(work="learning") - two(work="inference"),
        "larger": two(side=1024, graph=False) - two(side=256, graph=False),
    }
    judged = {key: busy or _mean_of(each, confidence) for key, each in compared.items()}
    return findings + _measured(judged, case, published)


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
        published = {}
        if stages in (2, 4, 8):
            inference = partial(_printed, work="inference", stages=stages)
            published = {"pooling": inference("plain") - inference("pooled")}
        findings += _measured({"pooling": plain - pooled}, {"stages": stages}, published)
    return findings


def message_findings(rows: DataFrame) -> list[Finding]:
    """Judge that skip connections add to the messages, by bytes."""
    findings = []
    for network in ENCODERS:
        own = where(rows, network=network)
        deepest = own.loc[own["stages"].idxmax()]
        more = int(deepest["bytes_with_skips"]) - int(deepest["bytes_without_skips"])
        case = {"network": network, "stages": deepest["stages"]}
        findings += _measured({"skips": more / 1024}, case)
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

    batch = int(own.at["GPipe", "batch"])
    case = {"count": count, "batch": batch}
    exact = {
        "batch": off("GPipe", "activations", [batch] * count),
        "versions": off("PipeDream", "versions", range(count, 0, -1)),
        "busy": faster("PipeDream", count),
        "two": off("PipeDream-2BW", "versions", [2] * count),
        "old": off("PipeDream-2BW", "delay", [1] * count),
        "fast": faster("PARTIME", count),
        "own": off("PARTIME", "activations", [1] * count),
    }
    kept = [sum(stages(each, "activations")) for each in ("PipeDream-2BW", "PARTIME")]
    bubble = faster("PARTIME", float(own.at["GPipe", "speedup"]))
    apart = {"bubble": bubble, "less": kept[0] - kept[1]}
    return _measured(exact, case, rule=_none_off) + _measured(apart, case)


_CORES = {"type": int, "default": 2, "help": "that speed-ups were measured on"}
_COSINE = GradientSettings.good_cosine
_GOOD = {"type": float, "default": _COSINE, "help": f"of a good gradient (default: {_COSINE})"}
EXPERIMENT = claims.claims_experiment(
    "002",
    _judged,
    inputs={name: f"{name}.tsv" for name in _TABLES} | {"cores": _CORES, "good-cosine": _GOOD},
    settings=(PartimeSettings,),
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
