"""`actionspan scaling`: the table of run times, the time models fitted to it, and the figures."""

import argparse
from pathlib import Path

from actionspan.files.storage import write_json, write_tsv


def add_parsers(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands of `actionspan scaling`."""
    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")

    step = steps.add_parser("times", help="one table of the times of many training runs")
    step.add_argument(
        "--timings", type=Path, nargs="+", required=True, help="timing.json of each run"
    )
    step.add_argument(
        "--out",
        type=Path,
        required=True,
        help="times.tsv: exchange, ranks, repeat, seconds, t1, t2, t3 (in seconds)",
    )
    step.set_defaults(run=run_times)

    step = steps.add_parser("fit", help="time models: what fit-timing prints, as a file")
    step.add_argument("--times", type=Path, required=True, help="times.tsv")
    step.add_argument("--out", type=Path, required=True, help="timing_model.json")
    step.set_defaults(run=run_fit)

    step = steps.add_parser("plot-speedup", help="draw the speed ratio over ranks")
    step.add_argument("--times", type=Path, required=True, help="times.tsv")
    step.add_argument("--out", type=Path, required=True, help=".svg or .png")
    step.set_defaults(run=run_plot_speedup)

    step = steps.add_parser("plot-fit", help="draw the run times and the models fitted to them")
    step.add_argument("--times", type=Path, required=True, help="times.tsv")
    step.add_argument("--model", type=Path, required=True, help="timing_model.json")
    step.add_argument("--out", type=Path, required=True, help=".svg or .png")
    step.set_defaults(run=run_plot_fit)


def run_times(arguments: argparse.Namespace) -> int:
    """Write the table of run times."""
    from actionspan.scaling.table import TIMES_COLUMNS
    from actionspan.scaling.times import times_rows

    write_tsv(arguments.out, TIMES_COLUMNS, times_rows(arguments.timings))
    return 0


def run_fit(arguments: argparse.Namespace) -> int:
    """Write the fitted time models."""
    from actionspan.scaling.fit_timing import fit_file

    write_json(arguments.out, fit_file(arguments.times))
    return 0


def run_plot_speedup(arguments: argparse.Namespace) -> int:
    """Draw the speed ratio of each exchange."""
    from actionspan.scaling.speed_ratios import draw_speedup, speed_panels
    from actionspan.scaling.table import read_times

    draw_speedup(arguments.out, speed_panels(arguments.times, read_times(arguments.times)))
    return 0


def run_plot_fit(arguments: argparse.Namespace) -> int:
    """Draw the run times of each exchange and the models fitted to them."""
    from actionspan.scaling.fit_figure import draw_fit, read_model
    from actionspan.scaling.table import read_times

    runs = read_times(arguments.times)
    draw_fit(arguments.out, runs, read_model(arguments.model, runs))
    return 0
