"""From one video's probabilities to its proposals and events, by the density of instances."""

from dataclasses import dataclass

import numpy as np

from actionspan.arrays import Float32, Float64
from actionspan.proposals.events import shown_events
from actionspan.proposals.intensity import DensityModel
from actionspan.proposals.selection import select
from actionspan.proposals.settings import EventSettings, SelectionSettings


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """A video's proposals (K, 2) with scores, and the reader's events (E, 2) with chances."""

    segments: Float64
    scores: Float64
    events: Float64
    chances: Float64


def choose(
    probabilities: Float32,
    duration_seconds: float,
    model: DensityModel,
    selection: SelectionSettings | None = None,
    events: EventSettings | None = None,
) -> Chosen:
    """Return one video's proposals and events in seconds, best first.

    Args:
        probabilities: (T, 3) start, actionness and end, in 0…1.
        duration_seconds: The video's length.
        model: A trained density.
        selection: How proposals are chosen; a score is the expected recall that one adds.
        events: Which events are shown; their score is the chance to be right at tIoU 0.5.
    """
    values = np.asarray(probabilities, np.float32)  # as the workflow writes them
    cells, density = model.density(values, duration_seconds)
    chosen, gains = select(cells, density, selection)
    shown, chances = shown_events(cells, density, model.calibration, events or EventSettings())
    return Chosen(segments=cells[chosen], scores=gains, events=shown, chances=chances)
