"""How fast two stages are on two cores, as a share of what their balance allows.

    python benchmarks/pipeline_speed.py [--pairs 7] [--samples 60]

For stages of several sizes it runs the sequential executor and another one in turn, several times,
and prints the median of the ratios, the bound (the seconds of all layers over those of the slower
stage, by CPU time) and the share of the bound. Then what the sequential executor costs beside a
plain loop, and a step of empty stages. Nothing else may run on the machine: the load is printed.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from actionspan.streaming import Pipeline, balance_stages

SIDES = (32, 64, 128)  # pixels; about 1 to 80 ms a stage
LAYERS, MAPS = 8, 16


def network(side: int) -> tuple[nn.Sequential, Tensor]:
    """Return a chain of convolutions and a sample for it."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for index in range(LAYERS):
        layers += [nn.Conv2d(3 if index == 0 else MAPS, MAPS, 5, padding=2), nn.ReLU()]
    return nn.Sequential(*layers), torch.randn(4, 3, side, side)


def loss(output: Tensor, target: Tensor) -> Tensor:
    """Return the mean square of the difference."""
    return (output - target).square().mean()


def seconds(work: Callable[[], object]) -> float:
    """Return how long it takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def compare(side: int, executor: str, learning: bool, pairs: int, samples: int) -> str:
    """Return a row: two stages by an executor against one after the other."""
    model, sample = network(side)
    stages = balance_stages(model, sample, 2, learning=learning)
    how = {}
    if learning:
        how = {"loss": loss, "optimiser": partial(torch.optim.SGD, lr=1e-4)}
        target = torch.zeros(4, MAPS, side, side)
        stream = [(sample, target)] * samples
    else:
        stream = [sample] * samples
    ratios = []
    with (
        Pipeline(list(stages), executor, **how) as parallel,
        Pipeline(
            list(balance_stages(network(side)[0], sample, 2, learning=learning)), **how
        ) as one,
    ):
        for pipeline in (parallel, one):
            list(pipeline.run(stream[:5]))
        for _ in range(pairs):
            fast = seconds(lambda: list(parallel.run(stream)))
            ratios.append(seconds(lambda: list(one.run(stream))) / fast)
    ratio = statistics.median(ratios)
    work = "learning" if learning else "inference"
    return (
        f"| {executor} | {work} | {1000 * max(stages.seconds):.1f} | {ratio:.2f} "
        f"| {min(ratios):.2f}-{max(ratios):.2f} | {stages.bound:.2f} | {ratio / stages.bound:.2f} |"
    )


def overhead(side: int, pairs: int, samples: int) -> str:
    """Return what the sequential executor takes beside a plain loop, learning in one stage."""
    model, sample = network(side)
    target = torch.zeros(4, MAPS, side, side)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-4)

    def plain() -> None:
        for _ in range(samples):
            value = loss(model(sample), target)
            optimiser.zero_grad()
            value.backward()
            optimiser.step()
            value.item()

    ratios = []
    other, _ = network(side)
    make = partial(torch.optim.SGD, lr=1e-4)
    with Pipeline([other], loss=loss, optimiser=make) as pipeline:

        def streamed() -> None:
            for answer in pipeline.run([(sample, target)] * samples):
                _ = answer.loss

        plain(), streamed()
        for _ in range(pairs):
            before = seconds(plain)
            ratios.append(seconds(streamed) / before)
    return f"{statistics.median(ratios):.3f} ({min(ratios):.3f}-{max(ratios):.3f})"


def step_microseconds(executor: str) -> float:
    """Return the microseconds of a step of two stages that do nothing with 0.4 MiB."""
    sample = torch.zeros(100_000)
    with Pipeline([nn.Identity(), nn.Identity()], executor) as pipeline:
        stream = [sample] * 300
        list(pipeline.run(stream))
        return 1e6 * min(seconds(lambda: list(pipeline.run(stream))) for _ in range(5)) / 300


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--samples", type=int, default=60)
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.2f} before, torch {torch.__version__}"
    )
    print("\n| executor | work | slower stage [ms] | faster by | range | bound | share |")
    print("|---|---|---|---|---|---|---|")
    for side in SIDES:
        for executor in ("thread", "process"):
            for learning in (False, True):
                print(compare(side, executor, learning, given.pairs, given.samples), flush=True)
    print(f"\nsequential executor over a plain loop: {overhead(64, given.pairs, given.samples)}")
    for executor in ("sequential", "thread", "process"):
        print(f"a step of two empty stages, {executor}: {step_microseconds(executor):.0f} us")
    print(f"load {os.getloadavg()[0]:.2f} after")


if __name__ == "__main__":
    main()
