"""Trained temporal networks as files that `torch.load(weights_only=True)` reads."""

import dataclasses
import io
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from actionspan import __version__
from actionspan.errors import InputError
from actionspan.storage import atomic_path
from actionspan.temporal.mtn import TemporalNetwork, build_model
from actionspan.temporal.settings import MODELS, ModelName, TemporalSettings

FORMAT = "actionspan temporal 1"


def write_torch(path: Path, content: Mapping[str, Any]) -> None:
    """Write `content` by `torch.save`, atomically; equal content gives equal bytes."""
    buffer = io.BytesIO()  # to a path, torch.save would put the name of the file into the file
    torch.save(content, buffer)
    with atomic_path(path) as partial:
        partial.write_bytes(buffer.getbuffer())


def read_torch(path: Path) -> Any:
    """Read what `write_torch` wrote, tensors and plain values only.

    Raises:
        InputError: The file is missing or is not such a file.
    """
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (pickle.UnpicklingError, RuntimeError, EOFError, OSError, ValueError):
        raise InputError(f"{path}: not a whole file of torch.save; delete it, run again") from None


def model_content(
    name: ModelName,
    channels: int,
    settings: TemporalSettings,
    weights: Mapping[str, Tensor],
    training_digest: str,
) -> dict[str, Any]:
    """Return what model.pt holds: everything needed to build the network again."""
    return {
        "format": FORMAT,
        "actionspan_version": __version__,
        "model": name,
        "channels": channels,
        "settings": dataclasses.asdict(settings),
        "state_dict": dict(weights),
        "digest": training_digest,
    }


def load_model(source: Path | str | Mapping[str, Any]) -> TemporalNetwork:
    """Build the network of a model.pt, ready to predict.

    Args:
        source: The file, or what it holds.

    Raises:
        InputError: The file is missing, or not a model of this version of the format.
    """
    if isinstance(source, Mapping):
        where, content = "temporal model", source
    else:
        where, content = str(source), read_torch(Path(source))
    if not isinstance(content, Mapping) or content.get("format") != FORMAT:
        raise InputError(f"{where}: not a model of 'actionspan temporal train' ({FORMAT!r})")
    if content["model"] not in MODELS:
        raise InputError(f"{where}: model {content['model']!r}: one of {', '.join(MODELS)}")
    settings = TemporalSettings(**content["settings"])
    network = build_model(content["model"], content["channels"], settings)
    network.load_state_dict(content["state_dict"])
    return network.eval()
