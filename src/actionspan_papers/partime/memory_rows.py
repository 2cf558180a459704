"""The bytes of the stages of networks, by mode."""

from dataclasses import asdict, fields

from actionspan.running.determinism import deterministic
from actionspan.streaming.balance import StageBytes, layers_of
from actionspan_papers.partime.cases import Case, inside, squared, stages_by_counting
from actionspan_papers.partime.footprints import footprints, kept_bytes
from actionspan_papers.partime.names import PLAIN
from actionspan_papers.partime.settings import SpeedSettings
from actionspan_papers.partime.timing import sgd
from actionspan_papers.partime.variants import MODES

PARTS = [field.name for field in fields(StageBytes)]
"""What a stage needs bytes for."""


def memory_rows(settings: SpeedSettings) -> list[dict[str, str]]:
    """Return a row a network, number of stages, mode and stage."""
    chosen = [
        Case(PLAIN, settings.sides[0], settings.outputs[-1]),
        Case("resnet18", settings.encoder_side, settings.outputs[-1]),
    ]
    rows: list[dict[str, str]] = []
    with deterministic(threads=1):
        for case in chosen:
            rows += _rows(case, settings)
    return rows


def _rows(case: Case, settings: SpeedSettings) -> list[dict[str, str]]:
    found = []
    for depth in settings.depths:
        for mode in MODES:
            network, sample = case.network(settings), case.sample()
            target = case.target(network)
            stages, _ = stages_by_counting(layers_of(network, inside), sample, depth)
            sizes = footprints(stages, sample, target, squared, mode)
            counted = kept_bytes(stages, sample, target, squared, sgd, mode)
            found += [
                {
                    **case.named,
                    "stages": str(depth),
                    "mode": mode,
                    "stage": str(stage + 1),
                    **{name: str(value) for name, value in asdict(size).items()},
                    "total": str(size.total),
                    "counted": str(kept),
                }
                for stage, (size, kept) in enumerate(zip(sizes, counted, strict=True))
            ]
    return found
