"""Write table I of paper 003 for our runs: AAVG1 to 4 by stream, and the published numbers."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from actionspan.arrays import Float64
from actionspan.workflow.runs import Learning
from actionspan_papers.aavg import readers
from actionspan_papers.aavg.comparisons import STREAM_NAMES, STREAMS, ExperimentSettings, run_of
from actionspan_papers.aavg.published import DATA_SETS, PUBLISHED
from actionspan_papers.estimates import Estimate, Resampled, draw_videos, resampled_scores
from actionspan_papers.experiments import Cell, Experiment, Row, Table, titled
from actionspan_papers.kinds import Flags

TWO_STREAM = "two-stream"
KINDS = (*STREAMS, TWO_STREAM)
_DRAWING = 1
"""The seed of the bootstrap."""


class Accuracy(NamedTuple):
    """How accurate a way of training is."""

    seeds: Sequence[int]
    """The numbers of the S seeds."""
    values: Float64
    """(S, V) 100 where a validation clip is classified right, else 0; or (S, E) by epoch."""


def accuracies(scores: readers.Scores) -> dict[readers.RunKey, Accuracy]:
    """Return the accuracy of each way of joining learners, by stream and of both (`two-stream`).

    AAVG4 takes RGB from AAVG3.

    Raises:
        InputError: Two runs are of one way.
    """
    runs = readers.by_way(scores)
    for name, _ in scores:
        learning = Learning.of_name(name)
        shared = learning.trained_as("rgb").way, "rgb"
        if shared in runs:
            runs.setdefault((learning.way, "rgb"), runs[shared])
    by_key = {key: _accuracy([run_scores]) for key, run_scores in runs.items()}
    for way in dict.fromkeys(way for way, _ in runs):
        streams = [runs[way, stream] for stream in STREAMS if (way, stream) in runs]
        if len(streams) == 2 and set(streams[0].seeds) & set(streams[1].seeds):
            by_key[way, TWO_STREAM] = _accuracy(streams)
    return by_key


def _accuracy(streams: Sequence[readers.RunScores]) -> Accuracy:
    from actionspan.recognition.scores import fused

    places = readers.shared_seeds([scores.seeds for scores in streams])
    parts = [scores.probabilities[seeds] for scores, seeds in zip(streams, places, strict=True)]
    labels = np.array(streams[0].clips["labels"], np.int64)
    right = fused(parts).argmax(axis=2) == labels  # (S, V)
    return Accuracy([streams[0].seeds[place] for place in places[0]], np.where(right, 100.0, 0.0))


def estimate(values: Float64, settings: ExperimentSettings) -> Estimate:
    """Return the mean of (S, V) values, with the interval over clips and seeds.

    One seed has an interval over clips alone.
    """
    clips = values.shape[1]
    draws = draw_videos(clips, settings.resamples, _DRAWING)
    drawn = resampled_scores(values[:, :, None], np.ones(clips, np.int64), draws)[:, 0]
    found = Resampled(seeds=values.mean(axis=1), drawn=drawn, samples=clips, unit="clips")
    return found.estimate(settings.confidence)


def scores_words(scores: readers.Scores) -> str:
    """Return on what accuracies were measured."""
    first = next(iter(scores.values())).clips
    return (
        f"{len(first['clips']):,} validation clips of {len(first['classes'])} classes, "
        f"{first['samples']} positions of each; the epoch of a network "
        "(recognition.training.keep) is chosen on the same clips"
    )


def interval_words(settings: ExperimentSettings) -> str:
    """Return the meaning of the brackets of accuracies."""
    return (
        f"Mean over seeds and, in brackets, the {100 * settings.confidence:.4g} % interval over "
        f"clips (bootstrap, {settings.resamples:,} resamples, each clip for itself whatever its "
        "video) and seeds (Student's t); of one seed over clips alone, which shows nothing about "
        "another training."
    )


def _read(arguments: Flags, _: ExperimentSettings) -> tuple[readers.Scores, str]:
    return readers.read_run_scores(arguments.scores), readers.training_of(arguments.scores)


def _rows(read: tuple[readers.Scores, str], settings: ExperimentSettings) -> list[Row]:
    """Return a row for each of AAVG1 to 4, which average once an epoch; other runs are left out."""
    every = {key: own for key, own in accuracies(read[0]).items() if own.values.size}
    rows: list[Row] = []
    for method, published in PUBLISHED.items():
        ours = {kind: every.get((run_of(method, 1).way, kind)) for kind in KINDS}
        seeds = max((len(own.seeds) for own in ours.values() if own), default=math.nan)
        row: dict[str, Cell] = {"method": method, "seeds": seeds}
        for kind, own in ours.items():
            row[kind] = (estimate(own.values, settings) if own else Estimate()).percentage()
            for data in DATA_SETS:
                row[f"{kind}_published_{data}"] = published.get((data, kind), "")
        rows.append(row)
    return rows


def _table(_: object, read: tuple[readers.Scores, str], settings: ExperimentSettings) -> Table:
    caption = [
        "Table I of paper 003: accuracy on the validation clips in percent; AAVG1: parameters are "
        "averaged; AAVG2: and the batch is adaptive; AAVG3: and the optimiser's state and the "
        "statistics of batch norms are averaged; AAVG4: and flow starts from the RGB network. "
        "Two-stream: the mean of both streams' probabilities. AAVG4 takes RGB from AAVG3.",
        f"Ours: {read[1]}; {scores_words(read[0])}.",
        interval_words(settings),
        "The published numbers are of ResNet-152, 16 learners and the data sets named: the order "
        "of the methods can be compared, the numbers cannot.",
    ]
    titles = titled("method; seeds") | {kind: f"{STREAM_NAMES[kind]}, ours" for kind in KINDS}
    for data in DATA_SETS:
        titles |= {f"{kind}_published_{data}": f"{STREAM_NAMES[kind]}, {data}" for kind in KINDS}
    return Table(caption=caption, titles=titles, align="l" + "r" * (len(titles) - 1))


EXPERIMENT = Experiment(
    inputs=readers.SCORES, read=_read, rows=_rows, table=_table, **readers.SETTINGS
)
add_arguments, run = EXPERIMENT.add_arguments, EXPERIMENT.run
