"""A chain of convolutions on GPUs: sequential and pipelined, eager and by CUDA graphs.

    python benchmarks/pipeline_cuda.py --stages 4 --size 256 --frames 1000

The network is that of the PARTIME paper's first experiment: 150 convolutions of one resolution.
Sequential is the same pipeline with one stage, so that all four cells copy each frame to the device
and each answer to the host. Cells take turns; a row is the median over rounds of the milliseconds a
frame, with the least and the most, and how many times as fast as the sequential cell of its kind
it is. With `--stages 1` all cells are sequential. Stages are spread over the GPUs there are; on one
GPU they share it, and the only gain is time that one stage leaves idle.
"""

import argparse
import statistics
import sys
import time
from functools import partial
from itertools import product, repeat

import torch
from torch import Tensor, nn

from actionspan.streaming import Pipeline

_EXTRA = 20  # frames beside those that fill the pipeline, before the clock runs and after


def chain(layers: int, maps: int, channels: int) -> list[nn.Module]:
    """Return convolutions of 5 x 5 that keep the resolution, from 3 maps to `channels`."""
    widths = [3, *[maps] * (layers - 1), channels]
    return [
        nn.Sequential(nn.Conv2d(before, after, 5, padding=2), nn.ReLU(inplace=True))
        for before, after in zip(widths, widths[1:], strict=False)
    ]


def cut(layers: list[nn.Module], stages: int) -> list[nn.Module]:
    """Return stages of equally many layers, up to one."""
    ends = [round(len(layers) * stage / stages) for stage in range(stages + 1)]
    return [nn.Sequential(*layers[a:b]) for a, b in zip(ends, ends[1:], strict=False)]


def adam(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    """Return the optimiser of all cells: one that a graph can hold."""
    return torch.optim.Adam(parameters, lr=torch.tensor(1e-5), capturable=True)


def squared(output: Tensor, target: Tensor) -> Tensor:
    """Return the mean squared difference."""
    return (output - target).square().mean()


def seconds_per_frame(
    pipeline: Pipeline, frame: Tensor, target: Tensor | None, frames: int, extra: int
) -> float:
    """Return the time between two answers of a full pipeline.

    Args:
        pipeline: It learns if there is a target.
        frame: (1, 3, R, R), given again and again.
        target: (1, F, R, R) or None.
        frames: How many to time.
        extra: Frames before the clock runs, and after it stops.
    """
    begun = ended = 0.0
    for answer in pipeline.run(
        repeat((frame, target) if target is not None else frame, frames + 2 * extra)
    ):
        if answer.index == extra:
            begun = time.perf_counter()
        elif answer.index == extra + frames:
            ended = time.perf_counter()
    return (ended - begun) / frames


def measure(arguments: argparse.Namespace, stages: int, executor: str, learning: bool) -> float:
    """Return the seconds of a frame in one cell."""
    torch.manual_seed(0)
    layers = chain(arguments.layers, arguments.maps, arguments.channels)
    size = arguments.size
    frame = torch.rand(1, 3, size, size)
    target = torch.rand(1, arguments.channels, size, size) if learning else None
    how = {"loss": squared, "optimiser": adam} if learning else {}
    with Pipeline(cut(layers, stages), executor, **how) as pipeline:
        return seconds_per_frame(pipeline, frame, target, arguments.frames, _EXTRA + 2 * stages)


def main() -> None:
    """Measure the cells in turns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stages", type=int, default=2)
    parser.add_argument("--layers", type=int, default=150)
    parser.add_argument("--maps", type=int, default=32)
    parser.add_argument("--channels", type=int, default=1, help="of the output (the paper's F)")
    parser.add_argument("--size", type=int, default=256, help="of a frame's side (the paper's R)")
    parser.add_argument("--frames", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("pipeline_cuda.py: torch sees no CUDA device; this benchmark needs one or more")
    torch.backends.cudnn.benchmark = True
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    print(f"# {', '.join(names)}; torch {torch.__version__}; {vars(arguments)}")
    print("R\twork\tstages\tkind\tms_per_frame\tleast\tmost\tspeed_up")
    kinds = {"eager": "stream", "graph": "graph"}
    for learning in (False, True):
        cells = list(product(kinds, sorted({1, arguments.stages})))
        taken: dict[tuple[str, int], list[float]] = {cell: [] for cell in cells}
        for _, (kind, stages) in product(range(arguments.rounds), cells):
            taken[kind, stages].append(measure(arguments, stages, kinds[kind], learning))
        for (kind, stages), each in taken.items():
            baseline = statistics.median(taken[kind, 1])
            show = partial("{:.3f}".format)
            row = [show(1e3 * value) for value in (statistics.median(each), min(each), max(each))]
            row.append(show(baseline / statistics.median(each)))
            work = "learning" if learning else "inference"
            print("\t".join([str(arguments.size), work, str(stages), kind, *row]), flush=True)


if __name__ == "__main__":
    main()
