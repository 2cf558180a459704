"""The claims of paper 004 about detection (tables 4 and 5, figure 6), judged on our runs."""

from collections.abc import Mapping, Sequence

from actionspan_papers.claims import Finding, found
from actionspan_papers.estimates import alike
from actionspan_papers.rows import distinct
from actionspan_papers.sbp.published import (
    BEST_RATE,
    BEST_SAMPLER,
    FROZEN,
    FULL,
    HEADS_LIKE,
    LOCALISATION,
    MOST_LOST,
    ONLINE,
    Trained,
)
from actionspan_papers.sbp.verdicts import OURS, Row, at_most, cell

_MAP = "per-frame mAP"


def online_findings(rows: Sequence[Row]) -> list[Finding]:
    """Judge table 4: end-to-end training and SBP against the frozen encoder and each other."""
    findings = []
    for head in distinct(rows, "head"):
        printed = {
            way: row.precision
            for (method, way), row in ONLINE.items()
            if method == HEADS_LIKE[head]
        }
        places = "004, table 4", "004, abstract and table 4"
        measure = f"{_MAP}, {head} head"
        findings += _against_ends(rows, "", printed, places, measure, {"head": head}, {})
    return findings


def localisation_findings(rows: Sequence[Row]) -> list[Finding]:
    """Judge table 5 in the same way, by mAP (the paper's measure) and by AUC."""
    means = {way: row.mean for way, row in LOCALISATION.items()}
    places = "004, table 5", "004, abstract (table 5 prints more at r = 0.25 and 0.125)"
    text, findings = "with importance sampling SBP is better than a frozen encoder", []
    for key, measure, printed in (("map", "mAP at tIoU 0.3 to 0.7", means), ("auc", "AUC", {})):
        uniform = {"sampler": "uniform_random"}
        findings += _against_ends(rows, f"{key}_", printed, places, measure, {}, uniform)
        for ratio in _ratios(rows, sampler="importance"):
            chosen = {"way": "sbp", "keep_ratio": ratio, "sampler": "importance"}
            pays = cell(rows, f"{key}_above_frozen", **chosen)
            findings.append(found(text, OURS, f"importance, r = {ratio}", "frozen", measure, pays))
    return findings


def _against_ends(
    rows: Sequence[Row],
    prefix: str,
    printed: Mapping[Trained, float],
    places: tuple[str, str],
    measure: str,
    chosen: Mapping[str, str],
    sampled: Mapping[str, str],
) -> list[Finding]:
    """Judge full training and SBP against the frozen encoder, and SBP against full training.

    Args:
        rows: Of the table.
        prefix: Of its columns.
        printed: What the paper prints of each training.
        places: Where it claims that training is better, and that SBP loses little.
        measure: Its name.
        chosen: Cells of all rows that count.
        sampled: Further cells of those of SBP.
    """

    def above(way: Trained, other: Trained, more: float = 0) -> float | None:
        return printed[way] - printed[other] + more if way in printed else None

    place, sparing = places
    better = cell(rows, f"{prefix}above_frozen", **chosen, way="full")
    text = "end-to-end training is better than a frozen encoder"
    findings = [found(text, place, "full", "frozen", measure, better, above(FULL, FROZEN))]
    lost = f"SBP loses less than {MOST_LOST:g} point to end-to-end training"
    for ratio in _ratios(rows, **chosen, **sampled):
        name, way = f"SBP, r = {ratio}", Trained("sbp", float(ratio))
        own = {**chosen, "way": "sbp", "keep_ratio": ratio, **sampled}
        better = cell(rows, f"{prefix}above_frozen", **own)
        text = "SBP is better than a frozen encoder"
        findings.append(found(text, place, name, "frozen", measure, better, above(way, FROZEN)))
        little = at_most(MOST_LOST, cell(rows, f"{prefix}above_full", **own))
        sides = f"{name}, +{MOST_LOST:g}", "full"
        most = above(way, FULL, MOST_LOST)
        findings.append(found(lost, sparing, *sides, measure, little, most))
    return findings


def rate_findings(rows: Sequence[Row]) -> list[Finding]:
    """Judge figure 6: a tenth is the best step size, samplers are alike, diverse features best."""
    first, tenth = distinct(rows, "encoder_share")[0], f"{BEST_RATE:g}"
    text = "a tenth of the other step size is better for the encoder than the same"
    findings = []
    for sampler in distinct(rows, "sampler"):
        sides = f"{sampler}, share {tenth}", f"{sampler}, share {first}"
        best = cell(rows, "above_first", sampler=sampler, encoder_share=tenth)
        findings.append(found(text, "004, figure 6", *sides, _MAP, best))
    text = f"samplers are alike (within {MOST_LOST:g} point)"
    for sampler in distinct(rows, "sampler")[1:]:
        difference = cell(rows, "above_uniform", sampler=sampler, encoder_share=tenth)
        sides = f"{MOST_LOST:g}", f"|{sampler} - uniform_random|, share {tenth}"
        same = alike(MOST_LOST, difference)
        findings.append(found(text, "004, section 5.1.3", *sides, _MAP, same))
        if sampler == BEST_SAMPLER:
            sides = f"{sampler}, share {tenth}", f"uniform_random, share {tenth}"
            best_text = "sampling by diverse features is best"
            findings.append(found(best_text, "004, figure 6", *sides, _MAP, difference))
    return findings


def _ratios(rows: Sequence[Row], **chosen: str) -> list[str]:
    own = [row for row in rows if all(row[name] == value for name, value in chosen.items())]
    return [ratio for ratio in distinct(own, "keep_ratio") if ratio]
