"""The base class of temporal networks, the register that finds them by name, and their files."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from actionspan import __version__
from actionspan.arrays import Int64
from actionspan.errors import InputError
from actionspan.plugins import load, plugins
from actionspan.storage.model_files import Part, read_model
from actionspan.temporal.network import TemporalNetwork
from actionspan.temporal.settings import MODELS, ModelName, TemporalSettings

_SHAPE = ("hidden", "output_scale", "dropout")  # the settings that every network takes


def network_class(name: ModelName) -> type[TemporalNetwork]:
    """Return the class of a network of `MODELS`; raise InputError for a plug-in that is none."""
    if name in plugins("networks"):
        added = load("networks", name)
        if not (isinstance(added, type) and issubclass(added, TemporalNetwork)):
            raise InputError(f"plug-ins: actionspan.networks: {name}: not a TemporalNetwork")
        return added
    from actionspan.temporal import mtn, span  # which import this module

    modules = {"mtn": mtn, "span": span}
    kind: type[TemporalNetwork] = getattr(modules[MODELS[name].module], MODELS[name].kind)
    return kind


def build_model(name: ModelName, channels: int, settings: TemporalSettings) -> TemporalNetwork:
    """Build the network of a name for features (B, T, channels)."""
    listed = MODELS[name]
    given = {key: getattr(settings, key) for key in (*_SHAPE, *listed.takes)}
    return network_class(name)(channels, **given, **listed.fixed)


FORMAT = "actionspan temporal 1"
_MOST_CHANNELS = 1 << 20  # of the features of a step


def model_content(
    name: ModelName,
    channels: int,
    settings: TemporalSettings,
    weights: Mapping[str, Tensor],
    training_digest: str,
    parts: Mapping[str, Int64] | None = None,
) -> dict[str, Any]:
    """Return the content of model.safetensors: everything needed to build the network again.

    `parts` has the part of each step (T,) of each training video, if they were divided.
    """
    return {
        "format": FORMAT,
        "actionspan_version": __version__,
        "model": name,
        "channels": channels,
        "settings": asdict(settings),
        "state_dict": dict(weights),
        "digest": training_digest,
        "parts": {name: torch.from_numpy(each) for name, each in (parts or {}).items()},
    }


def load_model(source: Path | str | Mapping[str, Any] | Part) -> TemporalNetwork:
    """Build the network of a model.safetensors, or of its content, ready to predict.

    Raises:
        InputError: The file is missing, or not a model of this version of the format.
    """
    if isinstance(source, Mapping):
        source = Part(source, "temporal model")
    part = source if isinstance(source, Part) else read_model(Path(source))
    if "format" not in part or part["format"].value != FORMAT:
        raise InputError(f"{part.name}: not a model of 'actionspan temporal train' ({FORMAT!r})")
    name = part["model"].text(tuple(MODELS))
    channels = part["channels"].whole(1, _MOST_CHANNELS)
    # of the settings only the network's shape: settings of training have changed between versions
    known = (*_SHAPE, "fusion_weight", "members", "look_ahead")
    settings = part["settings"].settings(TemporalSettings, known)
    if name == "stream" and channels % 2 == 0:
        part["channels"].refuse("an odd number for a network of streams")
    return part["state_dict"].network(lambda: build_model(name, channels, settings), name)


def model_digest(model: Part) -> tuple[str, dict[str, Int64]]:
    """Return the digest of a model file, and the parts (T,) of each training video it learned."""
    parts = model["parts"].entries() if "parts" in model else {}
    learned = {key: each.tensor(None, kind=torch.int64).numpy() for key, each in parts.items()}
    return model["digest"].text(), learned
