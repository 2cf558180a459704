"""Events of a running pipeline, for figures 1 and 2: measured, and emulated by timed waits."""

import torch

from actionspan.running.determinism import deterministic
from actionspan.streaming.balance import balance_stages
from actionspan.streaming.pipeline import Pipeline
from actionspan_papers.experiments import Row
from actionspan_papers.partime.networks import Case, inside, squared
from actionspan_papers.partime.published import PLAIN
from actionspan_papers.partime.settings import SpeedSettings
from actionspan_papers.partime.speed_rows import Wait, sgd
from actionspan_papers.partime.timeline import EMULATED, MEASURED

_SAMPLES = 14
_WAIT = 0.03  # seconds of a stage that waits


def timeline_rows(settings: SpeedSettings) -> list[Row]:
    """Return a row an event."""
    with deterministic(threads=1):
        return _measured(settings) + _emulated(4)


def _measured(settings: SpeedSettings) -> list[Row]:
    case = Case(PLAIN, settings.sides[-1], settings.outputs[0])
    network, sample = case.network(settings), case.sample()
    stages = balance_stages(network, sample, 2, learning=True, divide=inside, repetitions=3)
    target = case.target(network)
    with Pipeline(stages, "thread", loss=squared, optimiser=sgd, record=True) as pipeline:
        list(pipeline.run((sample, target) for _ in range(_SAMPLES)))
        return _events(MEASURED, pipeline)


def _emulated(stages: int) -> list[Row]:
    parts = [Wait(_WAIT, learning=True) for _ in range(stages)]
    value = torch.zeros(1, 4)
    with Pipeline(parts, "thread", loss=squared, optimiser=sgd, record=True) as pipeline:
        list(pipeline.run((value, value) for _ in range(_SAMPLES)))
        return _events(EMULATED, pipeline)


def _events(kind: str, pipeline: Pipeline) -> list[Row]:
    reports = pipeline.report()
    first = min(event.begin for report in reports for event in report["events"])
    return [
        {
            "kind": kind,
            "stages": len(reports),
            "stage": stage + 1,
            "step": event.step,
            "sample": event.sample,
            "work": event.work,
            "begin_ms": 1000 * (event.begin - first),
            "end_ms": 1000 * (event.end - first),
        }
        for stage, report in enumerate(reports)
        for event in report["events"]
    ]
