"""Events of stages that learn, as their threads recorded them."""

import torch

from actionspan.running.determinism import deterministic
from actionspan.streaming.balance import balance_stages
from actionspan.streaming.pipeline import Pipeline
from actionspan_papers.partime.cases import Case, inside, squared
from actionspan_papers.partime.names import PLAIN
from actionspan_papers.partime.settings import SpeedSettings
from actionspan_papers.partime.timeline_report import EMULATED, MEASURED
from actionspan_papers.partime.timing import Wait, sgd
from actionspan_papers.rows import number

_SAMPLES = 14
_WAIT = 0.03  # seconds of a stage that waits


def timeline_rows(settings: SpeedSettings) -> list[dict[str, str]]:
    """Return a row an event."""
    with deterministic(threads=1):
        return _measured(settings) + _emulated(4)


def _measured(settings: SpeedSettings) -> list[dict[str, str]]:
    case = Case(PLAIN, settings.sides[-1], settings.outputs[0])
    network, sample = case.network(settings), case.sample()
    stages = balance_stages(network, sample, 2, learning=True, divide=inside, repetitions=3)
    target = case.target(network)
    with Pipeline(stages, "thread", loss=squared, optimiser=sgd, record=True) as pipeline:
        list(pipeline.run((sample, target) for _ in range(_SAMPLES)))
        return _events(MEASURED, pipeline)


def _emulated(stages: int) -> list[dict[str, str]]:
    parts = [Wait(_WAIT, learning=True) for _ in range(stages)]
    value = torch.zeros(1, 4)
    with Pipeline(parts, "thread", loss=squared, optimiser=sgd, record=True) as pipeline:
        list(pipeline.run((value, value) for _ in range(_SAMPLES)))
        return _events(EMULATED, pipeline)


def _events(kind: str, pipeline: Pipeline) -> list[dict[str, str]]:
    reports = pipeline.report()
    first = min(event.begin for report in reports for event in report["events"])
    return [
        {
            "kind": kind,
            "stages": str(len(reports)),
            "stage": str(stage + 1),
            "step": str(event.step),
            "sample": str(event.sample),
            "work": event.work,
            "begin_ms": number(1000 * (event.begin - first), ".3f"),
            "end_ms": number(1000 * (event.end - first), ".3f"),
        }
        for stage, report in enumerate(reports)
        for event in report["events"]
    ]
