"""Claims of a paper: what each compares, the rule of its verdict, and the report."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from actionspan.storage.writing import read_tsv
from actionspan_papers.estimates import Estimate
from actionspan_papers.experiments import Experiment, Row, Table

Verdict = Literal["reproduced", "not reproduced", "not testable on this data"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
REPRODUCED, NOT_REPRODUCED, NOT_TESTABLE = VERDICTS

Rule = Callable[[float, float, float | None, str], tuple[Verdict, str]]


def judge(
    low: float, high: float, published: float | None, form: str = "+.2f"
) -> tuple[Verdict, str]:
    """Return the verdict on a claim, by the interval of the difference, and one sentence why.

    A claim names the better of two, not by how much: the verdict is on the sign alone. The
    paper's difference is only mentioned, in `form`.
    """
    if low > 0:
        return REPRODUCED, "The interval lies above 0."
    if high < 0:
        return NOT_REPRODUCED, "The interval lies below 0: here the order is the other way round."
    if low == high:  # both 0: few videos, all missed or all found by both
        why = "Both are equal in every resample: these data cannot distinguish them."
    elif published is None:
        why = "The interval holds 0."
    elif low <= published <= high:
        why = f"The interval holds both 0 and the published {published:{form}}."
    else:
        why = f"The interval holds 0; the published {published:{form}} lies outside it."
    return NOT_TESTABLE, why


def by_sign(why: str, difference: float, *_: object) -> tuple[Verdict, str]:
    """Return the verdict by an exact difference: 0 does not show the claim."""
    return REPRODUCED if difference > 0 else NOT_REPRODUCED, why


@dataclass(frozen=True)
class Claim:
    """That one method is better than another by one measure."""

    text: str
    source: str
    better: str
    worse: str
    measure: str
    """Its name in the report."""
    key: str = ""
    """Its name in the data where that is looked up by claim: a metric, a stream."""
    published: float | None = None
    """The difference that the paper prints; None where it prints none."""
    rule: Rule = judge
    form: str = "+.2f"
    """How differences are written."""

    def judged(self, difference: "Difference") -> "Finding":
        """Return the verdict on our difference (above 0 for the claim), or on why there is none.

        A number is counted, not drawn: its interval is itself; NaN was not counted.
        """
        if isinstance(difference, int | float):
            exact = Estimate(value=difference, low=difference, high=difference)
            difference = "It was not counted." if math.isnan(difference) else exact
        if isinstance(difference, str):
            return Finding(claim=self, verdict=NOT_TESTABLE, why=difference)
        # sums in another order differ by some 1e-15, and an interval of exactly 0 is not above 0
        low, high = round(difference.low, 9), round(difference.high, 9)
        verdict, why = self.rule(low, high, self.published, self.form)
        return Finding(
            claim=self,
            difference=difference.value,
            low=low,
            high=high,
            verdict=verdict,
            why=why,
            samples=difference.samples,
            unit=difference.unit,
        )


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The verdict on a claim on our data; numbers are NaN where there is none."""

    claim: Claim
    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    verdict: Verdict
    why: str
    samples: int = 0
    """How many videos, clips or seeds the interval is over; 0 where nobody counted."""
    unit: str = ""
    """Their name."""

    def decider(self) -> str:
        """Return what would decide an open claim; empty where it is decided.

        An interval narrows as 1/√n, so an effect as large as the published one, or else as ours,
        shows from n·(half of the width ÷ effect)² on.
        """
        if self.verdict != NOT_TESTABLE:
            return ""
        if math.isnan(self.low):
            return next((need for start, need in _NEEDS if start in self.why), "other data")
        published, half = self.claim.published, (self.high - self.low) / 2
        effect = abs(published or self.difference)
        if not half or not effect:
            return "data that distinguish them"
        of = f"{'the published' if published else 'our'} {effect:.3g}"
        times = (half / effect) ** 2
        if times <= 1:
            return f"as much data again, where {of} lies outside"
        if not self.samples:
            return f"{times:.3g} × the data, if {of} is true"
        most = math.ceil(self.samples * times)
        have = f"{self.samples} here"
        return f"{most:,} {self.unit} ({have}), if {of} is true"

    def row(self) -> Row:
        """Return the cells of claims.tsv."""
        claim, form = self.claim, self.claim.form
        return {
            "claim": claim.text,
            "source": claim.source,
            "measure": claim.measure,
            "better": claim.better,
            "worse": claim.worse,
            "difference": Estimate(value=self.difference, low=self.low, high=self.high, form=form),
            "published_difference": "" if claim.published is None else f"{claim.published:{form}}",
            "verdict": self.verdict,
            "why": self.why,
            "would_decide": self.decider(),
        }


_NEEDS = (
    ("Not built", "building it"),
    ("Runs of", "runs of them"),
    ("Such runs are missing", "runs of them, timed"),
    ("numbers of ranks", "runs on more ranks"),
    ("interval over videos", "two videos or more"),
    ("interval over clips", "two clips or more"),
    ("Validation clips", "validation clips"),
    ("ne seed", "two seeds or more"),
    ("two seeds", "two seeds or more"),
    ("One run of each", "repeats"),
    ("make gpu", "`make gpu` on a machine with a GPU"),
    ("device for each stage", "as many GPUs as stages"),
    ("busy", "a free machine"),
    ("fewer than two cores", "two cores"),
    ("in one process", "ranks of their own"),
    ("leave the ring's C open", "t2 of the paper's runs"),
    ("printed", "numbers that the paper does not print"),
    ("The paper has no", "numbers that the paper does not print"),
    ("was not counted", "a run that counts it"),
)
"""What decides a claim without an interval, by words of the reason."""


Difference = Estimate | float | str
"""Ours, above 0 for the claim; or why there is none."""


def table_of(paper: str, name: str) -> list[dict[str, str]]:
    """Return a table of a paper: `published` numbers, or claims `printed`, `measured`, `on_gpu`."""
    return read_tsv(Path(__file__).parent / paper / f"{name}.tsv")


def claim_of(row: Mapping[str, str], case: Mapping[str, Any] = {}, **how: Any) -> Claim:
    """Return the claim of a row of a table.

    Its texts name values of the case in braces; `how` are other fields of `Claim`.
    """
    names = ("claim", "source", "better", "worse", "measure")
    text, source, better, worse, measure = (row[name].format_map(case) for name in names)
    if row.get("published"):
        how["published"] = float(row["published"])
    how = {"key": row.get("key", ""), "form": row["form"], **how}
    return Claim(text, source, better, worse, measure, **how)


def measured(
    paper: str,
    ours: Mapping[str, Difference],
    case: Mapping[str, Any] = {},
    published: Mapping[str, float | None] = {},
    rule: Rule = judge,
) -> list[Finding]:
    """Return the verdicts on claims of a paper's measured.tsv, by our differences at their keys.

    The case is as for `claim_of`; some claims have a published difference.

    Raises:
        ValueError: The table has no such key.
    """
    rows = {row["key"]: row for row in table_of(paper, "measured")}
    if unknown := sorted(ours.keys() - rows.keys()):
        raise ValueError(f"{paper}/measured.tsv: no claim {unknown[0]!r}")
    return [
        claim_of(row, case, published=published.get(key), rule=rule).judged(ours[key])
        for key, row in rows.items()
        if key in ours
    ]


def by_print(
    paper: str, margins: Mapping[str, float], words: Mapping[str, object]
) -> list[Finding]:
    """Return the verdicts on the claims of a paper's printed.tsv, by numbers that it prints.

    A margin is above 0 for the claim of its key, and words fill the reasons. Claims without a
    margin are open: the reason states the means they take.
    """
    findings = []
    for row in table_of(paper, "printed"):
        why, key = row["why"].format_map(words), row["key"]
        margin = round(float(margins[key]), 9) + 0.0 if key in margins else why  # no -0
        findings.append(claim_of(row, rule=partial(by_sign, why)).judged(margin))
    return findings


def one_seed(names: Sequence[str]) -> str:
    """Return why methods with one training each leave a claim open; empty where there is none."""
    return f"One seed of {' and '.join(names)} shows nothing about the next." if names else ""


def no_runs(names: Sequence[str]) -> str:
    """Return why methods without any training leave a claim open; empty where there is none."""
    return f"Runs of {' and '.join(names)} are missing." if names else ""


Judged = tuple[Sequence[Finding], Sequence[str]]
"""The findings on a paper, and the lines above their table."""


def claims_experiment(paper: str, judge: Callable[..., Judged], **options: Any) -> Experiment:
    """Return the experiment that writes the verdicts on a paper, given by its number.

    `judge` gets the flags and the settings; the options are as in `Experiment`.
    """

    def rows(judged: Judged, *_: object) -> list[Row]:
        return [finding.row() for finding in judged[0]]

    def table(_: object, judged: Judged, *__: object) -> Table:
        findings, caption = judged
        counts = Counter(finding.verdict for finding in findings)
        numbers = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)
        shown = [{**row, "better": f"{row['better']}, {row['worse']}"} for row in rows(judged)]
        named = {
            "better": "better, worse",
            "published_difference": "published",
            "would_decide": "would decide it",
        }
        return Table(
            caption=[f"Claims of paper {paper} on our data: {numbers}.", *caption],
            titles={column: named.get(column, column) for column in shown[0] if column != "worse"},
            rows=shown,
            words={verdict: f"**{verdict}**" for verdict in VERDICTS},
            align="llllrrlll",
        )

    return Experiment(read=judge, rows=rows, table=table, **options)
