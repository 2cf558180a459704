"""Verdicts on a paper's claims: the rule, what was found, and the report in TSV and Markdown."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Verdict = Literal["reproduced", "not reproduced", "not testable on this data"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
REPRODUCED, NOT_REPRODUCED, NOT_TESTABLE = VERDICTS

CLAIM_COLUMNS = (
    "claim",
    "source",
    "measure",
    "better",
    "worse",
    "difference",
    "difference_low",
    "difference_high",
    "published_difference",
    "verdict",
    "why",
)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A claim by one measure on our data; a positive difference speaks for the claim.

    Numbers are NaN where there is none; `digits` is how many decimals are shown.
    """

    claim: str
    source: str
    measure: str
    better: str
    worse: str
    difference: float
    low: float
    high: float
    published: float | None
    verdict: Verdict
    why: str
    digits: int = 2


def judge(low: float, high: float, published: float | None, digits: int = 2) -> tuple[Verdict, str]:
    """Return the verdict on a claim and one sentence why.

    A claim says which of two is better, not by how much: the verdict is on the sign alone.

    Args:
        low: Lower end of the interval of the difference; above 0 speaks for the claim.
        high: Its upper end, at least `low`.
        published: The paper's difference; None where it prints none.
        digits: Decimals of numbers in the sentence.
    """
    if low > 0:
        return REPRODUCED, "The interval lies above 0."
    if high < 0:
        return NOT_REPRODUCED, "The interval lies below 0: here the order is the other way round."
    if low == high:  # of 0: few videos, all missed or all found by both
        return (
            NOT_TESTABLE,
            "Both are equal in every resample: these data have nothing to tell them apart by.",
        )
    if published is None:
        why = "The interval holds 0."
    elif low <= published <= high:
        why = f"The interval holds both 0 and the published {published:+.{digits}f}."
    else:
        why = f"The interval holds 0; the published {published:+.{digits}f} lies outside it."
    return NOT_TESTABLE, why


def claim_cells(findings: Sequence[Finding]) -> list[list[str]]:
    """Return the rows of claims.tsv, after `CLAIM_COLUMNS`; what is not known is empty."""
    rows = []
    for found in findings:
        numbers = (found.difference, found.low, found.high, found.published)
        rows.append(
            [
                found.claim,
                found.source,
                found.measure,
                found.better,
                found.worse,
                *(
                    "" if number is None or math.isnan(number) else f"{number:+.{found.digits}f}"
                    for number in numbers
                ),
                found.verdict,
                found.why,
            ]
        )
    return rows


def claims_markdown(findings: Sequence[Finding], paper: str, words: Sequence[str]) -> str:
    """Return the findings in Markdown.

    Args:
        findings: What was found.
        paper: Its number.
        words: Lines on how they were measured, and how to read them.
    """
    counts = Counter(found.verdict for found in findings)
    lines = [
        f"Claims of paper {paper} on our data: "
        + ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)
        + ".",
        *words,
        "",
        "| claim | source | measure | better, worse | difference | published | verdict | why |",
        "|---|---|---|---|---:|---:|---|---|",
    ]
    for cells in claim_cells(findings):
        claim, source, measure, better, worse, value, low, high, published, verdict, why = cells
        shown = f"{value} [{low}, {high}]" if low else value
        row = [
            claim,
            source,
            measure,
            f"{better}, {worse}",
            shown,
            published,
            f"**{verdict}**",
            why,
        ]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"
