"""Bytes and products of a step of training a transformer of Video Swin-T's shape, by counting."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

from actionspan.memory.counting import AllocatedBytes, saved_bytes
from actionspan.memory.sampling import kept_count
from actionspan_papers.sbp.published import COSTS, RECOGNITION
from actionspan_papers.sbp.swin import SwinShape

WINDOW = 8, 7
"""Frames of a window, and nodes in its rows and columns: n = 392."""

_BATCH = 4
GRID = 16, 56, 56
"""Patches of 32 frames at 224 × 224 pixels: in time, in a column and in a row."""
_GIB = 2**30


class Shape(NamedTuple):
    """Width of the first stage, layers of each, and how many of the highest keep all paths."""

    width: int
    layers: Sequence[int]
    top: int


SHAPES: Mapping[str, Shape] = {
    "Swin-T": Shape(96, (2, 2, 6, 2), 4),
    "Swin-B": Shape(128, (2, 2, 18, 2), 6),
}


class Way(NamedTuple):
    """A way to train: r of SBP or of the frames, whether layers are run again, and in bfloat16."""

    name: str
    keep_ratio: float = 1.0
    checkpointed: bool = False
    frames_dropped: bool = False
    mixed: bool = False


WAYS = (
    Way("end-to-end"),
    Way("checkpointing", checkpointed=True),
    Way("SBP", 0.25),
    Way("SBP + checkpointing", 0.25, True),
    Way("frame dropout", 0.25, frames_dropped=True),
    Way("SBP + mixed precision", 0.25, mixed=True),
)


class Count(NamedTuple):
    """Bytes saved for backward and bytes allocated, the most at one time, and operations."""

    saved: int
    allocated: int
    flops: int


def cost_rows(
    shape: Shape = SHAPES["Swin-T"], grid: tuple[int, int, int] = GRID
) -> list[dict[str, str]]:
    """Return a row a form of attention and way to train.

    Products are those of explicit attention; fused attention has as many in the forward pass, and
    runs the scores again in backward.

    Args:
        shape: Of the network.
        grid: Patches, of which windows of 8 × 7 × 7 are cut.
    """
    rows: list[dict[str, str]] = []
    counts = {
        (fused, way): count_step(way, shape, grid, fused=fused)
        for fused in (False, True)
        for way in WAYS
    }
    for (fused, way), count in counts.items():
        whole, products = counts[fused, WAYS[0]], counts[False, way].flops
        cost = COSTS.get(("Swin-T", way.name))
        printed = cost or RECOGNITION.get(("Swin-T", way.name))
        most = COSTS["Swin-T", WAYS[0].name]
        rows.append(
            {
                "attention": "fused" if fused else "explicit",
                "way": way.name,
                "saved_gib": f"{count.saved / _GIB:.2f}",
                "saved_share": f"{count.saved / whole.saved:.3f}",
                "allocated_gib": f"{count.allocated / _GIB:.2f}",
                "allocated_share": f"{count.allocated / whole.allocated:.3f}",
                "teraflops": f"{products / 1e12:.2f}",
                "flops_share": f"{products / counts[False, WAYS[0]].flops:.3f}",
                "published_gb": f"{printed.gigabytes:g}" if printed else "",
                "published_share": (f"{printed.gigabytes / most.gigabytes:.3f}" if printed else ""),
                "published_seconds": f"{cost.seconds:g}" if cost else "",
                "published_seconds_share": f"{cost.seconds / most.seconds:.2f}" if cost else "",
            }
        )
    return rows


def count_step(way: Way, shape: Shape, grid: tuple[int, int, int] = GRID, *, fused: bool) -> Count:
    """Count a step without any arithmetic.

    On the `meta` device `scaled_dot_product_attention` takes a form that saves two matrices; fake
    tensors of the CPU take the one that saves none. The halved copies that mixed precision makes of
    weights count as saved.
    """
    frames, height, width = grid
    if way.frames_dropped:
        frames = kept_count(frames, way.keep_ratio)
    with FakeTensorMode(), torch.autocast("cpu", torch.bfloat16, enabled=way.mixed):
        network = SwinShape(
            width=shape.width,
            layers=shape.layers,
            top=shape.top,
            window=WINDOW,
            fused=fused,
            checkpointed=way.checkpointed,
        )
        nodes = torch.empty(_BATCH, frames, height, width, shape.width, requires_grad=True)
        kept = None
        if way.keep_ratio < 1 and not way.frames_dropped:
            count = kept_count(WINDOW[0], way.keep_ratio)
            kept = torch.arange(count) * (WINDOW[0] // count)
        with saved_bytes(network) as saved, AllocatedBytes() as allocated:
            network(nodes, kept).sum().backward()
        # A run of its own: the counter keeps the graphs of layers that are run again. PyTorch
        # counts no products of the CPU's fused attention.
        flops = 0
        if not fused:
            with FlopCounterMode(display=False) as counter:
                network(nodes, kept).sum().backward()
            flops = counter.get_total_flops()
    return Count(saved.total, allocated.peak, flops)


def printed_ratio(keep_ratio: float, nodes: int, head: int) -> float:
    """Return equation (4): what of a layer's bytes SBP saves, as the paper counts them."""
    share = head / nodes
    return (4 * share + keep_ratio * (11 * share + 2)) / (15 * share + 2)


def counted_ratio(keep_ratio: float, nodes: int, head: int, *, fused: bool) -> float:
    """Return the same as our layers save it: input, its norm, keys and values of all nodes.

    The softmax's matrix is there once, and with fused attention not at all; what attention gives is
    saved too. Statistics of the norms are left out.
    """
    kept = 12 + (0 if fused else nodes / head)
    return (4 + keep_ratio * kept) / (4 + kept)
