"""Write a verdict on each claim of paper 004: differences of our runs, and their intervals."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from actionspan_papers import claims
from actionspan_papers.claims import Difference, Finding, Judged
from actionspan_papers.estimates import Estimate, alike, at_most
from actionspan_papers.evidence import on_gpu, read_measurements
from actionspan_papers.experiments import read_frame, where
from actionspan_papers.kinds import DataFrame, Flags
from actionspan_papers.sbp import published
from actionspan_papers.sbp.layer_claims import (
    FEW,
    UNIFORM,
    depth_findings,
    gradient_findings,
    likeness_findings,
)
from actionspan_papers.sbp.published import DROPOUT, END_TO_END, FRAMES, MOST_LOST, Training
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
_measured = partial(claims.measured, "sbp")


def _judged(arguments: Flags, own: SbpSettings) -> Judged:
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
        *published.printed_findings(),
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
    apart = cell(rows, "above_frame_wise", way=published.CHECKERBOARD)
    if len(str(rows["top1_of_seeds"].iloc[0]).split()) < 2:
        above = less = apart = FEW["seed"]
    ways = (END_TO_END, DROPOUT, FRAMES, published.CHECKERBOARD)
    whole, dropout, sbp, board = (published.ACCURACY[way].kinetics for way in ways)
    ours = {
        "dropout": above,
        "less": less,
        "little": at_most(MOST_LOST, turned(less)),
        "boards": alike(margin, apart),
    }
    printed = {
        "dropout": sbp - dropout,
        "less": whole - sbp,
        "little": sbp - whole + MOST_LOST,
        "boards": margin - abs(board - sbp),
    }
    return _measured(ours, {"margin": margin, "most": MOST_LOST}, printed)


def online_findings(rows: DataFrame) -> list[Finding]:
    """Judge table 4: end-to-end training and SBP against the frozen encoder and each other."""
    case = {"place": "004, table 4", "sparing": "004, abstract and table 4"}
    findings = []
    for head in rows["head"].unique():
        like, own = published.HEADS_LIKE[head], where(rows, head=head)
        printed = {way: row.precision for (of, way), row in published.ONLINE.items() if of == like}
        measure = f"per-frame mAP, {head} head"
        findings += _against_ends(own, "", printed, {**case, "measure": measure, "head": head})
    return findings


def localisation_findings(rows: DataFrame) -> list[Finding]:
    """Judge table 5 in the same way, by mAP (the paper's measure) and by AUC."""
    means = {way: row.mean for way, row in published.LOCALISATION.items()}
    sparing = "004, abstract (table 5 prints more at r = 0.25 and 0.125)"
    findings = []
    for key, measure, printed in (("map", "mAP at tIoU 0.3 to 0.7", means), ("auc", "AUC", {})):
        case = {"place": "004, table 5", "sparing": sparing, "measure": measure}
        findings += _against_ends(rows, f"{key}_", printed, case, sampler=UNIFORM)
        for ratio in _ratios(rows, sampler="importance"):
            chosen = {"way": "sbp", "keep_ratio": ratio, "sampler": "importance"}
            ours = {"importance": cell(rows, f"{key}_above_frozen", **chosen)}
            findings += _measured(ours, {**case, "ratio": ratio})
    return findings


def _against_ends(
    rows: DataFrame,
    prefix: str,
    printed: Mapping[Training, float],
    case: Mapping[str, str],
    **sampled: str,
) -> list[Finding]:
    """Judge that full training and SBP are above a frozen encoder, and SBP loses little to full.

    Args:
        rows: Of the table.
        prefix: Of its columns.
        printed: The paper's numbers of each training.
        case: Where it claims that training is better, and that SBP loses little; the measure,
            and the head of which the rows are.
        sampled: Further cells of SBP's rows.
    """
    head = {"head": case["head"]} if "head" in case else {}

    def theirs(way: Training, other: Training, more: float = 0) -> float | None:
        return printed[way] - printed[other] + more if way in printed else None

    def ours(end: str, **own: object) -> Estimate | str:
        return cell(rows, f"{prefix}above_{end}", **head, **own)

    full = {"full": theirs(published.FULL, published.FROZEN)}
    findings = _measured({"full": ours("frozen", way="full")}, case, full)
    for ratio in _ratios(rows, **sampled):
        way, own = Training(keep_ratio=ratio), {"way": "sbp", "keep_ratio": ratio, **sampled}
        differences = {
            "sbp": ours("frozen", **own),
            "sbp_little": at_most(MOST_LOST, ours("full", **own)),
        }
        they = {
            "sbp": theirs(way, published.FROZEN),
            "sbp_little": theirs(way, published.FULL, MOST_LOST),
        }
        findings += _measured(differences, {**case, "ratio": ratio, "most": MOST_LOST}, they)
    return findings


def _ratios(rows: DataFrame, **chosen: str) -> list[float]:
    ratios: list[float] = where(rows, **chosen)["keep_ratio"].dropna().unique().tolist()
    return ratios


def rate_findings(rows: DataFrame) -> list[Finding]:
    """Judge figure 6: a tenth is the best step size, samplers are alike, diverse features best."""
    best, first = published.BEST_RATE, rows["encoder_share"].iloc[0]
    case = {"best": best, "first": first, "most": MOST_LOST}
    above = {
        (sampler, other): cell(rows, f"above_{other}", sampler=sampler, encoder_share=best)
        for sampler in rows["sampler"].unique()
        for other in ("first", "uniform")
    }
    samplers = list(rows["sampler"].unique())
    findings = []
    for sampler in samplers:
        findings += _measured({"tenth": above[sampler, "first"]}, {**case, "sampler": sampler})
    for sampler in samplers[1:]:
        ours: dict[str, Difference] = {"samplers": alike(MOST_LOST, above[sampler, "uniform"])}
        if sampler == published.BEST_SAMPLER:
            ours["diverse"] = above[sampler, "uniform"]
        findings += _measured(ours, {**case, "sampler": sampler})
    return findings


def memory_findings(measurements: DataFrame, table1: DataFrame, table2: DataFrame) -> list[Finding]:
    """Judge memory by counts: of the convolutional encoder, and of the transformers' steps."""
    near, quarter, both = {"near": _PROPORTIONAL}, 0.25, "SBP + checkpointing"
    findings = []
    for ratio, share in _of_split(measurements, "saved_part").items():
        findings += _measured({"near": _near(share, ratio)}, {**near, "ratio": ratio})
    of_swin = {
        way: cost.gigabytes for (name, way), cost in published.COSTS.items() if name == "Swin-T"
    }
    for attention in table2["attention"].unique():
        own = _shares(where(table2, attention=attention))
        mixed = {"swin_mixed": _near(own["SBP + mixed precision"] / own["SBP"], 0.5)}
        ours, theirs = (
            {
                "swin_near": _near(share["SBP"], quarter),
                "swin_saves": share["checkpointing"] - share["SBP"],
                "swin_more": share["SBP"] - share[both],
            }
            for share in (own, {way: one / of_swin[END_TO_END] for way, one in of_swin.items()})
        )
        findings += _measured(ours | mixed, {**near, "attention": attention}, theirs)
    for network in table1["network"].unique()[:2]:
        own, of_way = _shares(where(table1, network=network)), published.RECOGNITION
        most = of_way[network, END_TO_END].gigabytes
        printed = {way: of_way[network, way].gigabytes / most for way in ("SBP", DROPOUT)}
        ours, theirs = (
            {"quarter": _near(share["SBP"], quarter), "cheaper": share["SBP"] - share[DROPOUT]}
            for share in (own, printed)
        )
        findings += _measured(ours, {**near, "network": network}, theirs)
    return findings


def _near(share: float, expected: float) -> float:
    """Return a difference above 0 where a share is as expected within the margin."""
    return _PROPORTIONAL - abs(share - expected)


def _shares(rows: DataFrame) -> dict[str, float]:
    """Return the share of the memory of each way to train, NaN where it is not known."""
    known = dict(zip(rows["way"], rows["saved_share"], strict=True))
    ways = ("SBP", "checkpointing", "SBP + checkpointing", "SBP + mixed precision", DROPOUT)
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
        differences = {"form": abs(part - ours) - abs(part - theirs), "faster": 1 - part}
        printed = {"faster": 1 - 0.21 / 0.22 if ratio == 0.25 else None}
        case = {"ratio": ratio, "theirs": theirs, "ours": ours}
        findings += _measured(differences, case, printed)
    return findings


def _of_split(measurements: DataFrame, column: str) -> dict[float, float]:
    """Return a column by the keep ratios below 1 of the paper's execution."""
    own = where(measurements, way="sbp split")
    own = own[own["keep_ratio"] < 1]
    return dict(zip(own["keep_ratio"].tolist(), own[column].tolist(), strict=True))


EXPERIMENT = claims.claims_experiment(
    "004",
    _judged,
    inputs={**{name: f"{name}.tsv" for name in _TABLES}, "margin": _MARGIN},
    settings=(SbpSettings,),
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
