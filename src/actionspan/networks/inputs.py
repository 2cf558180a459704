"""8-bit pictures as the numbers a network takes."""

import torch
from torch import Tensor

from actionspan.networks.architecture import Architecture
from actionspan.networks.names import NO_MOTION


class Inputs:
    """Turns batches of bytes into batches of floats, as the weights of a network expect them.

    Flow codes become (code - 128) · gain / s, so that no motion is 0; s is the mean deviation of
    the three colours the weights were trained with (TSN treats flow as images in the same way).

    Args:
        network: The architecture.
        channels: 3 for RGB, or any other number of planes of flow.
        device: Where the network is.
        gain: Factor on the flow.
    """

    def __init__(
        self, network: Architecture, channels: int, device: torch.device, gain: float = 1.0
    ) -> None:
        mean: tuple[float, ...] = network.mean
        std: tuple[float, ...] = network.std
        if channels != 3:
            mean, std = (NO_MOTION,) * channels, (sum(std) / 3 / gain,) * channels
        self.bgr = network.bgr and channels == 3
        self.device = device
        self.mean = torch.tensor(mean, dtype=torch.float32, device=device)
        self.std = torch.tensor(std, dtype=torch.float32, device=device)

    def __call__(self, batch: Tensor) -> Tensor:
        """Convert (B, …, C) uint8, RGB or flow, to (B, C, …) float32 in channels-last memory."""
        if self.bgr:
            batch = batch.flip(-1)
        planes = batch.to(self.device).movedim(-1, 1)  # (B, C, …); bytes move faster than floats
        ones = [1] * (planes.ndim - 2)
        return (planes.float() - self.mean.view(-1, *ones)) / self.std.view(-1, *ones)
