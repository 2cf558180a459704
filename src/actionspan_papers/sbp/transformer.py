"""Transformers whose lower layers keep the backward paths of some nodes only (SBP).

A graph model has no encoder apart from a head: every layer mixes the nodes. So each layer but the
top ones drops backward paths itself (paper 004, section 3.2.2). The forward pass is that of a plain
transformer up to rounding: kept and dropped nodes go through the same products in two batches.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from actionspan_papers.sbp.node_rows import (
    NodeRows,
    check_nested,
    checked_rows,
    divide_nodes,
    keep_gradient,
    put_together,
    take,
)

Form = Literal["masked", "shortcut"]
"""What the shortcut of a dropped node does in backward.

`masked`: the gradient of dropped nodes is zero after each layer, that of the shortcut and of keys
and values included (the paper). `shortcut`: dropped nodes keep the gradient of the shortcut, and
what arrives through keys and values (In-depth Study of SBP, the follow-up).
"""


class TransformerLayer(nn.Module):
    """A pre-norm layer: attention, then two dense layers on each node; each adds to its input.

    It has no dropout: what is kept and what is dropped are drawn outside, by row.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        form: Form = "masked",
        fused: bool = True,
        hidden: int | None = None,
    ) -> None:
        """Make a layer.

        Args:
            width: D, of a node.
            heads: Of attention; divides the width.
            form: What the shortcut of dropped nodes does in backward.
            fused: Use `scaled_dot_product_attention`, which saves no (N, N) matrix.
            hidden: Units between the dense layers; by default 4 D.

        Raises:
            ValueError: An argument is not allowed.
        """
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width}: must be a multiple of the {heads} heads")
        if form not in get_args(Form):
            raise ValueError(f"form {form!r}: one of {', '.join(get_args(Form))}")
        self.heads, self.form, self.fused = heads, form, fused
        self.norm1 = nn.LayerNorm(width)
        # three layers, not one: of the queries only the kept ones are saved, and a slice of one
        # tensor would hold it all
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.merge = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.dense1 = nn.Linear(width, hidden or 4 * width)
        self.dense2 = nn.Linear(hidden or 4 * width, width)

    def forward(self, nodes: Tensor, rows: NodeRows | None = None) -> Tensor:
        """Return the (B, N, D) nodes of (B, N, D) ones.

        Args:
            nodes: (B, N, D).
            rows: Which ones keep their backward path; by default all.
        """
        if rows is None:
            seen = self.norm1(nodes)  # (B, N, D)
            return self._after(nodes, self.query(seen), self.key(seen), self.value(seen))
        masked = self.form == "masked"
        if masked:
            nodes = keep_gradient(nodes, rows.kept)
        seen = self.norm1(nodes)  # (B, N, D)
        query, key, value = self.query(seen), self.key(seen), self.value(seen)
        kept = self._after(take(nodes, rows.kept), take(query, rows.kept), key, value)  # (B, k, D)
        with torch.no_grad():
            before = take(nodes, rows.dropped)  # (B, N - k, D)
            dropped = self._after(before, take(query, rows.dropped), key, value)
        if not masked:  # the same values, with the gradient of the shortcut
            dropped = take(nodes, rows.dropped) + (dropped - before)
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
        self,
        width: int,
        heads: int,
        layers: int,
        *,
        top: int = 4,
        form: Form = "masked",
        fused: bool = True,
        checkpointed: bool = False,
        hidden: int | None = None,
    ) -> None:
        """Make the layers.

        Args:
            width: D, of a node.
            heads: Of attention; divides the width.
            layers: How many.
            top: How many of them, from the top, always keep all backward paths. The paper says 3,
                and has 4 of Swin-T's 12 and 6 of Swin-B's 24.
            form: As for `TransformerLayer`.
            fused: As for `TransformerLayer`.
            checkpointed: Save the input of each layer alone, and run the layer again in backward.
            hidden: As for `TransformerLayer`.

        Raises:
            ValueError: An argument is not allowed.
        """
        super().__init__()
        if not 0 <= top <= layers:
            raise ValueError(f"top {top}: from 0 to the {layers} layers")
        self.top, self.checkpointed = top, checkpointed
        self.layers = nn.ModuleList(
            TransformerLayer(width, heads, form=form, fused=fused, hidden=hidden)
            for _ in range(layers)
        )

    @property
    def sampled(self) -> int:
        """How many layers, from the bottom, may drop backward paths."""
        return len(self.layers) - self.top

    def forward(self, nodes: Tensor, kept: Tensor | Sequence[Tensor] | None = None) -> Tensor:
        """Return the (B, N, D) nodes of (B, N, D) ones.

        Args:
            nodes: (B, N, D).
            kept: (k,) or (B, k) rows whose backward path is kept in the lower layers; or one such
                tensor for each of them, bottom first, as `layer_rows` draws. By default all.

        Raises:
            ValueError: There are not as many tensors as lower layers, rows are not what
                `checked_rows` allows, or those of a layer are not among those of the next.
        """
        for layer, rows in zip(self.layers, self._rows(kept, nodes), strict=True):
            if self.checkpointed and torch.is_grad_enabled():
                nodes = checkpoint(layer, nodes, rows, use_reentrant=False)
            else:
                nodes = layer(nodes, rows)
        return nodes

    def _rows(self, kept: Tensor | Sequence[Tensor] | None, nodes: Tensor) -> list[NodeRows | None]:
        """Return the rows of every layer, on the device of the nodes."""
        size, count = nodes.shape[:2]
        if kept is None:
            return [None] * len(self.layers)
        many = [kept] * self.sampled if isinstance(kept, Tensor) else list(kept)
        if len(many) != self.sampled:
            raise ValueError(f"rows of {len(many)} layers: one for each of {self.sampled}")
        divided: dict[int, NodeRows | None] = {}  # the same rows are divided once
        for rows in many:
            if id(rows) in divided:
                continue
            checked_rows(rows, count)
            if rows.dim() == 2 and len(rows) != size:
                raise ValueError(f"rows of nodes of {len(rows)} examples: there are {size}")
            whole = rows.shape[-1] == count
            divided[id(rows)] = None if whole else divide_nodes(rows.to(nodes.device), count)
        for below, above in pairwise(many):
            if below is not above and below.dim() == above.dim() and not below.is_meta:
                check_nested(below, above)
        return [divided[id(rows)] for rows in many] + [None] * self.top
