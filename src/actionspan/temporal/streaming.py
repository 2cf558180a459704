"""A temporal network on rows that come one by one, as far as it looks ahead."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from actionspan.arrays import Float32
from actionspan.temporal.labels import KINDS
from actionspan.temporal.networks import TemporalNetwork
from actionspan.temporal.prediction import predict_probabilities


class NetworkStream:
    """The probabilities of a network for each row, `look_ahead` rows later.

    It sees the last rows that a probability depends on, and no more: equal to the network on all
    rows together, up to rounding.

    Args:
        network: One that states how far it looks.

    Raises:
        ValueError: The network may look at all of a video.
    """

    def __init__(self, network: TemporalNetwork) -> None:
        if network.look_ahead is None or network.look_back is None:
            raise ValueError("a network that looks at the whole video")
        self.network = network
        self._back, self._ahead = network.look_back, network.look_ahead
        self._rows = np.zeros((0, network.channels), np.float32)
        self._waiting = 0  # rows at the end that have no probabilities yet

    def add(self, row: Float32) -> Float32:
        """Return the probabilities (N, 3) that a row (C,) completes, none or one."""
        kept = self._back + 1 + self._ahead
        self._rows = np.concatenate([self._rows, row[None]])[-kept:]
        self._waiting += 1
        return self._complete(self._waiting - self._ahead)

    def finish(self) -> Float32:
        """Return the probabilities (N, 3) of the last rows: no other follows."""
        return self._complete(self._waiting)

    def _complete(self, count: int) -> Float32:
        """Return the probabilities of the first `count` of the rows that wait."""
        if count <= 0:
            return np.zeros((0, KINDS), np.float32)
        found = predict_probabilities(self.network, self._rows)
        first = len(found) - self._waiting
        self._waiting -= count
        return found[first : first + count]

    def state_dict(self) -> dict[str, Any]:
        """Return what another of the same network goes on with."""
        return {"rows": self._rows.copy(), "waiting": self._waiting}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the state was taken."""
        self._rows, self._waiting = state["rows"].copy(), state["waiting"]
