"""A transformer of Video Swin-T's shape, to count what training it needs; it is never trained.

Windows of nodes, layers, widths and heads are Swin-T's. Not modelled, since none of it is large:
the patch embedding and the classifier, shifted windows (a roll saves nothing), the bias of relative
positions, stochastic depth.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from actionspan.memory.counting import AllocatedBytes, saved_bytes
from actionspan.memory.sampling import kept_count
from actionspan_papers.sbp.transformer import (
    NodeRows,
    TransformerLayer,
    divide_nodes,
    put_together,
    take,
)

HEAD = 32
"""d, numbers of a node that a head of attention sees."""
WINDOW = 8, 7
"""Frames of a window, and nodes in its rows and columns: n = 392."""
GRID = 16, 56, 56
"""Patches of 32 frames at 224 × 224 pixels: in time, in a column and in a row."""
_BATCH = 4


class Shape(NamedTuple):
    """Width of the first stage, layers of each, and how many of the highest keep all paths.

    Each stage has twice the width of the one before.
    """

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


def count_step(way: Way, shape: Shape, grid: tuple[int, int, int] = GRID, *, fused: bool) -> Count:
    """Count a step of training on 4 clips, with patches in a grid, without any arithmetic.

    On the `meta` device `scaled_dot_product_attention` takes a form that saves two matrices; fake
    tensors of the CPU take the one that saves none. The halved copies that mixed precision makes of
    weights count as saved.
    """
    with FakeTensorMode(), torch.autocast("cpu", torch.bfloat16, enabled=way.mixed):
        network, step = make_step(way, shape, grid, fused=fused)
        with saved_bytes(network) as saved, AllocatedBytes() as allocated:
            step()
        # A run of its own: the counter keeps the graphs of layers that are run again. PyTorch
        # counts no products of the CPU's fused attention.
        flops = 0
        if not fused:
            with FlopCounterMode(display=False) as counter:
                step()
            flops = counter.get_total_flops()
    return Count(saved.total, allocated.peak, flops)


def make_step(
    way: Way, shape: Shape, grid: tuple[int, int, int] = GRID, *, fused: bool, device: str = "cpu"
) -> tuple["SwinShape", Callable[[], None]]:
    """Return a network, and its forward and backward pass on 4 clips with a grid of patches."""
    frames, height, width = grid
    if way.frames_dropped:
        frames = kept_count(frames, way.keep_ratio)
    kept = None
    with torch.device(device):
        network = SwinShape(shape, fused=fused, checkpointed=way.checkpointed)
        nodes = torch.randn(_BATCH, frames, height, width, shape.width, requires_grad=True)
        if way.keep_ratio < 1 and not way.frames_dropped:
            count = kept_count(WINDOW[0], way.keep_ratio)
            kept = torch.arange(count) * (WINDOW[0] // count)

    def step() -> None:
        nodes.grad = None
        network(nodes, kept).sum().backward()

    return network, step


class _Merging(nn.Module):
    """Four neighbouring nodes of a frame become one of twice the width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4 * width)
        self.reduction = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, nodes: Tensor, frames: NodeRows | None) -> Tensor:
        """Return (B, t, h / 2, w / 2, 2 D) of (B, t, h, w, D); dropped frames have no graph."""
        if frames is None:
            return self._merged(nodes)
        with torch.no_grad():
            dropped = self._merged(take(nodes, frames.dropped))
        return put_together(self._merged(take(nodes, frames.kept)), dropped, frames)

    def _merged(self, nodes: Tensor) -> Tensor:
        b, t, h, w, d = nodes.shape
        four = nodes.view(b, t, h // 2, 2, w // 2, 2, d).transpose(3, 4)
        merged: Tensor = self.reduction(self.norm(four.reshape(b, t, h // 2, w // 2, 4 * d)))
        return merged


class SwinShape(nn.Module):
    """Stages of layers that work inside windows of nodes; between stages nodes are merged."""

    def __init__(self, shape: Shape, *, fused: bool = True, checkpointed: bool = False) -> None:
        """Make the stages; `fused` is as for `TransformerLayer`.

        A `checkpointed` network saves the inputs of layers alone, and runs each again in backward.
        """
        super().__init__()
        self.shape, self.checkpointed = shape, checkpointed
        widths = [shape.width << stage for stage in range(len(shape.layers))]
        self.blocks = nn.ModuleList(
            TransformerLayer(width, width // HEAD, fused=fused)
            for width, count in zip(widths, shape.layers, strict=True)
            for _ in range(count)
        )
        self.merging = nn.ModuleList(map(_Merging, widths[:-1]))

    def forward(self, nodes: Tensor, kept: Tensor | None = None) -> Tensor:
        """Return the nodes of the last stage.

        Args:
            nodes: (B, t, h, w, D), after the patch embedding.
            kept: (k,) frames of a window that keep their backward paths; by default all.
        """
        blocks = iter(self.blocks)
        sampled = len(self.blocks) - self.shape.top
        for stage, count in enumerate(self.shape.layers):
            if stage:
                frames = self._frames(kept, nodes) if sampled > 0 else None
                nodes = self.merging[stage - 1](nodes, frames)
            shape = nodes.shape
            windows = _to_windows(nodes)  # (B · windows, n, D)
            rows = self._rows(kept, nodes)
            for block in islice(blocks, count):
                windows = self._run(block, windows, rows if sampled > 0 else None)
                sampled -= 1
            nodes = _to_grid(windows, shape)
        return nodes

    def _run(self, layer: nn.Module, windows: Tensor, rows: NodeRows | None) -> Tensor:
        run: Tensor = (
            checkpoint(layer, windows, rows, use_reentrant=False)
            if self.checkpointed
            else layer(windows, rows)
        )
        return run

    def _frames(self, kept: Tensor | None, nodes: Tensor) -> NodeRows | None:
        """Return the frames of the clip that are kept: the same in each window."""
        if kept is None:
            return None
        count = nodes.shape[1]
        first = torch.arange(0, count, _window(nodes.shape)[0], device=kept.device)[:, None]
        return divide_nodes((first + kept).flatten(), count)

    def _rows(self, kept: Tensor | None, nodes: Tensor) -> NodeRows | None:
        """Return the nodes of a window that are kept: all of the kept frames."""
        if kept is None:
            return None
        size, side = _window(nodes.shape)
        inside = torch.arange(side * side, device=kept.device)
        return divide_nodes((kept[:, None] * side * side + inside).flatten(), size * side * side)


def _window(shape: Sequence[int]) -> tuple[int, int]:
    """Return the frames and the side of a window, which short clips make smaller."""
    return min(WINDOW[0], shape[1]), min(WINDOW[1], shape[2])


def _to_windows(nodes: Tensor) -> Tensor:
    b, t, h, w, d = nodes.shape
    size, side = _window(nodes.shape)
    parts = nodes.view(b, t // size, size, h // side, side, w // side, side, d)
    return parts.permute(0, 1, 3, 5, 2, 4, 6, 7).reshape(-1, size * side * side, d)


def _to_grid(windows: Tensor, shape: Sequence[int]) -> Tensor:
    b, t, h, w, d = shape
    size, side = _window(shape)
    parts = windows.view(b, t // size, h // side, w // side, size, side, side, d)
    return parts.permute(0, 1, 4, 2, 5, 3, 6, 7).reshape(b, t, h, w, d)
