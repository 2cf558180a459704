"""Each sentence of the five papers is listed, with claims that have rows, and so is each number."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from actionspan.cli import main
from actionspan.storage.writing import read_tsv
from actionspan_papers.inventory import NUMBERS, by_print, claimed, page
from actionspan_papers.inventory import sentences as listed
from papers.sentences import sentences
from test_docs import ROOT

PAPERS = Path(__file__).parents[3] / "shared" / "papers"
SOURCES = ROOT / "src/actionspan_papers"
KINDS = {"claim", "background", "definition", "setting", "description", "title", "reference"}


def text_of(paper: str) -> str:
    texts = sorted(PAPERS.glob(f"{NUMBERS[paper]}_*.txt"))
    if not texts:
        pytest.skip(f"the papers are not here: {PAPERS} has no text of {NUMBERS[paper]}")
    return texts[0].read_text()


@cache
def claims_of_code(paper: str) -> list[re.Pattern[str]]:
    """Return the claims that a paper's code and tables can write; what is filled in is any text."""
    texts = [row["claim"] for row in of_tables(paper)]
    for path in (SOURCES / paper).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = [
                    each.value if isinstance(each, ast.Constant) else "{}" for each in node.values
                ]
                texts.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts += [line.split(" | ")[1] for line in node.value.split("\n") if " | " in line]
                texts.append(node.value)
    return [re.compile(re.sub(r"\\\{.*?\\\}", ".+", re.escape(text))) for text in texts if text]


def of_tables(paper: str) -> list[dict[str, str]]:
    paths = [SOURCES / paper / name for name in ("printed.tsv", "measured.tsv", "on_gpu.tsv")]
    return [row for path in paths if path.exists() for row in read_tsv(path)]


@pytest.mark.parametrize("paper", NUMBERS)
def test_every_sentence_is_listed(paper):
    expected = Counter(sentences(text_of(paper)))
    found = Counter((int(row["line"]), row["begins"]) for row in listed(paper))
    assert expected == found
    assert found.total() > 150


@pytest.mark.parametrize("paper", NUMBERS)
def test_a_sentence_is_a_claim_or_something_else(paper):
    for row in listed(paper):
        assert row["kind"] in KINDS
        assert (row["kind"] == "claim") == bool(row["claims"]), row


@pytest.mark.parametrize("paper", NUMBERS)
def test_every_claim_of_a_sentence_has_a_row(paper):
    for claim in claimed(paper):
        filled = claim.replace("*", "X")
        assert any(each.fullmatch(filled) for each in claims_of_code(paper)), claim


@pytest.mark.parametrize("paper", NUMBERS)
def test_every_printed_verdict_belongs_to_a_sentence(paper):
    """But those on orders and agreement of numbers, which no sentence states."""
    named = [
        re.compile(re.escape(claim).replace(r"\*", ".+").replace("X", ".+"))
        for claim in claimed(paper)
    ]
    without = {
        one.claim.text
        for one in by_print(paper)
        if not any(pattern.fullmatch(one.claim.text) for pattern in named)
    }
    assert without <= {"bold are the speed-ups above half of D"}


@pytest.mark.parametrize("paper", ["partime", "aavg", "sbp"])
def test_every_claim_on_runs_is_judged_at_its_key(paper):
    """Those of the others are judged whatever their keys are, or counted by their own tests."""
    code = (SOURCES / paper / "claims.py").read_text()
    keys = [row["key"] for row in read_tsv(SOURCES / paper / "measured.tsv")]
    assert len(set(keys)) == len(keys) > 10
    assert [key for key in keys if f'"{key}"' not in code] == []


# Tables as the papers print them: the words before and after them
TABLES = {
    "mtn": [("Table 1: Comparison", "Table 2: Comparison"), ("Table 2: Comparison", "Fig. 11")],
    "partime": [("#STAGES R / F", "speedup. We"), ("Classifier\t", "where the maximum speed-up")],
    "aavg": [("RGB\tFlow\t2stream", "TABLE I: Comparison")],
    "sbp": [("Model\tTraining\tK400", "Table 1. Results"), ("Table 5. Results", "Figure 6.")],
}


SECTIONS = {"5.1", "5.2", "5.3"}
"""Numbers of headings that stand between the cells of paper 001."""


@pytest.mark.parametrize("paper", TABLES)
def test_no_printed_number_of_a_table_is_without_a_place(paper):
    text = text_of(paper)
    files = [*(SOURCES / paper).glob("*.py"), SOURCES / paper / "published.tsv"]
    code = "\n".join(path.read_text() for path in files)
    known = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", code)}
    checked = 0
    for first, last in TABLES[paper]:
        begin = text.find(first)
        own = text[begin : text.find(last, begin)] if begin >= 0 else ""
        numbers = re.findall(r"(?<![\w.\[])\d+\.\d+(?![\w.%])", own)
        for number in set(numbers) - SECTIONS:
            values = {float(number), round(100 * float(number), 4)}  # fractions are kept in percent
            assert values & known, f"{number} of {first}"
            checked += 1
    assert checked > 10


LABELS = set("table method name source network work side outputs of way keep_ratio data".split())


@pytest.mark.parametrize("paper", TABLES)
def test_every_published_number_is_in_the_paper(paper):
    """Fractions are kept in percent; a star marks bold."""
    printed = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", text_of(paper))}
    for row in read_tsv(SOURCES / paper / "published.tsv"):
        for name in row.keys() - LABELS:
            is_fraction = paper == "mtn" and name.startswith("AR@")
            for number in map(float, row[name].replace("*", "").split()):
                values = {round(number / 100, 5), *([] if is_fraction else [number])}
                assert values & printed, (row, number)


def test_the_page_is_that_of_the_code(tmp_path):
    assert main(["papers", "inventory", "--out", str(tmp_path / "claims.md")]) == 0
    text = (tmp_path / "claims.md").read_text()
    assert text == page() == (ROOT / "docs/claims.md").read_text()
    for number in NUMBERS.values():
        assert f"| {number} |" in text
