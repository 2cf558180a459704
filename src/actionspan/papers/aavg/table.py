"""Write table I of paper 003 for our runs: AAVG1 to 4 by stream, and the published numbers."""

import argparse
from collections.abc import Mapping

from actionspan.papers.aavg.accuracies import (
    KINDS,
    accuracies,
    estimate,
    interval_words,
    scores_words,
)
from actionspan.papers.aavg.comparisons import STREAM_NAMES, run_of
from actionspan.papers.aavg.published import DATA_SETS, PUBLISHED
from actionspan.papers.aavg.readers import (
    RunKey,
    RunScores,
    add_runs,
    read_run_scores,
    settings_of,
    training_of,
)
from actionspan.papers.aavg.settings import ExperimentSettings
from actionspan.papers.estimates import Estimate
from actionspan.papers.tables import Row, write_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    add_runs(parser, logs=False)


def run(arguments: argparse.Namespace) -> None:
    """Write the table."""
    settings = settings_of(arguments)
    scores = read_run_scores(arguments.scores)
    caption = [
        "Table I of paper 003: accuracy on the validation clips in percent; AAVG1: parameters are "
        "averaged; AAVG2: and the batch is adaptive; AAVG3: and the optimiser's state and the "
        "statistics of batch norms are averaged; AAVG4: and flow starts from the RGB network. "
        "Two-stream: the mean of both streams' probabilities. RGB of AAVG4 is that of AAVG3.",
        f"Ours: {training_of(arguments.scores)}; {scores_words(scores)}.",
        interval_words(settings),
        "The published numbers are of ResNet-152, 16 learners and the data sets named: the order "
        "of the methods can be compared, the numbers cannot.",
    ]
    titles = {"method": "method", "seeds": "seeds"}
    titles |= {kind: f"{STREAM_NAMES[kind]}, ours" for kind in KINDS}
    titles |= {
        f"{kind}_published_{data}": f"{STREAM_NAMES[kind]}, {data}"
        for data in DATA_SETS
        for kind in KINDS
    }
    write_table(
        arguments, table_rows(scores, settings), caption, "l" + "r" * (len(titles) - 1), titles
    )


def table_rows(scores: Mapping[RunKey, RunScores], settings: ExperimentSettings) -> list[Row]:
    """Return a row for each of AAVG1 to 4, which average once an epoch.

    Args:
        scores: Of any runs; others are left out.
        settings: How the intervals are made.

    Raises:
        InputError: Two runs are of one way.
    """
    every = accuracies(scores)
    rows: list[Row] = []
    for method, published in PUBLISHED.items():
        way = run_of(method, 1).way
        ours = {kind: every[way, kind] for kind in KINDS if (way, kind) in every}
        ours = {kind: accuracy for kind, accuracy in ours.items() if accuracy.correct.size}
        seeds = max((len(accuracy.seeds) for accuracy in ours.values()), default="")
        row: dict[str, str | Estimate] = {"method": method, "seeds": str(seeds)}
        for kind in KINDS:
            cell = estimate(ours[kind].correct, settings) if kind in ours else Estimate()
            row[kind] = cell.percentage()
            row |= {
                f"{kind}_published_{data}": published.get((data, kind), "") for data in DATA_SETS
            }
        rows.append(row)
    return rows
