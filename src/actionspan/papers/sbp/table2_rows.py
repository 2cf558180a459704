"""Bytes and products of a step of training a transformer of Video Swin-T's shape, by counting."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

from actionspan.memory.allocation import allocated_bytes
from actionspan.memory.counting import saved_bytes
from actionspan.memory.sampling import kept_count
from actionspan.papers.sbp.published import COSTS, RECOGNITION
from actionspan.papers.sbp.swin import SwinShape

WINDOW = 8, 7
"""Frames of a window, and nodes in its rows and columns: n = 392."""

_WIDTH = 96
_BATCH = 4
_GRID = 16, 56, 56  # of the patches of 32 frames at 224 × 224 pixels
_GIB = 2**30


class Way(NamedTuple):
    """A way to train: r of SBP or of the frames, and whether layers are run again."""

    name: str
    keep_ratio: float = 1.0
    checkpointed: bool = False
    frames_dropped: bool = False


WAYS = (
    Way("end-to-end"),
    Way("checkpointing", checkpointed=True),
    Way("SBP", 0.25),
    Way("SBP + checkpointing", 0.25, True),
    Way("frame dropout", 0.25, frames_dropped=True),
)


class Count(NamedTuple):
    """Bytes saved for backward and bytes allocated, the most at one time, and operations."""

    saved: int
    allocated: int
    flops: int


def cost_rows(
    layers: Sequence[int] = (2, 2, 6, 2), grid: tuple[int, int, int] = _GRID
) -> list[dict[str, str]]:
    """Return a row a form of attention and way to train.

    Products are those of explicit attention; fused attention has as many in the forward pass, and
    runs the scores again in backward.

    Args:
        layers: Of each stage.
        grid: Patches in time, in a column and in a row, of which windows of 8 × 7 × 7 are cut.
    """
    rows: list[dict[str, str]] = []
    counts = {
        (fused, way): _count(way, layers, grid, fused=fused)
        for fused in (False, True)
        for way in WAYS
    }
    for (fused, way), count in counts.items():
        whole, products = counts[fused, WAYS[0]], counts[False, way].flops
        cost = COSTS.get(("Swin-T", way.name))
        gigabytes = cost.gigabytes if cost else RECOGNITION["Swin-T", way.name].gigabytes
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
                "published_gb": f"{gigabytes:g}",
                "published_share": f"{gigabytes / most.gigabytes:.3f}",
                "published_seconds": f"{cost.seconds:g}" if cost else "",
                "published_seconds_share": f"{cost.seconds / most.seconds:.2f}" if cost else "",
            }
        )
    return rows


def _count(way: Way, layers: Sequence[int], grid: tuple[int, int, int], *, fused: bool) -> Count:
    """Count a step without any arithmetic.

    On the `meta` device `scaled_dot_product_attention` takes a form that saves two matrices; fake
    tensors of the CPU take the one that saves none.
    """
    frames, height, width = grid
    if way.frames_dropped:
        frames = kept_count(frames, way.keep_ratio)
    with FakeTensorMode():
        network = SwinShape(
            width=_WIDTH,
            layers=layers,
            top=sum(layers) // 3,
            window=WINDOW,
            fused=fused,
            checkpointed=way.checkpointed,
        )
        nodes = torch.empty(_BATCH, frames, height, width, _WIDTH, requires_grad=True)
        kept = None
        if way.keep_ratio < 1 and not way.frames_dropped:
            count = kept_count(WINDOW[0], way.keep_ratio)
            kept = torch.arange(count) * (WINDOW[0] // count)
        with saved_bytes(network) as saved, allocated_bytes() as allocated:
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
