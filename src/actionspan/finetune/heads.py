"""Causal heads: scores of each snippet of a video from the features up to it alone.

A head goes over a video in blocks of `BLOCK` rows, the last filled up with zeros, and hands its
memory from block to block. A row lies at the same place of the same block however long the
video is, and no row is ever mixed with a later one, not even with weight 0. So the score of a
snippet is the same to the bit whatever comes after it, and whether anything does.
"""

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from actionspan.finetune.settings import HEADS, HeadName

BLOCK = 16  # rows; matrix products of one shape round alike, of other shapes they need not
_ATTENTION_HEADS = 4
_SPEEDS = (2, 8)  # windows after which a running mean has forgotten 1 - 1/e of the past


class CausalHead(nn.Module, ABC):
    """Takes the features (T, C) of one video, returns logits (T, K)."""

    def __init__(self, channels: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.channels = channels
        self.dense = nn.Linear(hidden, outputs)

    def forward(self, features: Tensor) -> Tensor:
        """Return the logits (T, K) of features (T, C); row t depends on rows 0 … t alone.

        Raises:
            ValueError: The features have another shape, or no row.
        """
        if features.ndim != 2 or features.shape[1] != self.channels or not len(features):
            shape = tuple(features.shape)
            wanted = f"(T, {self.channels}) with at least 1 row"
            raise ValueError(f"features have the shape {shape}; it must be {wanted}")
        state, found = self.first(features), []
        empty = features.new_zeros(-len(features) % BLOCK, self.channels)
        for rows in torch.split(torch.cat([features, empty]), BLOCK):  # (BLOCK, C)
            seen, state = self.block(rows, state)
            found.append(self.dense(seen))  # (BLOCK, K)
        return torch.cat(found)[: len(features)]

    @abstractmethod
    def first(self, features: Tensor) -> Any:
        """Return the memory before the first row, with the type and device of the features."""

    @abstractmethod
    def block(self, rows: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Return the output (BLOCK, H) of rows (BLOCK, C) and their past, and the new memory."""


class _RecurrentHead(CausalHead):
    """GRU → Dense(K): TRN (Xu et al., 2019) without the decoder that looks ahead."""

    def __init__(self, channels: int, outputs: int, hidden: int) -> None:
        super().__init__(channels, hidden, outputs)
        self.gru = nn.GRU(channels, hidden)

    def first(self, features: Tensor) -> Tensor:
        """Return the GRU's first state (1, H)."""
        return features.new_zeros(1, self.gru.hidden_size)

    def block(self, rows: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the states (BLOCK, H) after each row, and the last (1, H)."""
        states, last = self.gru(rows, state)
        return states, last


class _AttentionHead(CausalHead):
    """Attention of each row to a window of its past and to running means of older rows.

    As LSTR (Xu et al., 2021): a short memory in full, a long one compressed, here to one mean a
    speed. Each head adds a learned number to the score of each distance.
    """

    def __init__(self, channels: int, outputs: int, hidden: int, window: int = 32) -> None:
        if hidden % _ATTENTION_HEADS:
            raise ValueError(f"hidden is {hidden}; it must be a multiple of {_ATTENTION_HEADS}")
        if window < 1:
            raise ValueError(f"window is {window}; it must be at least 1 row")
        super().__init__(channels, hidden, outputs)
        self.window = window
        self.project = nn.Linear(channels, hidden)
        self.norm1 = nn.LayerNorm(hidden)
        self.attend = nn.Linear(hidden, 3 * hidden)
        self.distance = nn.Parameter(torch.zeros(_ATTENTION_HEADS, window + len(_SPEEDS)))
        self.merge = nn.Linear(hidden, hidden)
        self.norm2 = nn.LayerNorm(hidden)
        self.dense1 = nn.Linear(hidden, 2 * hidden)
        self.dense2 = nn.Linear(2 * hidden, hidden)
        self.norm = nn.LayerNorm(hidden)

    def first(self, features: Tensor) -> tuple[Tensor, Tensor, int]:
        """Return an empty window (W, 2H), empty means (S, 2H), and that no row has come."""
        width = 2 * self.dense.in_features
        window, means = (features.new_zeros(rows, width) for rows in (self.window, len(_SPEEDS)))
        return window, means, 0

    def block(
        self, rows: Tensor, state: tuple[Tensor, Tensor, int]
    ) -> tuple[Tensor, tuple[Tensor, Tensor, int]]:
        """Return (BLOCK, H), and the window, means and number of rows after the block."""
        window, means, before = state
        width = self.dense.in_features
        steps = self.project(rows)  # (B, H)
        queries, new = torch.split(self.attend(self.norm1(steps)), [width, 2 * width], dim=1)
        past = torch.cat([window, new])  # (W + B, 2H) keys and values, oldest first
        # each row's own window, and nothing else: a masked later row could still bring a NaN
        recent = past.unfold(0, self.window, 1)[1:].transpose(1, 2)  # (B, W, 2H)
        older = self._means(past[: len(rows)], means)  # (B, S, 2H) of rows that left the window
        keys, values = torch.cat([older, recent], dim=1).chunk(2, dim=2)  # (B, S + W, H) each
        weights = self._weights(queries, keys, before)  # (B, heads, 1, S + W)
        seen = (weights @ _by_head(values)).flatten(1)  # (B, H)
        steps = steps + self.merge(seen)
        steps = steps + self.dense2(self.dense1(self.norm2(steps)).relu())
        return self.norm(steps), (past[len(rows) :], older[-1], before + len(rows))

    def _means(self, leaving: Tensor, means: Tensor) -> Tensor:
        """Return the running means (B, S, 2H) after each row (B, 2H) that leaves the window."""
        share = leaving.new_tensor([[1 / (speed * self.window)] for speed in _SPEEDS])  # (S, 1)
        found = []
        for row in leaving:
            means = means + share * (row - means)
            found.append(means)
        return torch.stack(found)

    def _weights(self, queries: Tensor, keys: Tensor, before: int) -> Tensor:
        """Return the attention (B, heads, 1, S + W) of queries (B, H) to keys (B, S + W, H)."""
        rows = _by_head(queries[:, None])  # (B, heads, 1, H/heads)
        scores = rows @ _by_head(keys).transpose(2, 3) * rows.shape[3] ** -0.5
        scores = scores + self.distance[None, :, None]
        # rows before the video's first are not the past; means only count once a row has left
        known = torch.arange(1, len(queries) + 1, device=queries.device)[:, None] + before  # (B, 1)
        ages = torch.arange(self.window, 0, -1, device=queries.device)  # (W,)
        older = (known > self.window).expand(-1, len(_SPEEDS))
        there = torch.cat([older, known >= ages], dim=1)  # (B, S + W)
        weights: Tensor = scores.masked_fill(~there[:, None, None], -torch.inf).softmax(dim=3)
        return weights


def _by_head(rows: Tensor) -> Tensor:
    """Return (B, heads, N, H / heads) of (B, N, H)."""
    return rows.reshape(*rows.shape[:2], _ATTENTION_HEADS, -1).transpose(1, 2)


def build_head(
    name: HeadName, channels: int, outputs: int = 1, hidden: int = 128, **more: Any
) -> CausalHead:
    """Return a new head of K `outputs`: 1 for actionness, else the number of classes.

    `hidden` is a multiple of 4 for attention, which takes `window` too: the rows that it keeps in
    full, this one included.

    Raises:
        ValueError: The head is not known, or a size is not allowed.
    """
    if name not in HEADS:
        raise ValueError(f"head is {name!r}; it must be one of {', '.join(HEADS)}")
    if name == "recurrent":
        return _RecurrentHead(channels, outputs, hidden)
    return _AttentionHead(channels, outputs, hidden, **more)
