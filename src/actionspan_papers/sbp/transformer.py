"""Transformers with lower layers that keep the backward paths of some nodes only (SBP).

A graph model has no encoder apart from a head: every layer mixes the nodes. So each layer but the
top ones drops backward paths itself (paper 004, section 3.2.2): after each layer the gradient of
dropped nodes is zero, also of the shortcut and of keys and values. The forward pass is as in a
plain transformer up to rounding: kept and dropped nodes go through the same products in
two batches.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional


class NodeRows(NamedTuple):
    """The nodes of (B, N, …) in two parts, kept ones and dropped ones, and the way back.

    Each is (k,) rows, the same in all examples, or (B, k) rows of each example.
    """

    kept: Tensor
    dropped: Tensor
    place: Tensor
    """Of each of the N nodes in the sequence of kept nodes followed by dropped ones."""


def _checked_rows(kept: Tensor, size: int, count: int) -> Tensor:
    """Return rows of nodes, (k,) or (B, k), of `size` examples with `count` nodes each.

    Raises:
        ValueError: They are of another type or shape, none, not from 0 to N - 1, or one is there
            twice.
    """
    if kept.dtype != torch.int64 or kept.dim() not in (1, 2) or not kept.numel():
        raise ValueError(
            f"rows of nodes: {kept.dtype} of shape {tuple(kept.shape)}; they must be int64, (k,) "
            "or (B, k), at least 1"
        )
    if kept.dim() == 2 and len(kept) != size:
        raise ValueError(f"rows of nodes of {len(kept)} examples: there are {size}")
    ordered = kept.sort(dim=-1).values
    least, most = int(ordered.min()), int(ordered.max())
    if least < 0 or most >= count:
        raise ValueError(
            f"rows of nodes from {least} to {most}; they must be from 0 to {count - 1}"
        )
    if bool((ordered.diff(dim=-1) == 0).any()):
        raise ValueError("rows of nodes: one is there twice; they must be distinct")
    return kept


def divide_nodes(kept: Tensor, count: int) -> NodeRows:
    """Divide `count` nodes by the rows that are kept, (k,) or (B, k) int64 without repeats."""
    marks = torch.ones((*kept.shape[:-1], count), dtype=torch.int64, device=kept.device)
    order = marks.scatter(-1, kept, 0).argsort(dim=-1, stable=True)  # kept nodes come first
    size = kept.shape[-1]
    return NodeRows(order[..., :size], order[..., size:], order.argsort(dim=-1))


def take(nodes: Tensor, rows: Tensor) -> Tensor:
    """Return the (B, k, …) nodes in these rows of (B, N, …); backward saves the rows alone."""
    if rows.dim() == 1:
        return nodes.index_select(1, rows)
    # not `gather`, which saves a row for each number of a node
    first = torch.arange(len(rows), device=rows.device).unsqueeze(1) * nodes.shape[1]
    taken = nodes.flatten(0, 1).index_select(0, (rows + first).flatten())
    return taken.view(*rows.shape, *nodes.shape[2:])


def put_together(kept: Tensor, dropped: Tensor, rows: NodeRows) -> Tensor:
    """Return the (B, N, …) nodes that `take` divided."""
    return take(torch.cat([kept, dropped], dim=1), rows.place)


class KeepGradient(torch.autograd.Function):
    """The identity on (B, N, D) nodes, with a gradient of zero outside the kept rows."""

    @staticmethod
    def forward(ctx: Any, nodes: Tensor, kept: Tensor) -> Tensor:
        """Return the nodes as they are; the rows are saved, and nothing of the nodes."""
        ctx.save_for_backward(kept)
        return nodes.view_as(nodes)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Return the gradient with zeros instead of the dropped nodes'."""
        (gradient,), (kept,) = gradients, ctx.saved_tensors
        count = gradient.shape[1]
        outside = torch.ones((*kept.shape[:-1], count), dtype=torch.bool, device=kept.device)
        return gradient.masked_fill(outside.scatter(-1, kept, False).unsqueeze(-1), 0), None


class TransformerLayer(nn.Module):
    """A pre-norm layer: attention, then two dense layers on each node; each adds to its input.

    It has no dropout: kept and dropped rows are drawn outside.
    """

    def __init__(self, width: int, heads: int, *, fused: bool = True) -> None:
        """Make a layer.

        Args:
            width: D, of a node.
            heads: Of attention; divides the width.
            fused: Use `scaled_dot_product_attention`, which saves no (N, N) matrix.

        Raises:
            ValueError: An argument is not allowed.
        """
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width}: must be a multiple of the {heads} heads")
        self.heads, self.fused = heads, fused
        self.norm1 = nn.LayerNorm(width)
        # three layers, not one: of the queries only the kept ones are saved, and a slice of one
        # tensor would hold it all
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.merge = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.dense1 = nn.Linear(width, 4 * width)
        self.dense2 = nn.Linear(4 * width, width)

    def forward(self, nodes: Tensor, rows: NodeRows | None = None) -> Tensor:
        """Return the (B, N, D) nodes of (B, N, D) ones; `rows` keep their backward path."""
        if rows is None:
            seen = self.norm1(nodes)  # (B, N, D)
            return self._after(nodes, self.query(seen), self.key(seen), self.value(seen))
        nodes = KeepGradient.apply(nodes, rows.kept)  # type: ignore[no-untyped-call]
        seen = self.norm1(nodes)  # (B, N, D)
        query, key, value = self.query(seen), self.key(seen), self.value(seen)
        kept = self._after(take(nodes, rows.kept), take(query, rows.kept), key, value)  # (B, k, D)
        with torch.no_grad():
            before = take(nodes, rows.dropped)  # (B, N - k, D)
            dropped = self._after(before, take(query, rows.dropped), key, value)
        return put_together(kept, dropped, rows)

    def _after(self, nodes: Tensor, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Return (B, k, D) nodes after both branches, from their queries and all keys, values."""
        nodes = nodes + self.merge(self._attend(query, key, value))  # (B, k, D)
        change: Tensor = self.dense2(functional.gelu(self.dense1(self.norm2(nodes))))
        return nodes + change

    def _attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Return (B, k, D), what (B, k, D) queries see of (B, N, D) keys and values."""
        q, k, v = (
            part.view(*part.shape[:2], self.heads, -1).transpose(1, 2)
            for part in (query, key, value)
        )  # (B, H, k or N, D/H) each
        if self.fused:
            seen = functional.scaled_dot_product_attention(q, k, v)
        else:
            scores = (q * q.shape[-1] ** -0.5) @ k.transpose(2, 3)  # (B, H, k, N)
            seen = scores.softmax(dim=3) @ v
        return seen.transpose(1, 2).flatten(2)  # (B, k, D)


class TransformerEncoder(nn.Module):
    """Layers of a transformer, of which all but the top ones may drop backward paths."""

    def __init__(
        self, width: int, heads: int, layers: int, *, top: int = 4, fused: bool = True
    ) -> None:
        """Make the layers.

        Args:
            width: D, of a node.
            heads: Of attention; divides the width.
            layers: How many.
            top: How many of them, from the top, always keep all backward paths. The paper states 3,
                and has 4 of Swin-T's 12 and 6 of Swin-B's 24.
            fused: As for `TransformerLayer`.

        Raises:
            ValueError: An argument is not allowed.
        """
        super().__init__()
        if not 0 <= top <= layers:
            raise ValueError(f"top {top}: from 0 to the {layers} layers")
        self.sampled = layers - top
        """How many layers, from the bottom, may drop backward paths."""
        self.layers = nn.ModuleList(
            TransformerLayer(width, heads, fused=fused) for _ in range(layers)
        )

    def forward(self, nodes: Tensor, kept: Tensor | None = None) -> Tensor:
        """Return the (B, N, D) nodes of (B, N, D) ones.

        Args:
            nodes: (B, N, D).
            kept: (k,) or (B, k) rows that keep their backward path in the lower layers; by default
                all.

        Raises:
            ValueError: The rows are not what `_checked_rows` allows.
        """
        rows = None
        size, count = nodes.shape[:2]
        if kept is not None and _checked_rows(kept, size, count).shape[-1] < count:
            rows = divide_nodes(kept.to(nodes.device), count)
        for number, layer in enumerate(self.layers):
            nodes = layer(nodes, rows if number < self.sampled else None)
        return nodes


class VideoTransformer(nn.Module):
    """(B, T, C, H, W) clips to (B, classes) scores: patches, layers, the mean of all, a classifier.

    Nodes are patches of t frames, row by row and frame by frame; each has a learned position in
    time and one in the image. Every patch of every frame sees all others.
    """

    def __init__(
        self,
        classes: int,
        *,
        frames: int = 8,
        height: int = 64,
        width: int = 64,
        channels: int = 1,
        patch: tuple[int, int, int] = (1, 8, 8),
        features: int = 64,
        heads: int = 4,
        layers: int = 6,
        top: int = 2,
    ) -> None:
        """Make the network of clips of T `frames` with C `channels`, H `height` and W `width`.

        Args:
            classes: How many scores.
            frames: T of a clip.
            height: H of its frames, in pixels.
            width: W of its frames, in pixels.
            channels: C, maps of a frame.
            patch: Frames, rows and columns of a patch; each divides the clip's.
            features: D, of a node.
            heads: Of attention; divides the features.
            layers: How many.
            top: How many of them always keep all backward paths.

        Raises:
            ValueError: An argument is not allowed.
        """
        super().__init__()
        sizes = frames, height, width
        if min(patch) < 1 or any(size % part for size, part in zip(sizes, patch, strict=True)):
            raise ValueError(f"patch {patch}: each number divides the clip's, {sizes}")
        t, h, w = (size // part for size, part in zip(sizes, patch, strict=True))
        self.clip = frames, channels, height, width
        """The shape of a clip."""
        self.grid = t, h, w
        """Patches in time, in a column and in a row."""
        self.embedding = nn.Conv3d(channels, features, patch, stride=patch)
        self.time = nn.Parameter(0.02 * torch.randn(t, 1, features))
        self.place = nn.Parameter(0.02 * torch.randn(h * w, features))
        self.encoder = TransformerEncoder(features, heads, layers, top=top)
        self.norm = nn.LayerNorm(features)
        self.classifier = nn.Linear(features, classes)

    def forward(
        self, clips: Tensor, kept: Tensor | None = None, *, only: Tensor | None = None
    ) -> Tensor:
        """Return the class scores before softmax, (B, classes).

        Args:
            clips: (B, T, C, H, W).
            kept: Rows of nodes as `TransformerEncoder.forward` takes them.
            only: (k,) or (B, k) rows of nodes; all others are left out of both passes (frame
                dropout). `kept` then counts among these.
        """
        nodes = self.nodes(clips)  # (B, N, D)
        if only is not None:
            nodes = take(nodes, _checked_rows(only, *nodes.shape[:2]).to(nodes.device))
        nodes = self.encoder(nodes, kept)
        scores: Tensor = self.classifier(self.norm(nodes).mean(dim=1))
        return scores

    def nodes(self, clips: Tensor) -> Tensor:
        """Return the (B, N, D) nodes of (B, T, C, H, W) clips, with their positions.

        Raises:
            ValueError: The clips are not of the network's length and size.
        """
        if clips.dim() != 5 or tuple(clips.shape[1:]) != self.clip:
            raise ValueError(f"clips of shape {tuple(clips.shape)}: (B, *{self.clip})")
        patches: Tensor = self.embedding(clips.transpose(1, 2))  # (B, D, t, h, w)
        positions = (self.time + self.place).flatten(0, 1)  # (N, D)
        return patches.flatten(2).transpose(1, 2) + positions

    def frame_nodes(self, frames: Tensor) -> Tensor:
        """Return all nodes of some frames, (…, k h w) rows of (…, k) frames from 0 to t - 1."""
        _, h, w = self.grid
        inside = torch.arange(h * w, device=frames.device)
        return (frames.unsqueeze(-1) * (h * w) + inside).flatten(-2)
