"""Steps of Video Swin with and without SBP: memory and seconds, as table 2 of paper 004 has them.

    python benchmarks/swin_step.py --networks Swin-T Swin-B

A step is a forward and a backward pass on 4 clips of 32 frames at 224 × 224 pixels, and AdamW, in
float32 with explicit attention, as the paper's time had it. SBP keeps a quarter.
`actionspan_papers/sbp/swin.py` lists the parts of the network that are left out. Memory is the most
that PyTorch allocated over three steps, weights and moments included; without a GPU it is not
measured. Seconds are medians with the least and the most of steps of all ways in turns: of the
clock on a GPU, else of the CPU.
"""

import argparse
import gc
from collections.abc import Callable, Iterator
from statistics import median

import torch

from actionspan_papers.sbp.measured import allocated, in_turns
from actionspan_papers.sbp.published import COSTS
from actionspan_papers.sbp.swin import GRID, SHAPES, WAYS, Shape, Way, make_step

COLUMNS = ("network", "way", "GiB allocated", "seconds a step", "least", "most")
_COMPARED = [way for way in WAYS if ("Swin-T", way.name) in COSTS]
_WARM = 3  # AdamW's moments are there from the second step on


def learning(way: Way, shape: Shape, grid: tuple[int, int, int], device: str) -> Callable[[], None]:
    """Return a step of training."""
    network, gradients = make_step(way, shape, grid, fused=False, device=device)
    optimiser = torch.optim.AdamW(network.parameters())

    def step() -> None:
        gradients()
        optimiser.step()
        optimiser.zero_grad()

    return step


def rows(
    name: str, shape: Shape, grid: tuple[int, int, int], device: str, repeats: int
) -> Iterator[list[str]]:
    """Yield a row a way to train; memory is empty without a GPU."""
    memory = []
    for way in _COMPARED:

        def steps(way: Way = way) -> None:
            step = learning(way, shape, grid, device)
            for _ in range(_WARM):
                step()

        gc.collect()  # of the way before nothing counts
        on_gpu = torch.device(device).type == "cuda"
        memory.append(f"{allocated(steps, device) / 2**30:.2f}" if on_gpu else "")
    ways = [learning(way, shape, grid, device) for way in _COMPARED]
    times = in_turns(ways, repeats, device)
    for way, gib, taken in zip(_COMPARED, memory, times, strict=True):
        seconds = (f"{each:.4f}" for each in (median(taken), min(taken), max(taken)))
        yield [name, way.name, gib, *seconds]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--networks", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--grid", type=int, nargs=3, default=GRID, help="patches of a clip: t h w")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    print("\t".join(COLUMNS), flush=True)
    for name in arguments.networks:
        grid = tuple(arguments.grid)
        for row in rows(name, SHAPES[name], grid, arguments.device, arguments.repeats):
            print("\t".join(row), flush=True)


if __name__ == "__main__":
    main()
