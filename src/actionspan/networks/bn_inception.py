"""BN-Inception (Ioffe and Szegedy), the encoder of two-stream networks such as TSN."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional


class _Cell(NamedTuple):
    """Maps of one inception cell; 0 leaves a path out, as the two cells of stride 2 do."""

    maps_in: int
    one: int
    three_reduce: int
    three: int
    double_reduce: int
    double: int
    pool: str
    projection: int

    @property
    def stride(self) -> int:
        return 1 if self.one else 2


_CELLS = {
    "3a": _Cell(192, 64, 64, 64, 64, 96, "average", 32),
    "3b": _Cell(256, 64, 64, 96, 64, 96, "average", 64),
    "3c": _Cell(320, 0, 128, 160, 64, 96, "maximum", 0),
    "4a": _Cell(576, 224, 64, 96, 96, 128, "average", 128),
    "4b": _Cell(576, 192, 96, 128, 96, 128, "average", 128),
    "4c": _Cell(576, 160, 128, 160, 128, 160, "average", 128),
    "4d": _Cell(608, 96, 128, 192, 160, 192, "average", 128),
    "4e": _Cell(608, 0, 128, 192, 192, 256, "maximum", 0),
    "5a": _Cell(1056, 352, 192, 320, 160, 224, "average", 128),
    "5b": _Cell(1024, 352, 192, 320, 192, 224, "maximum", 128),
}


class BNInception(nn.Module):
    """(B, C, 224, 224) images to (B, classes) scores.

    Parameter names are as in the public checkpoints converted from Caffe
    (`conv1_7x7_s2.weight`, `inception_3a_double_3x3_1_bn.bias`, …, `last_linear.weight`).
    """

    features = 1024

    def __init__(self, channels: int = 3, classes: int = 1000) -> None:
        super().__init__()
        self._add("conv1_7x7_s2", channels, 64, 7, 2)
        self._add("conv2_3x3_reduce", 64, 64, 1)
        self._add("conv2_3x3", 64, 192, 3)
        for key, cell in _CELLS.items():
            name = f"inception_{key}"
            if cell.one:
                self._add(f"{name}_1x1", cell.maps_in, cell.one, 1)
            self._add(f"{name}_3x3_reduce", cell.maps_in, cell.three_reduce, 1)
            self._add(f"{name}_3x3", cell.three_reduce, cell.three, 3, cell.stride)
            self._add(f"{name}_double_3x3_reduce", cell.maps_in, cell.double_reduce, 1)
            self._add(f"{name}_double_3x3_1", cell.double_reduce, cell.double, 3)
            self._add(f"{name}_double_3x3_2", cell.double, cell.double, 3, cell.stride)
            if cell.projection:
                self._add(f"{name}_pool_proj", cell.maps_in, cell.projection, 1)
        self.last_linear: nn.Module = nn.Linear(self.features, classes)

    def _add(self, name: str, maps_in: int, maps: int, kernel: int, stride: int = 1) -> None:
        self.add_module(name, nn.Conv2d(maps_in, maps, kernel, stride, kernel // 2))
        self.add_module(f"{name}_bn", nn.BatchNorm2d(maps))

    def _unit(self, name: str, x: Tensor) -> Tensor:
        return functional.relu(self.get_submodule(f"{name}_bn")(self.get_submodule(name)(x)))

    def _cell(self, key: str, x: Tensor) -> Tensor:
        name, cell = f"inception_{key}", _CELLS[key]
        paths = [self._unit(f"{name}_1x1", x)] if cell.one else []
        paths.append(self._unit(f"{name}_3x3", self._unit(f"{name}_3x3_reduce", x)))
        double = self._unit(f"{name}_double_3x3_1", self._unit(f"{name}_double_3x3_reduce", x))
        paths.append(self._unit(f"{name}_double_3x3_2", double))
        if cell.pool == "average":
            pooled = functional.avg_pool2d(x, 3, 1, 1, ceil_mode=True, count_include_pad=True)
        else:
            padding = 1 if cell.stride == 1 else 0
            pooled = functional.max_pool2d(x, 3, cell.stride, padding, ceil_mode=True)
        paths.append(self._unit(f"{name}_pool_proj", pooled) if cell.projection else pooled)
        return torch.cat(paths, dim=1)

    def forward(self, images: Tensor) -> Tensor:
        """Return the class scores before softmax, (B, classes)."""
        x = self._unit("conv1_7x7_s2", images)  # (B, 64, 112, 112)
        x = functional.max_pool2d(x, 3, 2, ceil_mode=True)  # (B, 64, 56, 56)
        x = self._unit("conv2_3x3", self._unit("conv2_3x3_reduce", x))  # (B, 192, 56, 56)
        x = functional.max_pool2d(x, 3, 2, ceil_mode=True)  # (B, 192, 28, 28)
        for key in _CELLS:
            x = self._cell(key, x)  # (B, 576, 14, 14) after 3c, (B, 1056, 7, 7) after 4e
        scores: Tensor = self.last_linear(x.mean(dim=(2, 3)))
        return scores
