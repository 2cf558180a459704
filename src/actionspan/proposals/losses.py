"""Draw the losses of the evaluator's training over epochs."""

import argparse
from pathlib import Path

from actionspan.errors import InputError
from actionspan.storage.writing import read_tsv


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the step's flags."""
    parser.add_argument("--log", type=Path, required=True, help="pem.tsv of `proposals train`")
    parser.add_argument("--out", type=Path, required=True, help=".svg or .png")


def run(arguments: argparse.Namespace) -> None:
    """Draw the figure; the log of a training without candidates is empty, and so is its figure."""
    from matplotlib.figure import Figure

    from actionspan.storage.figures import house_style, save_figure

    rows = read_tsv(arguments.log)
    with house_style():
        figure = Figure(figsize=(4.8, 3.2), layout="constrained")
        axes = figure.subplots()
        try:
            epochs = [int(row["epoch"]) for row in rows]
            for name in ("training", "validation"):
                axes.plot(epochs, [float(row[f"{name}_loss"]) for row in rows], label=name)
        except (KeyError, ValueError):
            raise InputError(f"{arguments.log}: not the log of an evaluator's training") from None
        axes.set(xlabel="epoch", ylabel="smooth-L1 loss", title="Evaluator of candidates")
        axes.legend(frameon=False)
        save_figure(figure, arguments.out)
