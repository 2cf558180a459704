"""Write a verdict on each claim of paper 004: differences of our runs, and their intervals."""

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from actionspan_papers.claims import Finding, claims_experiment, found
from actionspan_papers.estimates import Estimate, alike, at_most
from actionspan_papers.evidence import on_gpu, read_measurements
from actionspan_papers.experiments import read_frame, where
from actionspan_papers.kinds import DataFrame
from actionspan_papers.sbp.layer_claims import depth_findings, gradient_findings, likeness_findings
from actionspan_papers.sbp.printed import printed_findings
from actionspan_papers.sbp.published import (
    ACCURACY,
    BEST_RATE,
    BEST_SAMPLER,
    CHECKERBOARD,
    COSTS,
    DROPOUT,
    END_TO_END,
    FRAMES,
    FROZEN,
    FULL,
    HEADS_LIKE,
    LOCALISATION,
    MOST_LOST,
    ONLINE,
    RECOGNITION,
    Trained,
)
from actionspan_papers.sbp.settings import SbpSettings

_TABLES = {
    "table1": ("network", "way", "saved_share"),
    "table2": ("attention", "way", "saved_share"),
    "table3": ("way", "less_than_end_to_end", "above_frame_wise", "top1_of_seeds"),
    "table4": ("head", "way", "keep_ratio", "above_frozen", "above_full"),
    "table5": ("way", "keep_ratio", "sampler", "map_above_full", "auc_above_full"),
    "figure1": ("seed", "kind", "layer", "cosine"),
    "figure4": ("way", "start", "seed", "layer", "cka"),
    "figure6": ("sampler", "encoder_share", "above_uniform", "above_first"),
    "gradients": ("part", "video", "sampler", "keep_ratio", "cosine", "block", "quantity"),
    "measurements": ("way", "keep_ratio", "saved_part", "seconds_part"),
}
_MARGIN = {
    "type": float,
    "default": 1.0,
    "help": "points of top-1 within which two ways are alike (default: 1)",
}
_PROPORTIONAL = 0.05
"""How far a share of the memory may be from r and still be proportional to it."""
_WITHIN = f"(within {_PROPORTIONAL:g})"
_MAP, _UNIFORM, _MIXED = "per-frame mAP", "uniform_random", "SBP + mixed precision"
_LITTLE = f"SBP loses less than {MOST_LOST:g} point to end-to-end training"

_Claim = tuple[str, str, str, str, Estimate | float | str, float | None]
"""Text, source, better, worse, our difference, and the published one."""


def _judged(arguments: argparse.Namespace, own: SbpSettings) -> tuple[list[Finding], list[str]]:
    tables = {
        name: read_frame(getattr(arguments, name), columns) for name, columns in _TABLES.items()
    }
    findings = [
        *accuracy_findings(tables["table3"], arguments.margin),
        *online_findings(tables["table4"]),
        *localisation_findings(tables["table5"]),
        *rate_findings(tables["figure6"]),
        *memory_findings(tables["measurements"], tables["table1"], tables["table2"]),
        *time_findings(tables["measurements"]),
        *depth_findings(tables["figure1"], own.confidence),
        *likeness_findings(tables["figure4"], own.confidence),
        *gradient_findings(tables["gradients"], own.confidence),
        *printed_findings(),
        *on_gpu("sbp", read_measurements()),
    ]
    caption = [
        "A difference above 0 speaks for the claim. Intervals "
        f"({100 * own.confidence:g} %) of accuracy and precision are over videos or clips "
        "(bootstrap) and seeds, of gradients over videos, of layers over seeds (Student's t). "
        "Counted bytes have none, nor has the median of measured seconds. Verdicts are on the sign "
        "of the difference. Where two things are claimed to be alike or nearly as good, the margin "
        "is in the claim, and the difference is its remainder.",
        "Published differences are of other networks and data. Claims marked as not in the paper "
        "are ours.",
    ]
    return findings, caption


def _findings(measure: str, claims: Sequence[_Claim], form: str = "+.2f") -> list[Finding]:
    return [
        found(text, source, better, worse, measure, ours, printed, form=form)
        for text, source, better, worse, ours, printed in claims
    ]


def cell(rows: DataFrame, column: str, **chosen: object) -> Estimate | str:
    """Return the estimate in a column of the row that has these cells, or why there is none."""
    words = ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in chosen.items()
    )
    own = where(rows, **chosen)
    if not len(own):
        return f"Runs of {words} are missing."
    row = own.iloc[0]
    if row.get("seeds") == 1:
        return f"One seed of {words} shows nothing about the next."
    value, low, high = (row.get(f"{column}{end}", math.nan) for end in ("", "_low", "_high"))
    if math.isnan(value + low + high):
        return f"The interval of {words} is missing."
    return Estimate(value=value, low=low, high=high, form="+.2f")


def turned(difference: Estimate | str) -> Estimate | str:
    """Return the difference the other way round."""
    if isinstance(difference, str):
        return difference
    return replace(difference, value=-difference.value, low=-difference.high, high=-difference.low)


def accuracy_findings(rows: DataFrame, margin: float) -> list[Finding]:
    """Judge tables 1 and 3; `margin` is the points within which two ways are alike."""
    above = cell(rows, "above_frame_dropout", way=FRAMES)
    less = cell(rows, "less_than_end_to_end", way=FRAMES)
    apart = cell(rows, "above_frame_wise", way=CHECKERBOARD)
    if len(str(rows["top1_of_seeds"].iloc[0]).split()) < 2:
        above = less = apart = "One seed shows nothing about the next."
    whole, dropout, sbp, board = (
        ACCURACY[way].kinetics for way in (END_TO_END, DROPOUT, FRAMES, CHECKERBOARD)
    )
    claims = (
        ("SBP is above frame dropout", "004, table 1", FRAMES, DROPOUT, above, sbp - dropout),
        ("end-to-end training is above SBP", "004, table 1", END_TO_END, FRAMES, less, whole - sbp),
        (_LITTLE, "004, abstract", f"{FRAMES}, +{MOST_LOST:g}", END_TO_END,
         at_most(MOST_LOST, turned(less)), sbp - whole + MOST_LOST),
        (f"frame-wise and checkerboard sampling are alike (within {margin:g} points)",
         "004, table 3", f"{margin:g}", f"|{CHECKERBOARD} - {FRAMES}|",
         alike(margin, apart), margin - abs(board - sbp)),
    )  # fmt: skip
    return _findings("top-1, rendered clips", claims)


def online_findings(rows: DataFrame) -> list[Finding]:
    """Judge table 4: end-to-end training and SBP against the frozen encoder and each other."""
    places = "004, table 4", "004, abstract and table 4"
    findings = []
    for head in rows["head"].unique():
        like = HEADS_LIKE[head]
        printed = {way: row.precision for (method, way), row in ONLINE.items() if method == like}
        claims = _against_ends(rows, "", printed, places, {"head": head}, {})
        findings += _findings(f"{_MAP}, {head} head", claims)
    return findings


def localisation_findings(rows: DataFrame) -> list[Finding]:
    """Judge table 5 in the same way, by mAP (the paper's measure) and by AUC."""
    means = {way: row.mean for way, row in LOCALISATION.items()}
    places = "004, table 5", "004, abstract (table 5 prints more at r = 0.25 and 0.125)"
    text = "with importance sampling SBP is better than a frozen encoder"
    findings = []
    for key, measure, printed in (("map", "mAP at tIoU 0.3 to 0.7", means), ("auc", "AUC", {})):
        claims = _against_ends(rows, f"{key}_", printed, places, {}, {"sampler": _UNIFORM})
        for ratio in _ratios(rows, sampler="importance"):
            own = {"way": "sbp", "keep_ratio": ratio, "sampler": "importance"}
            pays = cell(rows, f"{key}_above_frozen", **own)
            name = f"importance, r = {ratio:g}"
            claims.append((text, "not in the paper", name, "frozen", pays, None))
        findings += _findings(measure, claims)
    return findings


def _against_ends(
    rows: DataFrame,
    prefix: str,
    printed: Mapping[Trained, float],
    places: tuple[str, str],
    chosen: Mapping[str, str],
    sampled: Mapping[str, str],
) -> list[_Claim]:
    """Claim that full training and SBP are above a frozen encoder, and SBP loses little to full.

    Args:
        rows: Of the table.
        prefix: Of its columns.
        printed: The paper's numbers of each training.
        places: Where it claims that training is better, and that SBP loses little.
        chosen: Cells of all rows that count.
        sampled: Further cells of SBP's rows.
    """

    def theirs(way: Trained, other: Trained, more: float = 0) -> float | None:
        return printed[way] - printed[other] + more if way in printed else None

    def ours(end: str, **own: object) -> Estimate | str:
        return cell(rows, f"{prefix}above_{end}", **chosen, **own)

    place, sparing = places
    claims: list[_Claim] = [
        ("end-to-end training is better than a frozen encoder", place, "full", "frozen",
         ours("frozen", way="full"), theirs(FULL, FROZEN)),
    ]  # fmt: skip
    for ratio in _ratios(rows, **chosen, **sampled):
        name, way = f"SBP, r = {ratio:g}", Trained("sbp", ratio)
        own = {"way": "sbp", "keep_ratio": ratio, **sampled}
        claims += [
            ("SBP is better than a frozen encoder", place, name, "frozen",
             ours("frozen", **own), theirs(way, FROZEN)),
            (_LITTLE, sparing, f"{name}, +{MOST_LOST:g}", "full",
             at_most(MOST_LOST, ours("full", **own)), theirs(way, FULL, MOST_LOST)),
        ]  # fmt: skip
    return claims


def _ratios(rows: DataFrame, **chosen: str) -> list[float]:
    ratios: list[float] = where(rows, **chosen)["keep_ratio"].dropna().unique().tolist()
    return ratios


def rate_findings(rows: DataFrame) -> list[Finding]:
    """Judge figure 6: a tenth is the best step size, samplers are alike, diverse features best."""

    def above(other: str, sampler: str) -> Estimate | str:
        return cell(rows, f"above_{other}", sampler=sampler, encoder_share=BEST_RATE)

    first, place = rows["encoder_share"].iloc[0], "004, figure 6"
    tenth = f"share {BEST_RATE:g}"
    samplers = rows["sampler"].unique()
    claims: list[_Claim] = [
        ("a tenth of the other step size is better for the encoder than the same", place,
         f"{sampler}, {tenth}", f"{sampler}, share {first:g}", above("first", sampler), None)
        for sampler in samplers
    ]  # fmt: skip
    for sampler in samplers[1:]:
        ours = above("uniform", sampler)
        claims.append(
            (f"samplers are alike (within {MOST_LOST:g} point)", "004, section 5.1.3",
             f"{MOST_LOST:g}", f"|{sampler} - {_UNIFORM}|, {tenth}", alike(MOST_LOST, ours), None)
        )  # fmt: skip
        if sampler == BEST_SAMPLER:
            sides = f"{sampler}, {tenth}", f"{_UNIFORM}, {tenth}"
            claims.append(("sampling by diverse features is best", place, *sides, ours, None))
    return _findings(_MAP, claims)


def memory_findings(measurements: DataFrame, table1: DataFrame, table2: DataFrame) -> list[Finding]:
    """Judge memory by counts: of the convolutional encoder, and of the transformers' steps."""
    near, quarter = f"{_PROPORTIONAL:g}", 0.25
    findings = []
    for ratio, share in _of_split(measurements, "saved_part").items():
        claims: Sequence[_Claim] = (
            (f"memory is almost r of full training's {_WITHIN}", "004, section 3.4", near,
             f"|share - r|, r = {ratio:g}", _near(share, ratio), None),
        )  # fmt: skip
        findings += _findings("saved bytes, counted, EfficientNet-Lite0", claims, "+.3f")
    most = COSTS["Swin-T", END_TO_END].gigabytes
    theirs = {way: cost.gigabytes / most for (name, way), cost in COSTS.items() if name == "Swin-T"}
    for attention in table2["attention"].unique():
        ours = _shares(where(table2, attention=attention))
        again, both = "checkpointing", "SBP + checkpointing"
        claims = (
            (f"memory is almost r of end-to-end training's {_WITHIN}",
             "004, equation (4) and section 4.2", near, "|share - r|, r = 0.25",
             _near(ours["SBP"], quarter), _near(theirs["SBP"], quarter)),
            ("SBP saves as much as checkpointing, or more", "004, table 2", "SBP", again,
             ours[again] - ours["SBP"], theirs[again] - theirs["SBP"]),
            ("checkpointing on top of SBP saves more", "004, table 2", both, "SBP",
             ours["SBP"] - ours[both], theirs["SBP"] - theirs[both]),
            (f"mixed precision halves the memory of SBP {_WITHIN}", "004, section 4.2", near,
             "|share of SBP's - 0.5|", _near(ours[_MIXED] / ours["SBP"], 0.5), None),
        )  # fmt: skip
        measure = f"saved bytes, counted, {attention} attention, Video Swin-T's shape"
        findings += _findings(measure, claims, "+.3f")
    for network in table1["network"].unique()[:2]:
        ours = _shares(where(table1, network=network))
        most = RECOGNITION[network, END_TO_END].gigabytes
        theirs = {way: RECOGNITION[network, way].gigabytes / most for way in ("SBP", DROPOUT)}
        claims = (
            (f"memory is a quarter of end-to-end training's {_WITHIN}", "004, table 1", near,
             "|share - 0.25|", _near(ours["SBP"], quarter), _near(theirs["SBP"], quarter)),
            ("frame dropout costs less", "004, table 1", DROPOUT, "SBP",
             ours["SBP"] - ours[DROPOUT], theirs["SBP"] - theirs[DROPOUT]),
        )  # fmt: skip
        measure = f"saved bytes, counted, explicit attention, {network}'s shape"
        findings += _findings(measure, claims, "+.3f")
    return findings


def _near(share: float, expected: float) -> float:
    """Return a difference above 0 where a share is as expected within the margin."""
    return _PROPORTIONAL - abs(share - expected)


def _shares(rows: DataFrame) -> dict[str, float]:
    """Return the share of the memory of each way to train, NaN where it is not known."""
    known = dict(zip(rows["way"], rows["saved_share"], strict=True))
    ways = ("SBP", "checkpointing", "SBP + checkpointing", _MIXED, DROPOUT)
    return {way: float(known.get(way, math.nan)) for way in ways}


def time_findings(measurements: DataFrame) -> list[Finding]:
    """Judge the time of a step: measured, by the paper's form and by ours.

    Section 3.4 takes a backward pass for as dear as a forward pass, and runs the kept rows forward
    twice: (1 + r) forward and r backward passes. Where one forward pass serves both, as section
    3.2.1 runs it, and a backward pass costs two forward ones, it is (1 + 2r)/3.
    """
    findings = []
    for ratio, part in _of_split(measurements, "seconds_part").items():
        theirs, ours = (1 + 2 * ratio) / 2, (1 + 2 * ratio) / 3
        claims: Sequence[_Claim] = (
            ("the time of a step is nearer to (1 + 2r)/2 of full training's than to (1 + 2r)/3",
             "004, section 3.4", f"{theirs:.3f}, r = {ratio:g}", f"{ours:.3f}",
             abs(part - ours) - abs(part - theirs), None),
            ("a step is faster than one of full training", "004, abstract and table 2",
             f"SBP, r = {ratio:g}", "full", 1 - part, 1 - 0.21 / 0.22 if ratio == 0.25 else None),
        )  # fmt: skip
        findings += _findings("CPU seconds of a step, EfficientNet-Lite0", claims, "+.3f")
    return findings


def _of_split(measurements: DataFrame, column: str) -> dict[float, float]:
    """Return a column by the keep ratios below 1 of the paper's execution."""
    own = where(measurements, way="sbp split")
    own = own[own["keep_ratio"] < 1]
    return dict(zip(own["keep_ratio"].tolist(), own[column].tolist(), strict=True))


EXPERIMENT = claims_experiment(
    "004",
    _judged,
    inputs={**{name: f"{name}.tsv" for name in _TABLES}, "margin": _MARGIN},
    settings=(SbpSettings,),
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
