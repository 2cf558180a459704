"""A model cut into stages whose slowest is as fast as can be."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from torch import nn

from actionspan.streaming.costs import Costs, measure_costs, partition, stages_seconds
from actionspan.streaming.messages import Value

Divide = Callable[[nn.Module], Sequence[nn.Module] | None]


class Balanced(list[nn.Sequential]):
    """Stages that share the modules of a model, with the seconds that each takes for a sample.

    `bound` is the speed-up that they can reach: the seconds of the model over those of its slowest
    stage. Every measured speed-up is a share of it.
    """

    def __init__(self, layers: Sequence[nn.Module], costs: Costs, cuts: Sequence[int]) -> None:
        super().__init__(nn.Sequential(*layers[a:b]) for a, b in pairwise(cuts))
        self.costs, self.cuts = costs, tuple(cuts)
        self.seconds = stages_seconds(costs, cuts)
        self.bound = sum(costs.seconds) / max(self.seconds)

    def __str__(self) -> str:
        shown = " | ".join(f"{1000 * seconds:.2f}" for seconds in self.seconds)
        counts = " + ".join(str(b - a) for a, b in pairwise(self.cuts))
        return (
            f"{len(self)} stages of {counts} layers: {shown} ms; at most "
            f"{self.bound:.2f} times as fast as one"
        )


def balance_stages(
    model: nn.Module,
    sample: Value,
    stages: int,
    *,
    learning: bool = False,
    divide: Divide | None = None,
    costs: Costs | None = None,
    repetitions: int = 7,
) -> Balanced:
    """Cut a model into stages by the measured CPU time of its layers; `str` of it tells the bound.

    Args:
        model: An `nn.Sequential`, or anything that `divide` divides; its modules are shared, not
            copied, and profiling leaves them as they are.
        sample: A sample as the pipeline will get it.
        stages: How many.
        learning: Whether the pipeline will learn: backward counts too.
        divide: Returns the chain of layers that a module is, None where it is one layer. A chain
            may pass tuples, so that skip connections can be cut. By default only `nn.Sequential`
            is divided, at every depth.
        costs: Measured earlier, of the same layers.
        repetitions: Of the measurement; the least counts.

    Raises:
        ValueError: There are fewer layers than stages.
    """
    layers = layers_of(model, divide)
    if not 1 <= stages <= len(layers):
        raise ValueError(
            f"{stages} stages of {len(layers)} layers: from 1 to {len(layers)} are possible"
        )
    if costs is None:
        costs = measure_costs(layers, sample, learning=learning, repetitions=repetitions)
    return Balanced(layers, costs, partition(costs, stages))


def layers_of(model: nn.Module, divide: Divide | None = None) -> list[nn.Module]:
    """Return the chain of layers that a model is; see `balance_stages`."""
    parts: Sequence[nn.Module] | None = divide(model) if divide else None
    if parts is None and type(model) is nn.Sequential:
        parts = list(model)
    if parts is None:
        return [model]
    return [layer for part in parts for layer in layers_of(part, divide)]
