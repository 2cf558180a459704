"""Write the page that counts the papers' sentences, their claims, and what printed numbers decide.

`inventory.tsv` of each paper lists its sentences: the line of its text and the first words, and
the claims that it makes, as claims.md names them (* for what differs by run), or what else it is.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from actionspan.storage.text import markdown_table
from actionspan.storage.writing import read_tsv, write_text
from actionspan_papers.claims import NOT_REPRODUCED, VERDICTS, Finding

NUMBERS = {"ring": "000", "mtn": "001", "partime": "002", "aavg": "003", "sbp": "004"}
_HEAD = """\
# Claims of the five papers

This page is written by `actionspan papers inventory`. Each sentence of a paper is a row of
`src/actionspan_papers/PAPER/inventory.tsv`: the claims that it makes, by their words in
`results/papers/PAPER/claims.md`, or its kind. Lines are of the papers' texts, which have no pages.
Some claims need no run: the paper's own numbers decide them.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("--out", type=Path, required=True, help="page to write (docs/claims.md)")


def run(arguments: argparse.Namespace) -> None:
    """Write the page."""
    write_text(arguments.out, page())


def sentences(paper: str) -> list[dict[str, str]]:
    """Return the sentences of a paper: line, begins, kind and claims."""
    return read_tsv(Path(__file__).parent / paper / "inventory.tsv")


def claimed(paper: str) -> list[str]:
    """Return the claims of a paper's sentences, each once."""
    named = [row["claims"].split("; ") for row in sentences(paper) if row["claims"]]
    return list(dict.fromkeys(claim for claims in named for claim in claims))


def by_print(paper: str) -> Sequence[Finding]:
    """Return the verdicts that a paper's own numbers give."""
    findings: Sequence[Finding] = import_module(
        f"actionspan_papers.{paper}.published"
    ).printed_findings()
    return findings


def page() -> str:
    """Return the page: a table of counts, and the papers' contradictions in their own numbers."""
    counts, contradicted = [], []
    for paper, number in NUMBERS.items():
        kinds = Counter(row["kind"] for row in sentences(paper))
        findings = by_print(paper)
        verdicts = Counter(one.verdict for one in findings)
        shown = [str(verdicts[verdict]) for verdict in VERDICTS]
        every = [number, str(kinds.total()), str(kinds["claim"]), str(len(claimed(paper)))]
        counts.append([*every, *shown])
        contradicted += [
            [one.claim.source, one.claim.text, one.why]
            for one in findings
            if one.verdict == NOT_REPRODUCED
        ]
    titles = ["paper", "sentences", "with claims", "claims"]
    titles += ["by print: shown", "contradicted", "open or not built"]
    lines = markdown_table("lrrrrrr", titles, counts)
    lines += ["", "## Contradicted by the paper itself", ""]
    lines += markdown_table("lll", ["where", "claim", "numbers"], contradicted)
    return "\n".join([_HEAD, *lines, ""])
