"""The base class of temporal networks, and the register that finds a network by its name."""

from collections.abc import Callable
from typing import Any, TypeVar

from torch import nn

from actionspan.temporal.settings import ModelName, TemporalSettings

SHAPE = ("hidden", "output_scale", "dropout")  # the settings that every network takes


class TemporalNetwork(nn.Module):
    """Takes features (B, T, C) and returns probabilities (B, T, 3) of start, action and end."""

    channels: int


Network = TypeVar("Network", bound=type[TemporalNetwork])
NETWORKS: dict[ModelName, Callable[[int, TemporalSettings], TemporalNetwork]] = {}


def network(name: ModelName, *more: str, **fixed: Any) -> Callable[[Network], Network]:
    """Register the class below; it takes the settings `SHAPE` and `more`, and always `fixed`."""

    def register(kind: Network) -> Network:
        def build(channels: int, settings: TemporalSettings) -> TemporalNetwork:
            given = {key: getattr(settings, key) for key in (*SHAPE, *more)}
            return kind(channels, **given, **fixed)

        NETWORKS[name] = build
        return kind

    return register
