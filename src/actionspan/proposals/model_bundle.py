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
from actionspan.errors import InputError, brief, naming
from actionspan.features.extraction import flow_weights
from actionspan.features.settings import EncoderSettings
from actionspan.features.store import read_settings, read_transform
from actionspan.features.transform import Transform, transform_from
from actionspan.files.torch_files import Part, read_model, read_torch, write_torch
from actionspan.networks.architecture import architecture
from actionspan.networks.names import PACKAGED
from actionspan.networks.weights import load_file, load_state
from actionspan.proposals.bundle import SECTIONS, bundle_path
from actionspan.proposals.density_training import load_density
from actionspan.proposals.evaluator import (
    ProposalEvaluator,
    evaluator_from_state,
    evaluator_state,
    load_evaluator,
    rank_candidates,
)
from actionspan.proposals.intensity import DensityModel, density_from_state, density_state
from actionspan.proposals.pgm import candidates_of
from actionspan.proposals.segment_classifier import (
    SegmentClassifier,
    classifier_from_state,
    classifier_state,
    load_classifier,
)
from actionspan.proposals.selection import Chosen, choose
from actionspan.proposals.settings import (
    CandidateSettings,
    EventSettings,
    OnlineSettings,
    RankingSettings,
    SelectionSettings,
    SuppressionSettings,
)
from actionspan.settings import Checked, from_mapping, to_json
from actionspan.temporal.networks import TemporalNetwork, load_model
from actionspan.temporal.probabilities import Prediction
from actionspan.video.optical_flow import hold_weights
from actionspan.video.settings import FlowSettings, FrameSettings

FORMAT = "actionspan model 1"
_UNREADABLE = f"not a complete model ({FORMAT!r}); give results/proposals/MODEL/model.pt"
# Sections that older files lack, with what was done before there were any.
_LATER: dict[str, Any] = {name: dataclasses.asdict(kind()) for name, kind in SECTIONS.items()} | {
    "ranking": {"boundary_power": 1.0}
}


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """Everything that turns a new video into proposals."""

    frames: FrameSettings
    flow: FlowSettings
    encoders: EncoderSettings
    weights: Mapping[str, Mapping[str, Tensor]] = field(default_factory=dict)
    """Parameters by stream of encoders whose weights are not those of their package."""
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

    @property
    def widths(self) -> dict[str, int]:
        """The length of the vectors of each stream that the model takes."""
        return _widths(self.transform)

    def choose(self, prediction: Prediction, duration_seconds: float) -> Chosen:
        """Return a video's proposals and events in seconds, best first."""
        if self.density is not None:
            settings = (self.density, self.selection, self.events)
            return choose(prediction.probabilities, duration_seconds, *settings)
        assert self.evaluator is not None
        candidates = candidates_of(prediction, self.candidates)
        kept = (self.evaluator, self.suppression, self.ranking)
        segments, scores = rank_candidates(candidates, duration_seconds, *kept)
        return Chosen(segments=segments, scores=scores)


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
    learned = read_torch(temporal)
    load_model(learned)
    encoders = from_mapping(EncoderSettings, earlier["encoders"])
    flow = from_mapping(FlowSettings, earlier["flow"])
    content = {
        "format": FORMAT,
        "actionspan_version": __version__,
        "settings": to_json(json.dumps(earlier), **sections),
        "transform": _tensors(features),
        # without the ids of the training videos
        "temporal": {key: value for key, value in learned.items() if key != "parts"},
        "weights": _read_weights(encoders, flow),
    }
    if "format" in read_model(scorer):  # an evaluator's file has none
        content["density"] = density_state(load_density(scorer))
    else:
        content["evaluator"] = evaluator_state(load_evaluator(scorer))
    if classifier is not None:
        content["classifier"] = classifier_state(load_classifier(classifier))
        if classified not in (None, features):
            content["classified"] = _tensors(classified)
    _settings(Part(content, str(out)))
    write_torch(out, content)


def write_learned(bundle: Path, network: TemporalNetwork, out: Path) -> None:
    """Write a bundle's file with the weights that its network has now."""
    content = read_torch(bundle)
    temporal = {**content["temporal"], "state_dict": network.state_dict()}
    write_torch(out, {**content, "temporal": temporal})


def load_bundle(path: Path) -> Bundle:
    """Read a file that `write_bundle` wrote, or `model.pt` in a folder.

    It may be a stranger's: each part is checked before it is built, and no path in it is opened.

    Raises:
        InputError: There is no such file or it is not one of these.
    """
    path = bundle_path(path)
    part = read_model(path, _UNREADABLE)
    if "format" not in part or part["format"].value != FORMAT:
        raise InputError(f"{path}: {_UNREADABLE}")
    settings = _settings(part)
    weights = {
        stream: each.tensors()
        for stream, each in (part["weights"].entries() if "weights" in part else {}).items()
    }
    named = _named_weights(settings["encoders"], settings["flow"])
    for stream, (_, name) in named.items():
        if stream not in weights:
            raise InputError(
                f"{path}: names weights {brief(str(name))} for {stream} that it does not hold; "
                "make it again with `actionspan proposals bundle` where they are"
            )
    if settings["encoders"].runtime == "openvino":  # which this machine may not have
        settings["encoders"] = dataclasses.replace(settings["encoders"], runtime="auto")
    if "raft" in named:
        # under a name of its own: the file it was trained with may be another here
        name = Path(f"raft of {path.absolute()}")
        settings["flow"] = dataclasses.replace(settings["flow"], weights=name)
        with naming(path):
            hold_weights(settings["flow"], weights["raft"])
    transform = transform_from(part["transform"])
    classified = transform_from(part["classified"]) if "classified" in part else transform
    scorers = [name in part for name in ("evaluator", "density")]
    if sum(scorers) != 1:
        raise InputError(f"{path}: want either an evaluator or a density")
    bundle = Bundle(
        **settings,
        weights=weights,
        transform=transform,
        temporal=load_model(part["temporal"]),
        evaluator=evaluator_from_state(part["evaluator"]) if scorers[0] else None,
        density=density_from_state(part["density"]) if scorers[1] else None,
        classifier=classifier_from_state(part["classifier"]) if "classifier" in part else None,
        classified=classified,
    )
    _check_fit(bundle, path)
    return bundle


def _check_fit(bundle: Bundle, path: Path) -> None:
    """Check that what one part gives is what the next takes."""
    given, network, seen = bundle.transform, bundle.temporal, bundle.classified
    takes = {"temporal": (given.channels, network.channels)}
    if bundle.classifier is not None:
        takes["classifier"] = seen.channels, bundle.classifier.channels
    for name, (found, wanted) in takes.items():
        if found != wanted:
            raise InputError(
                f"{path}: {name} takes {wanted} features a step, its rows have {found}"
            )
    if _widths(given) != _widths(seen):
        raise InputError(f"{path}: classified: other streams than transform")
    if given.steps > network.most_steps:
        most = f"{type(network).__name__} takes at most {network.most_steps}"
        raise InputError(f"{path}: transform: steps {given.steps}: {most}")


def _widths(transform: Transform) -> dict[str, int]:
    return {stream: len(fitted.mean) for stream, fitted in transform.streams.items()}


def _named_weights(encoders: EncoderSettings, flow: FlowSettings) -> dict[str, tuple[str, Path]]:
    """Return the network of each stream whose weights are not its package's, and their name."""
    named = {
        "rgb": (encoders.rgb_encoder, encoders.rgb_weights),
        "flow": (encoders.flow_encoder, flow_weights(encoders)),
        "clip": (encoders.clip_encoder, encoders.clip_weights),
        "raft": (flow.algorithm, flow.weights),
    }
    return {
        stream: (network, path)
        for stream, (network, path) in named.items()
        if path not in (None, Path(PACKAGED))
        and network not in ("none", "flow_histogram", "dis", "farneback", "tvl1")
    }


def _read_weights(encoders: EncoderSettings, flow: FlowSettings) -> dict[str, dict[str, Tensor]]:
    """Return the parameters of each network whose weights are not its package's."""
    found: dict[tuple[str, Path], dict[str, Tensor]] = {}
    named = _named_weights(encoders, flow)
    for network, path in named.values():
        if (network, path) not in found:
            found[network, path] = (
                load_file(path, wrappers=())
                if network == "raft"
                else load_state(network, path, architecture(network).last)
            )
    return {stream: found[each] for stream, each in named.items()}


def _tensors(features: Path) -> dict[str, torch.Tensor]:
    """Return the transform of a file of features."""
    arrays = read_transform(features).to_arrays()
    return {name: torch.from_numpy(np.array(values)) for name, values in arrays.items()}


def _settings(part: Part) -> dict[str, Any]:
    try:
        given = json.loads(part["settings"].text(most=100_000))
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise InputError(f"{part.name}: settings: not a dictionary in JSON")
    sections = Part(_LATER | given, f"{part.name}: settings")
    return {name: sections[name].settings(kind) for name, kind in _SECTIONS.items()}
