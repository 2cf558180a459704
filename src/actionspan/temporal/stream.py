"""The stream network: span's relative that can serve a video while it is recorded.

It has span's members, paths, loss and cross-fitting. What makes span look at the whole video is
replaced: the rows of causal.h5 already hold the difference to a running mean of the past, which the
second path sees, and the convolutions reach back as far as span's on both sides together but ahead
by `look_ahead` snippets only. So a probability depends on no snippet but those before and so many
behind it.
"""

from torch import Tensor

from actionspan.temporal.networks import network
from actionspan.temporal.span import DILATIONS, SpanNetwork


@network("stream", "members", "look_ahead")
class StreamNetwork(SpanNetwork):
    """Span, its convolutions moved back in time; each path sees a half of a row of causal.h5."""

    def __init__(
        self,
        channels: int,
        *,
        hidden: int = 512,
        output_scale: float = 1.0,
        dropout: float = 0.0,
        members: int = 3,
        look_ahead: int = 2,
    ) -> None:
        super().__init__(
            channels, hidden=hidden, output_scale=output_scale, dropout=dropout, members=members
        )
        self.reaches, left = [], look_ahead
        for step in DILATIONS:  # the first layers look ahead
            ahead = min(step, left)
            left -= ahead
            self.reaches.append((2 * step - ahead, ahead))
        self.look_back, self.look_ahead = (sum(side) for side in zip(*self.reaches, strict=True))

    def seen(self, channels: int) -> int:
        """Return how many features of a step each path sees: a half of them.

        Raises:
            ValueError: The features cannot be halved.
        """
        if channels % 2 == 0:
            raise ValueError(
                f"{channels} features a step: stream learns from causal.h5, which `features "
                "causal` makes"
            )
        return (channels - 1) // 2

    def views(self, values: Tensor, inside: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the two paths see: the halves of the features (B, C - 1, T)."""
        whole, centred = values.chunk(2, dim=1)
        return whole, centred
