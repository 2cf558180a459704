"""Writing a complete trained model into one file, and changing such a file."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from actionspan import __version__
from actionspan.errors import InputError
from actionspan.features.settings import EncoderSettings
from actionspan.features.store import read_settings, read_transform
from actionspan.networks.architecture import architecture
from actionspan.networks.weights import load_state
from actionspan.proposals import evaluator as evaluators
from actionspan.proposals import segment_classifier as classifiers
from actionspan.proposals.density_training import load_density
from actionspan.proposals.intensity import density_state
from actionspan.proposals.model_bundle import FORMAT, named_weights, settings_of
from actionspan.proposals.selection import Calibration
from actionspan.settings import Checked, from_mapping, to_json
from actionspan.storage.model_files import Part, read_model, write_model
from actionspan.temporal.network import TemporalNetwork
from actionspan.temporal.networks import load_model


def write_bundle(
    features: Path,
    temporal: Path,
    scorer: Path,
    out: Path,
    *,
    classifier: Path | None = None,
    classified: Path | None = None,
    ranks: bool = False,
    **sections: Checked,
) -> None:
    """Collect one trained model of a run.

    Args:
        features: Its training features, features.h5 or sequences.h5; it gives the transform
            and the settings of frames, flow and encoders.
        temporal: The network's model.safetensors.
        scorer: pem.safetensors or density.safetensors.
        out: The file to write.
        classifier: classifier.safetensors; without one, proposals get no labels.
        classified: features.h5, which the classifier sees; None: `features`.
        ranks: Whether its events have ranks, as it is meant for other footage than it learned from.
        **sections: Settings of proposals.

    Raises:
        InputError: The features were made elsewhere, or a file cannot be read.
    """
    earlier = read_settings(features)
    if "encoders" not in earlier:
        line = "a model of features made elsewhere cannot take videos, so it has no bundle"
        raise InputError(f"{features}: no settings of encoders: {line}")
    learned = read_model(temporal).value
    load_model(learned)
    transform = _tensors(features)
    if "mover/mean" not in transform:
        # squares are still cut: they decide which snippets are still, as for its features
        earlier["encoders"] |= {"mover": False}
    encoders = from_mapping(EncoderSettings, earlier["encoders"])
    content = {
        "format": FORMAT,
        "actionspan_version": __version__,
        "settings": to_json(json.dumps(earlier), **sections),
        "transform": transform,
        # without the ids of the training videos
        "temporal": {key: value for key, value in learned.items() if key != "parts"},
        "weights": _read_weights(encoders),
        **({"ranks": True} if ranks else {}),
    }
    if "format" in read_model(scorer):  # an evaluator's file has none
        content["density"] = density_state(load_density(scorer))
    else:
        content["evaluator"] = evaluators.evaluator_state(evaluators.load_evaluator(scorer))
    if classifier is not None:
        loaded = classifiers.load_classifier(classifier)
        content["classifier"] = classifiers.classifier_state(loaded)
        if classified not in (None, features):
            content["classified"] = _tensors(classified)
    settings_of(Part(content, str(out)))
    write_model(out, content)


def write_learned(bundle: Path, network: TemporalNetwork, out: Path) -> None:
    """Write a bundle's file with the weights that its network has now."""
    content = read_model(bundle).value
    temporal = {**content["temporal"], "state_dict": network.state_dict()}
    write_model(out, {**content, "temporal": temporal})


def continue_from(path: Path, base: Path, own: float, weight: float) -> None:
    """Let a bundle's file continue from another, of a density, see `Base`.

    Its `per_bout` holds for both.

    Raises:
        InputError: One of them cannot be read.
    """
    content, before = read_model(path).value, read_model(base).value
    density = {**before["density"], "per_bout": content["density"]["per_bout"]}
    mixed = {**before, "density": density, "mixture": [own, weight]}
    write_model(path, {**content, "base": mixed})


def calibrate_bundle(path: Path, out: Path, calibration: Calibration, *, ranks: bool) -> None:
    """Write a bundle with other chances of events, or ranks instead."""
    content = read_model(path).value
    density = {**content["density"], "calibration": list(calibration)}
    write_model(out, {**content, "density": density, "ranks": ranks})


def _read_weights(encoders: EncoderSettings) -> dict[str, dict[str, Tensor]]:
    """Return the parameters of each network with weights other than its package's."""

    @cache  # streams may share a network: the file then holds its weights once
    def read(network: str, path: Path) -> dict[str, Tensor]:
        return load_state(network, path, architecture(network).last)

    named = named_weights(encoders)
    return {stream: read(*network) for stream, network in named.items()}


def _tensors(features: Path) -> dict[str, torch.Tensor]:
    """Return the transform of a file of features."""
    arrays = read_transform(features).to_arrays()
    return {name: torch.from_numpy(np.array(values)) for name, values in arrays.items()}
