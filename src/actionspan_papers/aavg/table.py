"""Write table I of paper 003 for our runs: AAVG1 to 4 by stream, and the published numbers."""

import argparse

from actionspan_papers.aavg import readers
from actionspan_papers.aavg.accuracies import (
    KINDS,
    accuracies,
    estimate,
    interval_words,
    scores_words,
)
from actionspan_papers.aavg.comparisons import STREAM_NAMES, run_of
from actionspan_papers.aavg.published import DATA_SETS, PUBLISHED
from actionspan_papers.aavg.settings import ExperimentSettings
from actionspan_papers.estimates import Estimate
from actionspan_papers.experiments import Cell, Experiment, Row, Table

_Read = tuple[readers.Scores, str]
"""The scores, and how their runs were trained."""


def _read(arguments: argparse.Namespace, _: ExperimentSettings) -> _Read:
    return readers.read_run_scores(arguments.scores), readers.training_of(arguments.scores)


def _table(_: object, read: _Read, settings: ExperimentSettings) -> Table:
    scores, trained = read
    caption = [
        "Table I of paper 003: accuracy on the validation clips in percent; AAVG1: parameters are "
        "averaged; AAVG2: and the batch is adaptive; AAVG3: and the optimiser's state and the "
        "statistics of batch norms are averaged; AAVG4: and flow starts from the RGB network. "
        "Two-stream: the mean of both streams' probabilities. RGB of AAVG4 is that of AAVG3.",
        f"Ours: {trained}; {scores_words(scores)}.",
        interval_words(settings),
        "The published numbers are of ResNet-152, 16 learners and the data sets named: the order "
        "of the methods can be compared, the numbers cannot.",
    ]
    titles = {"method": "method", "seeds": "seeds"}
    titles |= {kind: f"{STREAM_NAMES[kind]}, ours" for kind in KINDS}
    for data in DATA_SETS:
        titles |= {f"{kind}_published_{data}": f"{STREAM_NAMES[kind]}, {data}" for kind in KINDS}
    align = "l" + "r" * (len(titles) - 1)
    return Table(caption=caption, titles=titles, align=align)


def _rows(read: _Read, settings: ExperimentSettings) -> list[Row]:
    """Return a row for each of AAVG1 to 4, which average once an epoch; other runs are left out."""
    every = {key: own for key, own in accuracies(read[0]).items() if own.correct.size}
    rows: list[Row] = []
    for method, published in PUBLISHED.items():
        ours = {kind: every.get((run_of(method, 1).way, kind)) for kind in KINDS}
        seeds = max((len(own.seeds) for own in ours.values() if own), default="")
        row: dict[str, Cell] = {"method": method, "seeds": seeds}
        for kind, own in ours.items():
            cell = estimate(own.correct, settings) if own else Estimate()
            row[kind] = cell.percentage()
            for data in DATA_SETS:
                row[f"{kind}_published_{data}"] = published.get((data, kind), "")
        rows.append(row)
    return rows


EXPERIMENT = Experiment(
    inputs=readers.SCORES,
    read=_read,
    rows=_rows,
    table=_table,
    settings=(ExperimentSettings,),
    planned=readers.PLANNED,
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
