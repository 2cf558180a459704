"""The claims of paper 004 about detection (tables 4 and 5, figure 6), judged on our runs."""

from collections.abc import Sequence
from typing import Any

from actionspan.papers.claims import Claim, Finding
from actionspan.papers.estimates import alike
from actionspan.papers.rows import distinct
from actionspan.papers.sbp.published_detection import (
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
from actionspan.papers.sbp.verdicts import OURS, Row, at_most, cell

_MAP = "per-frame mAP"


def online_findings(rows: Sequence[Row]) -> list[Finding]:
    """Judge table 4: end-to-end training and SBP against the frozen encoder and each other."""
    found = []
    for head in distinct(rows, "head"):
        method = HEADS_LIKE[head]
        shared: dict[str, Any] = {"measure": f"{_MAP}, {head} head", "key": head}
        frozen, full = (ONLINE[method, way].precision for way in (FROZEN, FULL))
        better = Claim(
            text="end-to-end training is better than a frozen encoder",
            source="004, table 4",
            better="full",
            worse="frozen",
            published=full - frozen,
            **shared,
        )
        found.append(better.judged(cell(rows, "above_frozen", head=head, way="full")))
        for ratio in _ratios(rows, head=head):
            name, key = f"SBP, r = {ratio}", {"head": head, "way": "sbp", "keep_ratio": ratio}
            printed = ONLINE.get((method, Trained("sbp", float(ratio))))
            sampled = Claim(
                text="SBP is better than a frozen encoder",
                source="004, table 4",
                better=name,
                worse="frozen",
                published=None if printed is None else printed.precision - frozen,
                **shared,
            )
            lost = Claim(
                text=f"SBP loses less than {MOST_LOST:g} point to end-to-end training",
                source="004, abstract and table 4",
                better=f"{name}, +{MOST_LOST:g}",
                worse="full",
                published=None if printed is None else printed.precision - full + MOST_LOST,
                **shared,
            )
            found += [
                sampled.judged(cell(rows, "above_frozen", **key)),
                lost.judged(at_most(MOST_LOST, cell(rows, "above_full", **key))),
            ]
    return found


def localisation_findings(rows: Sequence[Row]) -> list[Finding]:
    """Judge table 5 in the same way, by mAP (the paper's measure) and by AUC."""
    found = []
    frozen, full = LOCALISATION[FROZEN].mean, LOCALISATION[FULL].mean
    for key, measure in (("map", "mAP at tIoU 0.3 to 0.7"), ("auc", "AUC")):
        printed = key == "map"  # the paper has no AUC
        shared: dict[str, Any] = {"measure": measure, "key": key}
        better = Claim(
            text="end-to-end training is better than a frozen encoder",
            source="004, table 5",
            better="full",
            worse="frozen",
            published=full - frozen if printed else None,
            **shared,
        )
        found.append(better.judged(cell(rows, f"{key}_above_frozen", way="full")))
        for ratio in _ratios(rows, sampler="uniform_random"):
            name = f"SBP, r = {ratio}"
            chosen = {"way": "sbp", "keep_ratio": ratio, "sampler": "uniform_random"}
            row = LOCALISATION.get(Trained("sbp", float(ratio))) if printed else None
            sampled = Claim(
                text="SBP is better than a frozen encoder",
                source="004, table 5",
                better=name,
                worse="frozen",
                published=None if row is None else row.mean - frozen,
                **shared,
            )
            lost = Claim(
                text=f"SBP loses less than {MOST_LOST:g} point to end-to-end training",
                source="004, abstract (table 5 prints more at r = 0.25 and 0.125)",
                better=f"{name}, +{MOST_LOST:g}",
                worse="full",
                published=None if row is None else row.mean - full + MOST_LOST,
                **shared,
            )
            found += [
                sampled.judged(cell(rows, f"{key}_above_frozen", **chosen)),
                lost.judged(at_most(MOST_LOST, cell(rows, f"{key}_above_full", **chosen))),
            ]
        for ratio in _ratios(rows, sampler="importance"):
            chosen = {"way": "sbp", "keep_ratio": ratio, "sampler": "importance"}
            pays = Claim(
                text="with importance sampling SBP is better than a frozen encoder",
                source=OURS,
                better=f"importance, r = {ratio}",
                worse="frozen",
                **shared,
            )
            found.append(pays.judged(cell(rows, f"{key}_above_frozen", **chosen)))
    return found


def rate_findings(rows: Sequence[Row]) -> list[Finding]:
    """Judge figure 6: a tenth is the best step size, samplers are alike, diverse features best."""
    found = []
    shared: dict[str, Any] = {"measure": _MAP, "key": "rates"}
    first, tenth = distinct(rows, "encoder_share")[0], f"{BEST_RATE:g}"
    for sampler in distinct(rows, "sampler"):
        best = Claim(
            text="a tenth of the other step size is better for the encoder than the same",
            source="004, figure 6",
            better=f"{sampler}, share {tenth}",
            worse=f"{sampler}, share {first}",
            **shared,
        )
        found.append(best.judged(cell(rows, "above_first", sampler=sampler, encoder_share=tenth)))
    for sampler in distinct(rows, "sampler")[1:]:
        difference = cell(rows, "above_uniform", sampler=sampler, encoder_share=tenth)
        same = Claim(
            text=f"samplers are alike (within {MOST_LOST:g} point)",
            source="004, section 5.1.3",
            better=f"{MOST_LOST:g}",
            worse=f"|{sampler} - uniform_random|, share {tenth}",
            **shared,
        )
        found.append(same.judged(alike(MOST_LOST, difference)))
        if sampler == BEST_SAMPLER:
            diverse = Claim(
                text="sampling by diverse features is best",
                source="004, figure 6",
                better=f"{sampler}, share {tenth}",
                worse=f"uniform_random, share {tenth}",
                **shared,
            )
            found.append(diverse.judged(difference))
    return found


def _ratios(rows: Sequence[Row], **chosen: str) -> list[str]:
    own = [row for row in rows if all(row[name] == value for name, value in chosen.items())]
    return [ratio for ratio in distinct(own, "keep_ratio") if ratio]
