"""`actionspan recognition curves`, `rates`, `table`, `traffic`, `claims`: paper 003's results."""

import argparse
from pathlib import Path
from typing import Any

from actionspan.files.storage import atomic_path, write_tsv
from actionspan.papers.aavg.comparisons import curve_figures
from actionspan.papers.aavg.settings import ExperimentSettings
from actionspan.settings import add_settings, from_arguments

LOGS = "runs/{run}/{stream}/log.tsv"
SCORES = "runs/{run}/{stream}/scores.json"
PLANNED = ("seeds", "intervals", "learning_rates", "rate_seeds")  # which runs there are: the rules'


def add_experiments(steps: Any) -> None:
    """Add these commands to those of the stage."""
    step = _step(steps, "curves", "validation accuracy over epochs, as in paper 003's figures")
    step.add_argument("--figure", required=True, choices=curve_figures(), help="which")
    _add_files(step, "--logs", LOGS)
    _add_outputs(step)
    step.set_defaults(run=_curves)

    step = _step(steps, "plot-curves", "draw validation accuracy over epochs")
    step.add_argument("--figure", required=True, choices=curve_figures(), help="which")
    _add_plot(step)
    step.set_defaults(run=_plot_curves)

    step = _step(steps, "rates", "the best validation accuracy over learning rates")
    _add_files(step, "--logs", LOGS)
    _add_outputs(step)
    step.set_defaults(run=_rates)

    step = _step(steps, "plot-rates", "draw the best validation accuracy over learning rates")
    _add_plot(step)
    step.set_defaults(run=_plot_rates)

    step = _step(steps, "table", "paper 003's table I, ours beside the published")
    _add_files(step, "--scores", SCORES)
    _add_outputs(step)
    step.set_defaults(run=_table)

    step = _step(steps, "traffic", "what the exchanges between learners cost")
    _add_files(step, "--logs", LOGS)
    _add_outputs(step)
    step.set_defaults(run=_traffic)

    step = _step(steps, "claims", "a verdict on each claim of paper 003")
    _add_files(step, "--logs", LOGS)
    _add_files(step, "--scores", SCORES)
    _add_outputs(step)
    step.set_defaults(run=_claims)


def _step(steps: Any, name: str, help_line: str) -> argparse.ArgumentParser:
    step: argparse.ArgumentParser = steps.add_parser(name, help=help_line, description=help_line)
    return step


def _add_files(step: argparse.ArgumentParser, flag: str, form: str) -> None:
    step.add_argument(flag, type=Path, nargs="+", required=True, help=f"{form} of any runs")


def _add_outputs(step: argparse.ArgumentParser) -> None:
    step.add_argument(
        "--measured-on", required=True, help="how and on what the runs were trained, in words"
    )
    step.add_argument("--out-tsv", type=Path, required=True, help="table to write")
    step.add_argument("--out-markdown", type=Path, required=True, help="the same to read")
    add_settings(step, ExperimentSettings, without=PLANNED)


def _add_plot(step: argparse.ArgumentParser) -> None:
    step.add_argument("--table", type=Path, required=True, help="the .tsv")
    step.add_argument("--out", type=Path, required=True, help=".svg or .png")


def _settings(arguments: argparse.Namespace) -> ExperimentSettings:
    planned = {name: getattr(ExperimentSettings(), name) for name in PLANNED}
    return from_arguments(ExperimentSettings, arguments, **planned)


def _write(arguments: argparse.Namespace, text: str) -> int:
    with atomic_path(arguments.out_markdown) as partial:
        partial.write_text(text, encoding="utf-8")
    return 0


def _curves(arguments: argparse.Namespace) -> int:
    settings = _settings(arguments)
    from actionspan.papers.aavg.accuracy_curves import curves_markdown, curves_of, write_curves
    from actionspan.papers.aavg.run_files import read_logs

    curves = curves_of(arguments.figure, read_logs(arguments.logs))
    write_curves(arguments.out_tsv, curves)
    words = arguments.figure, curves, arguments.measured_on, settings.confidence
    return _write(arguments, curves_markdown(*words))


def _plot_curves(arguments: argparse.Namespace) -> int:
    from actionspan.papers.aavg.accuracy_curves import draw_accuracy, read_curves

    draw_accuracy(arguments.out, arguments.figure, read_curves(arguments.table))
    return 0


def _rates(arguments: argparse.Namespace) -> int:
    settings = _settings(arguments)
    from actionspan.papers.aavg.learning_rates import sweep_markdown, sweep_of, write_sweep
    from actionspan.papers.aavg.run_files import read_logs

    sweep = sweep_of(read_logs(arguments.logs))
    write_sweep(arguments.out_tsv, sweep)
    return _write(arguments, sweep_markdown(sweep, arguments.measured_on, settings.confidence))


def _plot_rates(arguments: argparse.Namespace) -> int:
    from actionspan.papers.aavg.learning_rates import draw_sweep, read_sweep

    draw_sweep(arguments.out, read_sweep(arguments.table))
    return 0


def _table(arguments: argparse.Namespace) -> int:
    settings = _settings(arguments)
    from actionspan.papers.aavg.run_files import read_scores
    from actionspan.papers.aavg.table1 import table_cells, table_markdown, table_rows

    scores = read_scores(arguments.scores)
    rows = table_rows(scores, settings)
    write_tsv(arguments.out_tsv, *table_cells(rows))
    return _write(arguments, table_markdown(rows, scores, arguments.measured_on, settings))


def _traffic(arguments: argparse.Namespace) -> int:
    settings = _settings(arguments)
    from actionspan.papers.aavg.exchanged import TRAFFIC_COLUMNS, traffic_cells, traffic_markdown
    from actionspan.papers.aavg.run_files import read_logs

    logs = read_logs(arguments.logs)
    write_tsv(arguments.out_tsv, TRAFFIC_COLUMNS, traffic_cells(logs, settings.confidence))
    return _write(arguments, traffic_markdown(logs, arguments.measured_on, settings.confidence))


def _claims(arguments: argparse.Namespace) -> int:
    settings = _settings(arguments)
    from actionspan.papers.aavg.comparisons_judged import findings_markdown, judge_claims
    from actionspan.papers.aavg.run_files import read_logs, read_scores
    from actionspan.papers.aavg.table1 import interval_words, scores_words
    from actionspan.papers.claims import CLAIM_COLUMNS, claim_cells

    logs, scores = read_logs(arguments.logs), read_scores(arguments.scores)
    findings = judge_claims(logs, scores, settings)
    write_tsv(arguments.out_tsv, CLAIM_COLUMNS, claim_cells(findings))
    measured = f"{arguments.measured_on}; {scores_words(scores)}"
    return _write(arguments, findings_markdown(findings, measured, interval_words(settings)))
