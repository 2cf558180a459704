"""The claims of paper 004 about memory and time, judged by what is counted and measured."""

import math
from collections.abc import Sequence

from actionspan.papers.claims import Claim, Finding
from actionspan.papers.estimates import Estimate, alike
from actionspan.papers.rows import distinct
from actionspan.papers.sbp.published_detection import split_time_ratio, time_ratio
from actionspan.papers.sbp.verdicts import Row, exact, only_number

PROPORTIONAL = 0.05
"""How far a share of the memory may be from r and still be proportional to it."""
_SPLIT = "sbp split"
_SWIN_SHARE = {"SBP": 4.4 / 15.2, "checkpointing": 5.8 / 15.2, "SBP + checkpointing": 3.2 / 15.2}
_QUARTER = 0.25


def memory_findings(measurements: Sequence[Row], table2: Sequence[Row]) -> list[Finding]:
    """Judge memory by counts: of the convolutional encoder, and of the transformer's step."""
    found = []
    for ratio in _ratios(measurements):
        claim = Claim(
            text=f"memory is almost r of full training's (within {PROPORTIONAL:g})",
            source="004, section 3.4",
            better=f"{PROPORTIONAL:g}",
            worse=f"|share - r|, r = {ratio}",
            measure="saved bytes, counted, EfficientNet-Lite0",
            key=ratio,
            form="+.3f",
        )
        share = only_number(measurements, "saved_part", way=_SPLIT, keep_ratio=ratio)
        found.append(claim.judged(alike(PROPORTIONAL, _known(share - float(ratio)))))
    for attention in distinct(table2, "attention"):
        shares = {
            way: only_number(table2, "saved_share", attention=attention, way=way)
            for way in _SWIN_SHARE
        }
        measure = f"saved bytes, counted, {attention} attention, Video Swin-T's shape"
        proportional = Claim(
            text=f"memory is almost r of end-to-end training's (within {PROPORTIONAL:g})",
            source="004, equation (4) and section 4.2",
            better=f"{PROPORTIONAL:g}",
            worse="|share - r|, r = 0.25",
            measure=measure,
            key=attention,
            published=PROPORTIONAL - abs(_SWIN_SHARE["SBP"] - _QUARTER),
            form="+.3f",
        )
        found.append(proportional.judged(alike(PROPORTIONAL, _known(shares["SBP"] - _QUARTER))))
        for less, more, text in (
            ("SBP", "checkpointing", "SBP saves as much as checkpointing, or more"),
            ("SBP + checkpointing", "SBP", "checkpointing on top of SBP saves more"),
        ):
            claim = Claim(
                text=text,
                source="004, table 2",
                better=less,
                worse=more,
                measure=measure,
                key=attention,
                published=_SWIN_SHARE[more] - _SWIN_SHARE[less],
                form="+.3f",
            )
            found.append(claim.judged(_known(shares[more] - shares[less])))
    return found


def time_findings(measurements: Sequence[Row]) -> list[Finding]:
    """Judge the time of a step: measured, beside the paper's form and ours."""
    found = []
    for ratio in _ratios(measurements):
        part = only_number(measurements, "seconds_part", way=_SPLIT, keep_ratio=ratio)
        theirs, ours = time_ratio(float(ratio)), split_time_ratio(float(ratio))
        form = Claim(
            text="the time of a step is nearer to (1 + 2r)/2 of full training's than to (1 + 2r)/3",
            source="004, section 3.4",
            better=f"{theirs:.3f}, r = {ratio}",
            worse=f"{ours:.3f}",
            measure="CPU seconds of a step, EfficientNet-Lite0",
            key=ratio,
            form="+.3f",
        )
        faster = Claim(
            text="a step is faster than one of full training",
            source="004, abstract and table 2",
            better=f"SBP, r = {ratio}",
            worse="full",
            measure="CPU seconds of a step, EfficientNet-Lite0",
            key=ratio,
            published=1 - 0.21 / 0.22 if ratio == f"{_QUARTER:g}" else None,
            form="+.3f",
        )
        found += [
            form.judged(_known(abs(part - ours) - abs(part - theirs))),
            faster.judged(_known(1 - part)),
        ]
    return found


def _known(value: float) -> Estimate | str:
    return "It was not counted." if math.isnan(value) else exact(value)


def _ratios(rows: Sequence[Row]) -> list[str]:
    """Return the keep ratios below 1 of the paper's execution."""
    own = [row for row in rows if row["way"] == _SPLIT]
    return [ratio for ratio in distinct(own, "keep_ratio") if ratio and float(ratio) < 1]
