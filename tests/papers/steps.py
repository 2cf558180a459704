"""Steps of the papers, called as the command line calls them, and the verdicts they give."""

import argparse
import importlib

from actionspan.cli import main
from actionspan.storage.writing import read_tsv
from actionspan_papers.claims import VERDICTS

REPRODUCED, NOT, UNKNOWN = VERDICTS


def run_step(paper, step, *words):
    """Run `actionspan papers PAPER STEP WORDS…` in this process."""
    module = importlib.import_module(f"actionspan_papers.{paper}.{step.replace('-', '_')}")
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    module.run(parser.parse_args(list(map(str, words))))


def run_command(paper, step, *words):
    """Run the step by the command line itself."""
    assert main(["papers", paper, step, *map(str, words)]) == 0


def outputs(folder, name, *, figure=False):
    """Return the flags of all files that a step writes."""
    files = ["--out-tsv", folder / f"{name}.tsv", "--out-markdown", folder / f"{name}.md"]
    figures = ["--out-figures", folder / f"{name}.svg", folder / f"{name}.png"]
    return files + (figures if figure else [])


def step_rows(folder, paper, step, *words, figure=False, run=run_step):
    """Run a step, whose files are named after it; return its rows."""
    run(paper, step, *words, *outputs(folder, step, figure=figure))
    return read_tsv(folder / f"{step}.tsv")


def cells(path):
    """Return the cells of the table of a page, its titles first."""
    lines = [line for line in path.read_text().splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def row_of(columns, *values):
    """Return a row as it is read from TSV; the columns in one text."""
    return dict(zip(columns.split(), map(str, values), strict=True))


def verdicts(findings, text=""):
    """Return the verdicts of the claims that hold a text."""
    found = {finding.verdict for finding in findings if text in finding.claim.text}
    assert found, text
    return found
