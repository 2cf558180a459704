"""The claims of paper 004 about memory and time, judged by what is counted and measured."""

from collections.abc import Sequence

from actionspan_papers.claims import Finding, found
from actionspan_papers.rows import distinct
from actionspan_papers.sbp.published import RECOGNITION, split_time_ratio, time_ratio
from actionspan_papers.sbp.verdicts import Row, only_number

PROPORTIONAL = 0.05
"""How far a share of the memory may be from r and still be proportional to it."""
_SPLIT = "sbp split"
_SWIN_SHARE = {"SBP": 4.4 / 15.2, "checkpointing": 5.8 / 15.2, "SBP + checkpointing": 3.2 / 15.2}
_QUARTER = 0.25
_MIXED = "SBP + mixed precision"
_WITHIN = f"(within {PROPORTIONAL:g})"


def _near(share: float, expected: float) -> float:
    """Return what is above 0 where a share is as expected, but for the margin."""
    return PROPORTIONAL - abs(share - expected)


def memory_findings(
    measurements: Sequence[Row], table1: Sequence[Row], table2: Sequence[Row]
) -> list[Finding]:
    """Judge memory by counts: of the convolutional encoder, and of the transformers' steps."""
    margin = f"{PROPORTIONAL:g}"
    claims: list[tuple[str, str, str, str, str, float | str, float | None]] = []
    for ratio in _ratios(measurements):
        share = only_number(measurements, "saved_part", way=_SPLIT, keep_ratio=ratio)
        text, worse = (
            f"memory is almost r of full training's {_WITHIN}",
            f"|share - r|, r = {ratio}",
        )
        measure, off = "saved bytes, counted, EfficientNet-Lite0", _near(share, float(ratio))
        claims.append((text, "004, section 3.4", margin, worse, measure, off, None))
    for attention in distinct(table2, "attention"):
        shares = {
            way: only_number(table2, "saved_share", attention=attention, way=way)
            for way in (*_SWIN_SHARE, _MIXED)
        }
        measure = f"saved bytes, counted, {attention} attention, Video Swin-T's shape"
        text = f"memory is almost r of end-to-end training's {_WITHIN}"
        source, worse = "004, equation (4) and section 4.2", "|share - r|, r = 0.25"
        printed = _near(_SWIN_SHARE["SBP"], _QUARTER)
        off = _near(shares["SBP"], _QUARTER)
        claims.append((text, source, margin, worse, measure, off, printed))
        for less, more, text in (
            ("SBP", "checkpointing", "SBP saves as much as checkpointing, or more"),
            ("SBP + checkpointing", "SBP", "checkpointing on top of SBP saves more"),
        ):
            difference, printed = (each[more] - each[less] for each in (shares, _SWIN_SHARE))
            claims.append((text, "004, table 2", less, more, measure, difference, printed))
        text = f"mixed precision halves the memory of SBP {_WITHIN}"
        off = _near(shares[_MIXED] / shares["SBP"], 0.5)
        claims.append(
            (text, "004, section 4.2", margin, "|share of SBP's - 0.5|", measure, off, None)
        )
    for network in distinct(table1, "network")[:2]:
        names, whole = ("SBP", "frame dropout"), RECOGNITION[network, "end-to-end"].gigabytes
        own = [only_number(table1, "saved_share", network=network, way=way) for way in names]
        gigabytes = [RECOGNITION[network, way].gigabytes / whole for way in names]
        measure = f"saved bytes, counted, explicit attention, {network}'s shape"
        text = f"memory is a quarter of end-to-end training's {_WITHIN}"
        off, printed = (_near(shares[0], _QUARTER) for shares in (own, gigabytes))
        claims.append((text, "004, table 1", margin, "|share - 0.25|", measure, off, printed))
        text, (off, printed) = "frame dropout costs less", (a - b for a, b in (own, gigabytes))
        claims.append((text, "004, table 1", names[1], names[0], measure, off, printed))
    why = "Not built: transformers are trained in float32 here."
    text = "mixed precision loses no accuracy"
    claims.append((text, "004, section 4.2", _MIXED, "SBP", "top-1", why, None))
    return [found(*claim, form="+.3f") for claim in claims]


def time_findings(measurements: Sequence[Row]) -> list[Finding]:
    """Judge the time of a step: measured, beside the paper's form and ours."""
    findings, measure = [], "CPU seconds of a step, EfficientNet-Lite0"
    for ratio in _ratios(measurements):
        part = only_number(measurements, "seconds_part", way=_SPLIT, keep_ratio=ratio)
        theirs, ours = time_ratio(float(ratio)), split_time_ratio(float(ratio))
        form = found(
            "the time of a step is nearer to (1 + 2r)/2 of full training's than to (1 + 2r)/3",
            "004, section 3.4",
            f"{theirs:.3f}, r = {ratio}",
            f"{ours:.3f}",
            measure,
            abs(part - ours) - abs(part - theirs),
            form="+.3f",
        )
        faster = found(
            "a step is faster than one of full training",
            "004, abstract and table 2",
            f"SBP, r = {ratio}",
            "full",
            measure,
            1 - part,
            1 - 0.21 / 0.22 if ratio == f"{_QUARTER:g}" else None,
            form="+.3f",
        )
        findings += [form, faster]
    return findings


def _ratios(rows: Sequence[Row]) -> list[str]:
    """Return the keep ratios below 1 of the paper's execution."""
    own = [row for row in rows if row["way"] == _SPLIT]
    return [ratio for ratio in distinct(own, "keep_ratio") if ratio and float(ratio) < 1]
