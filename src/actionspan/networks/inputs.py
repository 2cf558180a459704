"""8-bit pictures as the numbers a network takes."""

import torch
from torch import Tensor

from actionspan.networks.architecture import Architecture, input_scale


class Inputs:
    """Turns batches of bytes into batches of floats, as the weights of a network expect them.

    Args:
        known: The network.
        channels: 3 of RGB, or any other number of planes of flow.
        device: Where the network is.
        gain: Factor on the flow.
    """

    def __init__(
        self, known: Architecture, channels: int, device: torch.device, gain: float = 1.0
    ) -> None:
        mean, std = input_scale(known, channels, gain)
        self.bgr = known.bgr and channels == 3
        self.device = device
        self.mean = torch.tensor(mean, dtype=torch.float32, device=device)
        self.std = torch.tensor(std, dtype=torch.float32, device=device)

    def __call__(self, batch: Tensor) -> Tensor:
        """Convert a batch.

        Args:
            batch: (B, …, C) uint8, RGB or planes of flow.

        Returns:
            (B, C, …) float32 in channels-last memory.
        """
        if self.bgr:
            batch = batch.flip(-1)
        return ((batch.to(self.device).float() - self.mean) / self.std).movedim(-1, 1)
