"""A step of a paper, called as the command line calls it."""

import argparse
import importlib


def run_step(paper, step, *words):
    """Run `actionspan papers PAPER STEP WORDS…` in this process."""
    module = importlib.import_module(f"actionspan_papers.{paper}.{step.replace('-', '_')}")
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    module.run(parser.parse_args(list(map(str, words))))


def outputs(folder, name, *, figure=False):
    """Return the flags of all files that a step writes."""
    files = ["--out-tsv", folder / f"{name}.tsv", "--out-markdown", folder / f"{name}.md"]
    figures = ["--out-figures", folder / f"{name}.svg", folder / f"{name}.png"]
    return files + (figures if figure else [])


def cells(path):
    """Return the cells of the table of a page, its titles first."""
    lines = [line for line in path.read_text().splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
