"""A complete trained model in one file: settings, feature transform, networks, classifier."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import torch
from torch import Tensor

from actionspan import __version__
from actionspan.errors import InputError
from actionspan.features.extraction import flow_weights
from actionspan.features.settings import EncoderSettings
from actionspan.features.store import read_settings, read_transform
from actionspan.features.transform import Transform
from actionspan.files.torch_files import read_torch, write_torch
from actionspan.proposals.bundle_path import bundle_path
from actionspan.proposals.density_training import FORMAT as DENSITY
from actionspan.proposals.density_training import load_density
from actionspan.proposals.evaluator import (
    ProposalEvaluator,
    evaluator_from_state,
    evaluator_state,
    load_evaluator,
)
from actionspan.proposals.intensity import DensityModel, density_from_state, density_state
from actionspan.proposals.segment_classifier import (
    SegmentClassifier,
    classifier_from_state,
    classifier_state,
    load_classifier,
)
from actionspan.proposals.settings import (
    CandidateSettings,
    EventSettings,
    OnlineSettings,
    RankingSettings,
    SelectionSettings,
    SuppressionSettings,
)
from actionspan.settings import Checked, from_mapping, to_json
from actionspan.temporal.model_file import load_model
from actionspan.temporal.networks import TemporalNetwork
from actionspan.video.settings import FlowSettings, FrameSettings

FORMAT = "actionspan model 1"
# Sections that older files lack, with what was done before there were any.
_LATER: dict[str, Any] = {
    "ranking": {"boundary_power": 1.0},
    **{
        name: dataclasses.asdict(kind())
        for name, kind in {
            "candidates": CandidateSettings,
            "suppression": SuppressionSettings,
            "selection": SelectionSettings,
            "events": EventSettings,
            "online": OnlineSettings,
        }.items()
    },
}


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """Everything that turns a new video into proposals."""

    frames: FrameSettings
    flow: FlowSettings
    encoders: EncoderSettings
    weights: Mapping[str, Mapping[str, Tensor]] = field(default_factory=dict)
    """Parameters of encoders that a run trained, by stream; other encoders have public weights."""
    candidates: CandidateSettings
    ranking: RankingSettings
    suppression: SuppressionSettings
    selection: SelectionSettings
    events: EventSettings
    online: OnlineSettings
    transform: Transform
    temporal: TemporalNetwork
    evaluator: ProposalEvaluator | None
    """None: a density scores the segments of a lattice."""
    density: DensityModel | None
    classifier: SegmentClassifier | None
    """None: proposals get no labels."""
    classified: Transform
    """That of the features which the classifier sees."""


_SECTIONS = {
    name: kind
    for name, kind in get_type_hints(Bundle).items()
    if isinstance(kind, type) and issubclass(kind, Checked)
}  # of the configuration


def write_bundle(
    features: Path,
    temporal: Path,
    scorer: Path,
    out: Path,
    *,
    classifier: Path | None = None,
    classified: Path | None = None,
    **sections: Checked,
) -> None:
    """Collect one trained model of a run.

    Args:
        features: What the network learned from, features.h5 or sequences.h5; it gives the transform
            and the settings of frames, flow and encoders.
        temporal: The network's model.pt.
        scorer: pem.pt or density.pt.
        out: The file to write.
        classifier: classifier.pt; without one, proposals get no labels.
        classified: features.h5, which the classifier sees; None: `features`.
        **sections: Settings of proposals.

    Raises:
        InputError: The features were made elsewhere, or a file cannot be read.
    """
    earlier = read_settings(features)
    if "encoders" not in earlier:
        raise InputError(
            f"{features}: no settings of encoders: a model of features made elsewhere cannot take "
            "videos, so it has no bundle"
        )
    content = {
        "format": FORMAT,
        "actionspan_version": __version__,
        "settings": to_json(json.dumps(earlier), **sections),
        "transform": _tensors(features),
        "temporal": read_torch(temporal),
        "weights": _trained_weights(from_mapping(EncoderSettings, earlier["encoders"])),
    }
    if read_torch(scorer).get("format") == DENSITY:
        content["density"] = density_state(load_density(scorer))
    else:
        content["evaluator"] = evaluator_state(load_evaluator(scorer))
    if classifier is not None:
        content["classifier"] = classifier_state(load_classifier(classifier))
        if classified not in (None, features):
            content["classified"] = _tensors(classified)
    _settings(content, out)
    write_torch(out, content)


def write_learned(bundle: Path, network: TemporalNetwork, out: Path) -> None:
    """Write a bundle's file with the weights that its network has now."""
    content = read_torch(bundle)
    temporal = {**content["temporal"], "state_dict": network.state_dict()}
    write_torch(out, {**content, "temporal": temporal})


def load_bundle(path: Path) -> Bundle:
    """Read a file that `write_bundle` wrote, or `model.pt` in a folder.

    Raises:
        InputError: There is no such file or it is not one of these.
    """
    path = bundle_path(path)
    content = read_torch(path)
    if not isinstance(content, Mapping) or content.get("format") != FORMAT:
        raise InputError(
            f"{path}: not a complete model ({FORMAT!r}); give results/proposals/MODEL/model.pt"
        )
    state, evaluator, density = (content.get(key) for key in ("classifier", "evaluator", "density"))
    transform, classified = (
        Transform.from_arrays({name: values.numpy() for name, values in tensors.items()})
        for tensors in (content["transform"], content.get("classified", content["transform"]))
    )
    settings = _settings(content, path)
    if settings["encoders"].runtime == "openvino":  # which this machine may not have
        settings["encoders"] = dataclasses.replace(settings["encoders"], runtime="auto")
    return Bundle(
        **settings,
        weights=content.get("weights", {}),
        transform=transform,
        temporal=load_model(content["temporal"]),
        evaluator=None if evaluator is None else evaluator_from_state(evaluator),
        density=None if density is None else density_from_state(density),
        classifier=None if state is None else classifier_from_state(state),
        classified=classified,
    )


def _trained_weights(encoders: EncoderSettings) -> dict[str, dict[str, Tensor]]:
    """Return the parameters of each stream's encoder that a run trained itself.

    Its file is one among the results of a run: another folder has none, or one with other weights.
    """
    found = {}
    for stream, path in (("rgb", encoders.rgb_weights), ("flow", flow_weights(encoders))):
        if path is not None and path.suffix == ".pt" and path.is_file():
            content = read_torch(path)
            made_here = isinstance(content, Mapping) and "actionspan_version" in content
            if made_here and content.get("stream") == stream:
                found[stream] = dict(content["state_dict"])
    return found


def _tensors(features: Path) -> dict[str, torch.Tensor]:
    """Return the transform of a file of features."""
    arrays = read_transform(features).to_arrays()
    return {name: torch.from_numpy(np.array(values)) for name, values in arrays.items()}


def _settings(content: Mapping[str, Any], path: Path) -> dict[str, Any]:
    given = _LATER | json.loads(content["settings"])
    try:
        return {name: from_mapping(kind, given[name]) for name, kind in _SECTIONS.items()}
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: settings: {error}") from None
