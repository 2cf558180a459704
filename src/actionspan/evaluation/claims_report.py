"""The findings on paper 001's claims as a table, in TSV and in Markdown."""

import math
from collections import Counter
from collections.abc import Sequence

from actionspan.evaluation.claims import LOSS, VERDICTS, Finding

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


def claim_cells(findings: Sequence[Finding]) -> list[list[str]]:
    """Return the rows of claims.tsv, after `CLAIM_COLUMNS`; what is not known is empty."""
    rows = []
    for found in findings:
        digits = 4 if found.metric == LOSS else 2
        numbers = (found.difference, found.low, found.high, found.published)
        measure = found.metric.replace("thumos14_", "THUMOS14 ")
        rows.append(
            [
                found.claim.text,
                found.claim.source,
                measure,
                found.claim.better,
                found.claim.worse,
                *(
                    "" if number is None or math.isnan(number) else f"{number:+.{digits}f}"
                    for number in numbers
                ),
                found.verdict,
                found.why,
            ]
        )
    return rows


def claims_markdown(findings: Sequence[Finding], measured: str) -> str:
    """Return the findings in Markdown.

    Args:
        findings: What `judge_claims` returned.
        measured: On what the scores were measured.
    """
    counts = Counter(found.verdict for found in findings)
    lines = [
        "Claims of paper 001 on our data: "
        + ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)
        + ".",
        f"Measured with {measured}",
        "A difference above 0 speaks for the claim. It is the better method's percentage less the "
        "worse one's on the same videos; of losses, which have an interval over seeds alone, it is "
        "the worse model's less the better one's. A verdict is on the sign of the difference, not "
        "on its size. Published differences are of other features and other data.",
        "",
        "| claim | source | measure | better, worse | difference | published | verdict | why |",
        "|---|---|---|---|---:|---:|---|---|",
    ]
    for cells in claim_cells(findings):
        claim, source, measure, better, worse, value, low, high, published, verdict, why = cells
        shown = f"{value} [{low}, {high}]" if value else ""
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
