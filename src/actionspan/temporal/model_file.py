"""Trained temporal networks as files that `torch.load(weights_only=True)` reads."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from actionspan import __version__
from actionspan.arrays import Int64
from actionspan.errors import InputError
from actionspan.files.torch_files import Part, read_model
from actionspan.temporal.mtn import build_model
from actionspan.temporal.networks import SHAPE, TemporalNetwork
from actionspan.temporal.settings import MODELS, ModelName, TemporalSettings

FORMAT = "actionspan temporal 1"
MOST_CHANNELS = 1 << 20  # of the features of a step


def model_content(
    name: ModelName,
    channels: int,
    settings: TemporalSettings,
    weights: Mapping[str, Tensor],
    training_digest: str,
    parts: Mapping[str, Int64] | None = None,
) -> dict[str, Any]:
    """Return what model.pt holds: everything needed to build the network again.

    `parts` says which part each step (T,) of each training video was in, if they were divided.
    """
    return {
        "format": FORMAT,
        "actionspan_version": __version__,
        "model": name,
        "channels": channels,
        "settings": dataclasses.asdict(settings),
        "state_dict": dict(weights),
        "digest": training_digest,
        "parts": {name: torch.from_numpy(each) for name, each in (parts or {}).items()},
    }


def load_model(source: Path | str | Mapping[str, Any] | Part) -> TemporalNetwork:
    """Build the network of a model.pt, or of what it holds, ready to predict.

    Raises:
        InputError: The file is missing, or not a model of this version of the format.
    """
    part = source if isinstance(source, Part) else _part(source)
    if "format" not in part or part["format"].value != FORMAT:
        raise InputError(f"{part.name}: not a model of 'actionspan temporal train' ({FORMAT!r})")
    name = cast(ModelName, part["model"].text(MODELS))
    channels = part["channels"].whole(1, MOST_CHANNELS)
    # of the settings only the network's shape: those of training have changed between versions
    known = (*SHAPE, "fusion_weight", "members", "look_ahead")
    settings = part["settings"].settings(TemporalSettings, known)
    if name == "stream" and channels % 2 == 0:
        part["channels"].refuse("an odd number for a network of streams")
    return part["state_dict"].network(lambda: build_model(name, channels, settings), name)


def model_digest(path: Path) -> tuple[str, dict[str, Int64]]:
    """Return the digest of a model.pt, and the parts (T,) of each training video it learned.

    Raises:
        InputError: The file is missing, or not a model of this version of the format.
    """
    part = _part(path)
    parts = part["parts"].entries() if "parts" in part else {}
    kind = torch.int64
    return part["digest"].text(), {k: v.tensor(None, kind=kind).numpy() for k, v in parts.items()}


def _part(source: Path | str | Mapping[str, Any]) -> Part:
    if isinstance(source, Mapping):
        return Part(source, "temporal model")
    return read_model(Path(source))
