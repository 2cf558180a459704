"""Table I of paper 003 for our runs: AAVG1 to 4 by stream, beside the published numbers."""

from collections.abc import Mapping

from actionspan.papers.aavg.comparisons import STREAM_NAMES, run_of
from actionspan.papers.aavg.final_accuracy import KINDS, Accuracy, Estimate, accuracies, estimate
from actionspan.papers.aavg.published import DATA_SETS, PUBLISHED
from actionspan.papers.aavg.run_files import Of, RunScores
from actionspan.papers.aavg.settings import ExperimentSettings

Row = tuple[str, int, dict[str, Estimate]]
"""A variant, how many seeds it has, and what is known of its streams."""


def table_rows(scores: Mapping[Of, RunScores], settings: ExperimentSettings) -> list[Row]:
    """Return a row for each of AAVG1 to 4, which average once an epoch.

    Args:
        scores: Of any runs; others are left out.
        settings: How the intervals are made.

    Raises:
        InputError: Two runs are of one way.
    """
    known = accuracies(scores)
    rows: list[Row] = []
    for method in PUBLISHED:
        way = run_of(method, 1).way
        found: dict[str, Accuracy] = {
            kind: known[way, kind]
            for kind in KINDS
            if (way, kind) in known and known[way, kind].correct.size
        }
        seeds = max((len(one.seeds) for one in found.values()), default=0)
        rows.append((method, seeds, {kind: within(one, settings) for kind, one in found.items()}))
    return rows


def within(accuracy: Accuracy, settings: ExperimentSettings) -> Estimate:
    """Return the estimate of an accuracy; its interval leaves 0…100 nowhere."""
    found = estimate(accuracy.correct, settings)
    return Estimate(value=found.value, low=max(found.low, 0), high=min(found.high, 100))


def table_cells(rows: list[Row]) -> tuple[list[str], list[list[str]]]:
    """Return the columns and the rows of the TSV; what is not known is empty."""
    columns = ["method", "seeds"]
    for kind in KINDS:
        columns += [kind, f"{kind}_low", f"{kind}_high"]
        columns += [f"{kind}_published_{data}" for data in DATA_SETS]
    cells = []
    for method, seeds, estimates in rows:
        line = [method, str(seeds or "")]
        for kind in KINDS:
            line += _numbers(estimates.get(kind))
            line += [PUBLISHED[method].get((data, kind), "") for data in DATA_SETS]
        cells.append(line)
    return columns, cells


def _numbers(found: Estimate | None) -> list[str]:
    if found is None:
        return ["", "", ""]
    return [f"{number:.2f}" for number in (found.value, found.low, found.high)]


def table_markdown(
    rows: list[Row], scores: Mapping[Of, RunScores], measured: str, settings: ExperimentSettings
) -> str:
    """Return the table in Markdown under what a reader must know first.

    Args:
        rows: What `table_rows` returned.
        scores: What it was given.
        measured: How and on what these runs were trained, in words.
        settings: How the intervals were made.
    """
    names = [STREAM_NAMES[kind] for kind in KINDS]
    titles = ["method", "seeds", *(f"{name}, ours" for name in names)]
    titles += [f"{name}, {data}" for data in DATA_SETS for name in names]
    lines = [
        "Table I of paper 003: accuracy on the validation clips in percent; AAVG1: parameters are "
        "averaged; AAVG2: and the batch is adaptive; AAVG3: and the optimiser's state and the "
        "statistics of batch norms are averaged; AAVG4: and flow starts from the RGB network. "
        "Two-stream: the mean of both streams' probabilities. RGB of AAVG4 is that of AAVG3.",
        f"Ours: {measured}; {scores_words(scores)}.",
        interval_words(settings),
        "The published numbers are of ResNet-152, 16 learners and the data sets named: the order "
        "of the methods can be compared, the numbers cannot.",
        "",
        "| " + " | ".join(titles) + " |",
        "|---|---:" + "|---:" * (len(titles) - 2) + "|",
    ]
    for method, seeds, estimates in rows:
        cells = [method, str(seeds or "")]
        for kind in KINDS:
            value, low, high = _numbers(estimates.get(kind))
            cells.append(f"{value} [{low}, {high}]" if value else "")
        cells += [PUBLISHED[method].get((data, kind), "") for data in DATA_SETS for kind in KINDS]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def scores_words(scores: Mapping[Of, RunScores]) -> str:
    """Return on what accuracies were measured, in words."""
    first = next(iter(scores.values()))
    return (
        f"{len(first.clips):,} validation clips of {len(first.classes)} classes, "
        f"{first.samples} positions of each; the epoch of a network (recognition.training.keep) is "
        "chosen on the same clips"
    )


def interval_words(settings: ExperimentSettings) -> str:
    """Return what the brackets of accuracies are, in words."""
    return (
        f"Mean over seeds and, in brackets, the {100 * settings.confidence:.4g} % interval over "
        f"clips (bootstrap, {settings.resamples:,} resamples, each clip for itself whatever its "
        "video) and seeds (Student's t); of one seed over clips alone, which says nothing about "
        "another training."
    )
