"""A transformer of Video Swin-T's shape, to count what training it needs; it is never trained.

Windows of nodes, layers, widths and heads are Swin-T's. Not modelled, since none of it is large:
the patch embedding and the classifier, shifted windows (a roll saves nothing), the bias of relative
positions, stochastic depth.
"""

from collections.abc import Sequence
from itertools import islice

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from actionspan_papers.sbp.node_rows import NodeRows, divide_nodes, put_together, take
from actionspan_papers.sbp.transformer import TransformerLayer

HEAD = 32
"""d, numbers of a node that a head of attention sees."""


class Merging(nn.Module):
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

    def __init__(
        self,
        *,
        width: int = 96,
        layers: Sequence[int] = (2, 2, 6, 2),
        top: int = 4,
        window: tuple[int, int] = (8, 7),
        fused: bool = True,
        checkpointed: bool = False,
    ) -> None:
        """Make the stages; by default those of Swin-T with SBP in the first 8 of 12 layers.

        Args:
            width: Of the first stage; each has twice that of the one before.
            layers: Of each stage.
            top: Layers, from the top, that keep all backward paths.
            window: Frames, and nodes in a row and in a column, of a window.
            fused: As for `TransformerLayer`.
            checkpointed: Save the inputs of layers alone, and run each again in backward.
        """
        super().__init__()
        self.layers, self.top = tuple(layers), top
        self.window, self.checkpointed = window, checkpointed
        self.blocks = nn.ModuleList(
            TransformerLayer(width << stage, (width << stage) // HEAD, fused=fused)
            for stage, count in enumerate(layers)
            for _ in range(count)
        )
        self.merging = nn.ModuleList(Merging(width << stage) for stage in range(len(layers) - 1))

    def forward(self, nodes: Tensor, kept: Tensor | None = None) -> Tensor:
        """Return the nodes of the last stage.

        Args:
            nodes: (B, t, h, w, D), after the patch embedding.
            kept: (k,) frames of a window whose backward paths are kept; by default all.
        """
        blocks = iter(self.blocks)
        sampled = len(self.blocks) - self.top
        for stage, count in enumerate(self.layers):
            if stage:
                frames = self._frames(kept, nodes) if sampled > 0 else None
                nodes = self.merging[stage - 1](nodes, frames)
            shape = nodes.shape
            windows = self._to_windows(nodes)  # (B · windows, n, D)
            rows = self._rows(kept, nodes)
            for block in islice(blocks, count):
                windows = self._run(block, windows, rows if sampled > 0 else None)
                sampled -= 1
            nodes = self._to_grid(windows, shape)
        return nodes

    def _run(self, layer: nn.Module, windows: Tensor, rows: NodeRows | None) -> Tensor:
        if self.checkpointed:
            again: Tensor = checkpoint(layer, windows, rows, use_reentrant=False)
            return again
        run: Tensor = layer(windows, rows)
        return run

    def _sizes(self, nodes: Tensor) -> tuple[int, int]:
        """Return the frames and the side of a window, which short clips make smaller."""
        return min(self.window[0], nodes.shape[1]), min(self.window[1], nodes.shape[2])

    def _frames(self, kept: Tensor | None, nodes: Tensor) -> NodeRows | None:
        """Return the frames of the clip that are kept: the same in each window."""
        if kept is None:
            return None
        size, count = self._sizes(nodes)[0], nodes.shape[1]
        first = torch.arange(0, count, size)[:, None]
        return divide_nodes((first + kept).flatten(), count)

    def _rows(self, kept: Tensor | None, nodes: Tensor) -> NodeRows | None:
        """Return the nodes of a window that are kept: all of the kept frames."""
        if kept is None:
            return None
        size, side = self._sizes(nodes)
        inside = torch.arange(side * side)
        return divide_nodes((kept[:, None] * side * side + inside).flatten(), size * side * side)

    def _to_windows(self, nodes: Tensor) -> Tensor:
        b, t, h, w, d = nodes.shape
        size, side = self._sizes(nodes)
        parts = nodes.view(b, t // size, size, h // side, side, w // side, side, d)
        return parts.permute(0, 1, 3, 5, 2, 4, 6, 7).reshape(-1, size * side * side, d)

    def _to_grid(self, windows: Tensor, shape: Sequence[int]) -> Tensor:
        b, t, h, w, d = shape
        size, side = min(self.window[0], t), min(self.window[1], h)
        parts = windows.view(b, t // size, h // side, w // side, size, side, side, d)
        return parts.permute(0, 1, 4, 2, 5, 3, 6, 7).reshape(b, t, h, w, d)
