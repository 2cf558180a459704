"""Trained temporal networks as files that `torch.load(weights_only=True)` reads."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from actionspan import __version__
from actionspan.arrays import Int64
from actionspan.errors import InputError
from actionspan.files.torch_files import read_torch
from actionspan.temporal.mtn import build_model
from actionspan.temporal.networks import SHAPE, TemporalNetwork
from actionspan.temporal.settings import MODELS, ModelName, TemporalSettings

FORMAT = "actionspan temporal 1"


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


def load_model(source: Path | str | Mapping[str, Any]) -> TemporalNetwork:
    """Build the network of a model.pt, or of what it holds, ready to predict.

    Raises:
        InputError: The file is missing, or not a model of this version of the format.
    """
    content = source if isinstance(source, Mapping) else read_torch(Path(source))
    where = "temporal model" if isinstance(source, Mapping) else source
    if not isinstance(content, Mapping) or content.get("format") != FORMAT:
        raise InputError(f"{where}: not a model of 'actionspan temporal train' ({FORMAT!r})")
    if content["model"] not in MODELS:
        raise InputError(f"{where}: model {content['model']!r}: one of {', '.join(MODELS)}")
    # of the settings only the network's shape: those of training have changed between versions
    known = (*SHAPE, "fusion_weight", "members", "look_ahead")
    shape = {name: content["settings"][name] for name in known if name in content["settings"]}
    network = build_model(content["model"], content["channels"], TemporalSettings(**shape))
    try:
        network.load_state_dict(content["state_dict"])
    except RuntimeError:
        raise InputError(
            f"{where}: its weights are not those of {content['model']} in this version; "
            "train it again"
        ) from None
    return network.eval()
