"""RAFT-small (Teed and Deng 2020) through torchvision, with the authors' checkpoints or its own."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torchvision.models.optical_flow import raft_small

from actionspan.errors import InputError

MULTIPLE = 8  # the network works on a grid of every 8th pixel
SMALLEST = 128  # pixels a side: its coarsest correlation must be 2 cells or more

# Names in the authors' checkpoint → names in torchvision, in this order.
RENAMINGS = (
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
    for pattern, replacement in RENAMINGS:
        name = re.sub(pattern, replacement, name)
    return name


def load_raft(weights: Path) -> torch.nn.Module:
    """Build RAFT-small from a checkpoint with the authors' names or torchvision's.

    Raises:
        InputError: The file is missing, unsafe to load, or not a checkpoint of RAFT-small.
    """
    wanted = "give a checkpoint of RAFT-small"
    try:
        content: Any = torch.load(weights, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InputError(f"weights: {weights}: no such file; {wanted}") from None
    except Exception as error:  # torch.load raises whatever its unpickler met
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"weights: {weights}: cannot be read: {reason}; {wanted}") from None
    if not isinstance(content, dict) or not all(isinstance(v, Tensor) for v in content.values()):
        raise InputError(f"weights: {weights}: not a table of parameters; {wanted}")
    state = {torchvision_name(name): value for name, value in content.items()}
    network: torch.nn.Module = raft_small(weights=None, progress=False)
    for name, value in network.state_dict().items():
        if name not in state:
            raise InputError(f"weights: {weights}: lacks {name}; {wanted}")
        if state[name].shape != value.shape:
            shape, right = tuple(state[name].shape), tuple(value.shape)
            raise InputError(f"weights: {weights}: {name} is {shape}, not {right}; {wanted}")
    for name in state:
        if name not in network.state_dict():
            raise InputError(f"weights: {weights}: has {name}, which RAFT-small lacks; {wanted}")
    network.load_state_dict(state)
    return network.eval()


class Raft:
    """Flow between consecutive grey frames; the L pairs of a snippet are one batch."""

    def __init__(self, weights: Path, iterations: int, device: str) -> None:
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        if device == "cuda" and not torch.cuda.is_available():
            raise InputError("device: cuda, but torch finds none here; use auto or cpu")
        self.device = torch.device(device)
        self.iterations = iterations
        self.network = load_raft(weights).to(self.device)

    @torch.inference_mode()
    def __call__(self, gray: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return the flow in pixels.

        Args:
            gray: (L + 1, h, w).

        Returns:
            (L, h, w, 2) x and y.
        """
        height, width = gray.shape[1:]
        frames = torch.from_numpy(gray).to(self.device, torch.float32)[:, None]  # (L + 1, 1, h, w)
        bottom, right = (
            max(SMALLEST, -(-side // MULTIPLE) * MULTIPLE) - side for side in (height, width)
        )
        padding = (right // 2, right - right // 2, bottom // 2, bottom - bottom // 2)
        frames = torch.nn.functional.pad(frames, padding, mode="replicate")
        frames = (frames / 127.5 - 1).expand(-1, 3, -1, -1)
        flows = self.network(frames[:-1], frames[1:], num_flow_updates=self.iterations)
        flow = flows[-1][..., padding[2] :, padding[0] :][..., :height, :width]  # (L, 2, h, w)
        return np.ascontiguousarray(flow.permute(0, 2, 3, 1).cpu().numpy())
