"""A bank of features: dropped rows are not run, but taken from an earlier step (TALLFormer)."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Generator, Tensor, nn

from actionspan.memory.estimator import Estimator
from actionspan.memory.frames import Frames, all_rows
from actionspan.memory.norms import refuse_batch_statistics
from actionspan.memory.split import split
from actionspan.memory.stochastic import needs_gradient, plain_features


class FeatureBank(nn.Module):
    """Features of kept rows with a graph, and of the others from the bank (TALLFormer, section 3).

    When a video is met for the first time all its rows are run. After that its dropped rows are not
    run at all, and their features are those of the step that last kept them: the forward pass is
    not that of full training. Without a gradient (`torch.no_grad`) all rows are run, and the bank
    is neither read nor written.
    """

    def __init__(self, encoder: nn.Module, estimator: Estimator, piece: int) -> None:
        super().__init__()
        self.encoder, self.estimator, self.piece = encoder, estimator, piece
        self._features: dict[str, Tensor] = {}

    def forward(
        self, frames: Frames, *, generator: Generator | None = None, key: str = ""
    ) -> Tensor:
        """Return the features (T, …) of the video `key`.

        Raises:
            ValueError: The bank has a video of this key and another length.
        """
        refuse_batch_statistics(self.encoder)
        count = len(all_rows(frames))
        if not needs_gradient(self.encoder, frames):
            return plain_features(self.encoder, frames, torch.arange(count), self.piece)
        stored = self._features.get(key)
        if stored is not None and len(stored) != count:
            raise ValueError(
                f"the video {key!r} has {count} rows, but the bank has {len(stored)} of this key"
            )

        def known(dropped: Tensor, kept: Tensor) -> Tensor:
            if stored is None:
                return plain_features(self.encoder, frames, dropped, self.piece)
            return stored[dropped].to(kept)  # under autocast the type may be another one

        features = split(self.encoder, frames, self.estimator, self.piece, generator, known=known)
        # A copy in any case: what is returned may be changed in place.
        host = "meta" if features.is_meta else "cpu"
        self._features[key] = features.detach().to(host, copy=True)
        return features

    def state(self) -> dict[str, Any]:
        """Return a copy of the bank, (T, …) features by key, on the host."""
        return {"features": _copied(self._features)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a copy of a state."""
        self._features = _copied(state["features"])


def _copied(features: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {key: each.clone() for key, each in features.items()}
