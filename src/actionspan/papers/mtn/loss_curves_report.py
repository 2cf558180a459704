"""The validation losses of each model in Markdown: the lowest and the last, with intervals."""

from collections.abc import Mapping

import numpy as np

from actionspan.evaluation.activitynet import Floats
from actionspan.evaluation.resampling import seeds_half_width


def losses_markdown(
    losses: Mapping[str, Floats], features: str, data: str, confidence: float
) -> str:
    """Return a row a model: mean over seeds and interval of its lowest and its last loss.

    Args:
        losses: (S, E) validation losses of each model; NaN where there are none.
        features: The features, in words.
        data: The data set, in words.
        confidence: Of the intervals, in (0, 1).
    """
    lines = [
        "Validation losses (figure 10 of paper 001), lower is better; soft and hard labels have "
        "losses that cannot be compared.",
        f"{features}, on {data}, the validation videos.",
        f"Mean over seeds and, in brackets, the {100 * confidence:.4g} % interval over seeds "
        "(Student's t); one seed has none. The band of loss_curves.svg is no interval: it goes "
        "from the lowest to the highest seed.",
        "",
        "| model | seeds | epochs | lowest loss | loss at the last epoch |",
        "|---|---:|---:|---:|---:|",
    ]
    for model, curves in losses.items():
        seeds, epochs = curves.shape
        cells = ["no validation loss"] * 2
        if np.isfinite(curves).all():
            cells = [_estimate(of, confidence) for of in (curves.min(axis=1), curves[:, -1])]
        lines.append(f"| {model} | {seeds} | {epochs} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines) + "\n"


def _estimate(values: Floats, confidence: float) -> str:
    """Return the mean of (S,) losses, and its interval where there are two or more."""
    mean = float(values.mean())
    if len(values) < 2:
        return f"{mean:.4f}"
    half = seeds_half_width([values], confidence)
    return f"{mean:.4f} [{mean - half:.4f}, {mean + half:.4f}]"
