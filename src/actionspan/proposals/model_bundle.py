"""A complete trained model in one file: settings, feature transform, networks, classifier."""

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from actionspan.arrays import Float64
from actionspan.errors import InputError, brief
from actionspan.features.extraction import flow_weights
from actionspan.features.settings import EncoderSettings
from actionspan.features.transform import Transform, transform_from
from actionspan.networks.names import PACKAGED, is_hub
from actionspan.proposals import evaluator as evaluators
from actionspan.proposals import segment_classifier as classifiers
from actionspan.proposals import settings as knobs
from actionspan.proposals.bundle_files import SECTIONS, bundle_path
from actionspan.proposals.intensity import DensityModel, density_from_state
from actionspan.proposals.pgm import candidates_of
from actionspan.proposals.selection import Chosen, choose_cells
from actionspan.settings import Checked
from actionspan.storage.model_files import Part, read_model
from actionspan.temporal.network import TemporalNetwork
from actionspan.temporal.networks import load_model
from actionspan.temporal.probabilities import Prediction
from actionspan.video.settings import FlowSettings, FrameSettings

FORMAT = "actionspan model 1"
_UNREADABLE = f"not a complete model ({FORMAT!r}); give results/proposals/MODEL/model.safetensors"
# Sections that older files lack, with the earlier behaviour.
_LATER: dict[str, Any] = {name: dataclasses.asdict(kind()) for name, kind in SECTIONS.items()}
_LATER["ranking"] = {"boundary_power": 1.0}


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """Everything that turns a new video into proposals."""

    frames: FrameSettings
    flow: FlowSettings
    encoders: EncoderSettings
    # parameters by stream of encoders with weights other than their package's
    weights: Mapping[str, Mapping[str, Tensor]] = field(default_factory=dict)
    candidates: knobs.CandidateSettings
    ranking: knobs.RankingSettings
    suppression: knobs.SuppressionSettings
    selection: knobs.SelectionSettings
    events: knobs.EventSettings
    online: knobs.OnlineSettings
    transform: Transform
    temporal: TemporalNetwork
    evaluator: evaluators.ProposalEvaluator | None  # None: a density scores a lattice's segments
    density: DensityModel | None
    classifier: classifiers.SegmentClassifier | None  # None: proposals get no labels
    classified: Transform  # of the features that the classifier sees
    ranks: bool = False  # its chances rest on too little, or on other footage: events have ranks
    base: "Base | None" = None

    @property
    def widths(self) -> dict[str, int]:
        """The length of the vectors of each stream that the model takes."""
        return _widths(self.transform)

    def choose(
        self,
        prediction: Prediction,
        duration_seconds: float,
        before: Prediction | None = None,
    ) -> Chosen:
        """Return a video's proposals and events in seconds, best first.

        Of a model with a base, `before` is the output of its base for the video.
        """
        if self.density is not None:
            found = self.expected(prediction, duration_seconds, before)
            listing = self.listing(found[1])
            return choose_cells(*found, self.density.calibration, self.selection, listing)
        assert self.evaluator is not None
        candidates = candidates_of(prediction.probabilities, self.candidates)
        how = (self.evaluator, self.suppression, self.ranking)
        segments, scores = evaluators.rank_candidates(candidates, duration_seconds, *how)
        return Chosen(segments=segments, scores=scores)

    @property
    def of_other_footage(self) -> bool:
        """Whether it knows only motion, and not of the videos that it is used for."""
        return self.ranks and self.base is None and self.encoders.source == "motion"

    def listing(self, density: Float64) -> knobs.EventSettings:
        """Return which events are listed of a video with this density (N,).

        Chances of other footage do not determine how many, so the expected number is listed.
        """
        if not self.of_other_footage or self.events.events is not None:
            return self.events
        most = math.ceil(np.clip(density.sum(), 1, knobs.MOST_EVENTS))
        return dataclasses.replace(self.events, events=most)

    def expected(
        self, prediction: Prediction, seconds: float, before: Prediction | None = None
    ) -> tuple[Float64, Float64]:
        """Return the cells (N, 2) of a video of `seconds`, and the density (N,) at each.

        Of a model with a base, they are the cells of both, and `before` is the output of its base.
        """
        assert self.density is not None
        # as the workflow writes them
        values = np.asarray(prediction.probabilities, np.float32)
        found = self.density.density(values, seconds, marks=prediction.marks)
        if self.base is None:
            return found
        assert before is not None
        return self.base.mixed(found, self.base.bundle.expected(before, seconds))


@dataclass(frozen=True, kw_only=True)
class Base:
    """The model that another continues from, and the weights of both densities."""

    bundle: Bundle
    own: float  # weight of the model's density
    weight: float  # of the base's

    def mixed(
        self, own: tuple[Float64, Float64], before: tuple[Float64, Float64]
    ) -> tuple[Float64, Float64]:
        """Return the cells (N, 2) of both models and the density (N,) of their mixture."""
        cells = np.concatenate([own[0], before[0]])
        return cells, np.concatenate([self.own * own[1], self.weight * before[1]])


_ENCODING = {"frames": FrameSettings, "flow": FlowSettings, "encoders": EncoderSettings}
_SECTIONS: dict[str, type[Checked]] = {**_ENCODING, **SECTIONS}


def load_bundle(path: Path) -> Bundle:
    """Read a file that `write_bundle` wrote, or `model.safetensors` in a folder.

    It may be a stranger's: each part is checked before it is built, and no path in it is opened.

    Raises:
        InputError: The file does not exist or is not one of these.
    """
    path = bundle_path(path)
    part = read_model(path, _UNREADABLE)
    bundle = _built(part, path)
    if "base" not in part:
        return bundle
    before = part["base"]
    own, weight = (each.number(0, 1e6) for each in before["mixture"].items(2, 2))
    base = Base(bundle=_built(before, path), own=own, weight=weight)
    if base.bundle.density is None or bundle.density is None or "base" in before:
        before.refuse("a model of a density, without a base")
    missing = base.bundle.widths.items() - bundle.widths.items()
    if missing:
        before.refuse("a model of the same features, or of some of them")
    return dataclasses.replace(bundle, base=base)


def _built(part: Part, path: Path) -> Bundle:
    """Return the model of a file, without its base."""
    if "format" not in part or part["format"].value != FORMAT:
        raise InputError(f"{path}: {_UNREADABLE}")
    settings = settings_of(part)
    held = part["weights"].entries() if "weights" in part else {}
    weights = {stream: each.tensors() for stream, each in held.items()}
    named = named_weights(settings["encoders"])
    for stream, (_, name) in named.items():
        if stream not in weights:
            line = f"names weights {brief(str(name))} for {stream} that it does not hold"
            cure = "make it again with `actionspan proposals bundle` where they are"
            raise InputError(f"{path}: {line}; {cure}")
    if settings["encoders"].runtime == "openvino":  # which this machine may not have
        settings["encoders"] = dataclasses.replace(settings["encoders"], runtime="auto")
    if ("evaluator" in part) == ("density" in part):
        raise InputError(f"{path}: want either an evaluator or a density")

    def built(name: str, build: Callable[[Part], Any]) -> Any:
        return build(part[name]) if name in part else None

    transform = transform_from(part["transform"])
    bundle = Bundle(
        **settings,
        weights=weights,
        transform=transform,
        temporal=load_model(part["temporal"]),
        evaluator=built("evaluator", evaluators.evaluator_from_state),
        density=built("density", density_from_state),
        classifier=built("classifier", classifiers.classifier_from_state),
        classified=built("classified", transform_from) or transform,
        ranks="ranks" in part and part["ranks"].value is True,
    )
    _check_fit(bundle, path)
    return bundle


def _check_fit(bundle: Bundle, path: Path) -> None:
    """Check that the output of each part fits the input of the next."""
    given, network, seen = bundle.transform, bundle.temporal, bundle.classified
    takes = {"temporal": (given.channels, network.channels)}
    if bundle.classifier is not None:
        takes["classifier"] = seen.channels, bundle.classifier.channels
    for name, (width, wanted) in takes.items():
        if width != wanted:
            line = f"{name} takes {wanted} features a step, its rows have {width}"
            raise InputError(f"{path}: {line}")
    if not _widths(seen).items() <= _widths(given).items():
        raise InputError(f"{path}: classified: other streams than transform")


def _widths(transform: Transform) -> dict[str, int]:
    return {stream: len(fitted.mean) for stream, fitted in transform.streams.items()}


def named_weights(encoders: EncoderSettings) -> dict[str, tuple[str, Path]]:
    """Return the network of each stream with weights other than its package's, and their path."""
    if encoders.source == "motion":
        return {}
    named = {
        "rgb": (encoders.rgb_encoder, encoders.rgb_weights),
        "flow": (encoders.flow_encoder, flow_weights(encoders)),
        "clip": (encoders.clip_encoder, encoders.clip_weights),
    }
    return {
        stream: (network, path)
        for stream, (network, path) in named.items()
        if path not in (None, Path(PACKAGED))
        and network not in ("none", "flow_histogram")
        and not is_hub(network)
    }


def settings_of(part: Part) -> dict[str, Any]:
    """Return the settings of a bundle by section, or raise InputError."""
    try:
        given = json.loads(part["settings"].text(most=100_000))
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise InputError(f"{part.name}: settings: not a dictionary in JSON")
    for section, key, value in (("encoders", "mover", False), ("frames", "mover_side", 0)):
        if isinstance(given.get(section), dict):  # older models have no such stream
            given[section] = {key: value} | given[section]
    sections = Part(_LATER | given, f"{part.name}: settings")
    return {name: sections[name].settings(kind) for name, kind in _SECTIONS.items()}
