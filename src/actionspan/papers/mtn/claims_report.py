"""The findings on paper 001's claims in Markdown."""

from collections.abc import Sequence

from actionspan.papers.claims import Finding, claims_markdown


def findings_markdown(findings: Sequence[Finding], measured: str) -> str:
    """Return the findings in Markdown.

    Args:
        findings: What `judge_claims` returned.
        measured: On what the scores were measured.
    """
    words = (
        f"Measured with {measured}",
        "A difference above 0 speaks for the claim. It is the better method's percentage less the "
        "worse one's on the same videos; of losses, which have an interval over seeds alone, it is "
        "the worse model's less the better one's. A verdict is on the sign of the difference, not "
        "on its size. Published differences are of other features and other data.",
    )
    return claims_markdown(findings, "001", words)
