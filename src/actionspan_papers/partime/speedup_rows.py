"""Speed-ups of networks, measured, emulated and bound."""

from actionspan.running.determinism import deterministic
from actionspan.streaming.balance import balance_stages
from actionspan_papers.partime.cases import Case, cases, inside, works
from actionspan_papers.partime.names import KINDS
from actionspan_papers.partime.published import printed_range
from actionspan_papers.partime.settings import SpeedSettings
from actionspan_papers.partime.timing import emulate, measure, samples_for
from actionspan_papers.rows import number

EXECUTORS = ("thread", "process")
_MEASURED_STAGES = 2  # the stages that have a core each where there are two


def speedup_rows(settings: SpeedSettings, cores: int) -> list[dict[str, str]]:
    """Return a row a network, work, number of stages and pair."""
    rows: list[dict[str, str]] = []
    with deterministic(threads=1):
        for case in cases(settings):
            for work, learning in works():
                rows += _rows(case, work, settings, cores, learning=learning)
    return rows


def _rows(
    case: Case, work: str, settings: SpeedSettings, cores: int, *, learning: bool
) -> list[dict[str, str]]:
    network = case.network(settings)
    sample, target = case.sample(), case.target(network)
    found = []
    costs = None
    for depth in settings.depths:
        stages = balance_stages(
            network, sample, depth, learning=learning, divide=inside, costs=costs, repetitions=5
        )
        costs = stages.costs
        total = sum(costs.seconds)
        count = samples_for(settings.measured_seconds, total)
        emulated = emulate(stages.seconds, total, learning=learning, samples=count)
        common = {
            **case.named,
            "work": work,
            "stages": str(depth),
            "bound": number(stages.bound, ".4f"),
            "emulated": number(emulated, ".4f"),
            "slowest_stage_ms": number(1000 * max(stages.seconds), ".4f"),
            "loop_cpu_ms": number(1000 * total, ".4f"),
            "published_graph": _printed(case, work, depth, graph=True),
            "published_eager": _printed(case, work, depth, graph=False),
        }
        unmeasured = {"executor": "", "pair": "", "measured": "", "load": ""}
        if depth != _MEASURED_STAGES or cores < depth:
            found.append({**common, **unmeasured})
            continue
        for executor in EXECUTORS:
            measured = measure(
                network,
                stages,
                sample,
                target,
                learning=learning,
                executor=executor,
                pairs=settings.pairs,
                samples=count,
            )
            found += [
                {
                    **common,
                    "executor": executor,
                    "pair": str(pair + 1),
                    "measured": number(speedup, ".4f"),
                    "load": number(measured.load, ".2f"),
                }
                for pair, speedup in enumerate(measured.speedups)
            ]
    return found


def _printed(case: Case, work: str, stages: int, *, graph: bool) -> str:
    """Return the speed-ups that the paper prints of its like; table II does not say of which work.

    Its text compares it with inference.
    """
    name = "learning" if work == "learning" else "inference"
    return printed_range(KINDS[case.name], name, stages, graph=graph)  # type: ignore[arg-type]
