"""Networks divided into stages, by measured time and by counting."""

from actionspan.running.determinism import deterministic
from actionspan.streaming.balance import balance_stages, layers_of
from actionspan_papers.partime.cases import (
    bound_of,
    counted_cases,
    counted_cuts,
    inside,
    operations,
    works,
)
from actionspan_papers.partime.settings import SpeedSettings
from actionspan_papers.rows import number


def balance_rows(settings: SpeedSettings) -> list[dict[str, str]]:
    """Return a row a network, work and number of stages."""
    rows: list[dict[str, str]] = []
    with deterministic(threads=1):
        for case in counted_cases(settings):
            network, sample = case.network(settings), case.sample()
            layers = layers_of(network, inside)
            counted = operations(layers, sample)
            for work, learning in works():
                costs = None
                for depth in settings.depths:
                    stages = balance_stages(
                        network,
                        sample,
                        depth,
                        learning=learning,
                        divide=inside,
                        costs=costs,
                        repetitions=5,
                    )
                    costs = stages.costs
                    parts = [b - a for a, b in zip(stages.cuts, stages.cuts[1:], strict=False)]
                    rows.append(
                        {
                            **case.named,
                            "work": work,
                            "stages": str(depth),
                            "layers": str(len(layers)),
                            "cuts": " + ".join(map(str, parts)),
                            "stage_ms": " | ".join(f"{1000 * s:.2f}" for s in stages.seconds),
                            "bound": number(stages.bound, ".4f"),
                            "bound_by_operations": number(
                                bound_of(counted, counted_cuts(counted, depth)), ".4f"
                            ),
                            "even_bound": number(
                                bound_of(counted, even_cuts(len(counted), depth)), ".4f"
                            ),
                        }
                    )
    return rows


def even_cuts(layers: int, stages: int) -> list[int]:
    """Return the cuts where each stage has about as many layers, whatever they cost."""
    return [round(stage * layers / stages) for stage in range(stages + 1)]
