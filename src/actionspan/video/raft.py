"""RAFT-small (Teed and Deng 2020) through torchvision, with the authors' checkpoints or its own."""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torchvision.models.optical_flow import raft_small

from actionspan.arrays import Float32, UInt8
from actionspan.errors import InputError
from actionspan.networks.runtime import choose_device
from actionspan.networks.weights import fill, load_file

_MULTIPLE = 8  # the network works on a grid of every 8th pixel
_SMALLEST = 128  # pixels a side: its coarsest correlation must be 2 cells or more

# Names in the authors' checkpoint → names in torchvision, in this order.
_RENAMINGS = (
    (r"^module\.", ""),
    (r"^fnet\.", "feature_encoder."),
    (r"^cnet\.", "context_encoder."),
    (r"^(\w+_encoder)\.conv1\.", r"\1.convnormrelu.0."),
    (r"^(\w+_encoder)\.conv2\.", r"\1.conv."),
    (r"^(\w+_encoder\.layer\d\.\d)\.conv(\d)\.", r"\1.convnormrelu\2.0."),
    (r"^update_block\.encoder\.convc(\d)\.", r"update_block.motion_encoder.convcorr\1.0."),
    (r"^update_block\.encoder\.convf(\d)\.", r"update_block.motion_encoder.convflow\1.0."),
    (r"^update_block\.encoder\.conv\.", "update_block.motion_encoder.conv.0."),
    (r"^update_block\.gru\.", "update_block.recurrent_block.convgru1."),
)


def torchvision_name(name: str) -> str:
    """Return torchvision's name of a parameter of the authors' RAFT-small."""
    for pattern, replacement in _RENAMINGS:
        name = re.sub(pattern, replacement, name)
    return name


def load_raft(weights: Path | Mapping[str, torch.Tensor]) -> torch.nn.Module:
    """Build RAFT-small from a checkpoint with the authors' names or torchvision's.

    The content of the checkpoint may be given in its place.

    Raises:
        InputError: The file is missing, unsafe to load, or not a checkpoint of RAFT-small.
    """
    network: torch.nn.Module = raft_small(weights=None, progress=False)
    try:
        state = weights if isinstance(weights, Mapping) else load_file(weights, wrappers=())
        origin = "the model" if state is weights else str(weights)
        fill(network, {torchvision_name(name): v for name, v in state.items()}, origin)
    except InputError as error:
        raise InputError(f"weights: {error}; give a checkpoint of RAFT-small") from None
    return network.eval()


class Raft:
    """Flow between consecutive grey frames; the L pairs of a snippet are one batch."""

    def __init__(
        self, weights: Path | Mapping[str, torch.Tensor], iterations: int, device: str
    ) -> None:
        self.device = choose_device(device)
        self.iterations = iterations
        self.network = load_raft(weights).to(self.device)

    @torch.inference_mode()
    def __call__(self, gray: UInt8) -> Float32:
        """Return the flow of frames (L + 1, h, w) in pixels, x and y: (L, h, w, 2)."""
        # Make the frames large enough, their sides multiples of 8, by repeating their borders.
        height, width = gray.shape[1:]
        frames = torch.from_numpy(gray).to(self.device, torch.float32)[:, None]  # (L + 1, 1, h, w)
        bottom, right = (
            max(_SMALLEST, -(-side // _MULTIPLE) * _MULTIPLE) - side for side in (height, width)
        )
        padding = (right // 2, right - right // 2, bottom // 2, bottom - bottom // 2)
        frames = torch.nn.functional.pad(frames, padding, mode="replicate")
        frames = (frames / 127.5 - 1).expand(-1, 3, -1, -1)  # −1 … 1, as if RGB
        flows = self.network(frames[:-1], frames[1:], num_flow_updates=self.iterations)
        flow = flows[-1][..., padding[2] :, padding[0] :][..., :height, :width]  # (L, 2, h, w)
        return np.ascontiguousarray(flow.permute(0, 2, 3, 1).cpu().numpy())
