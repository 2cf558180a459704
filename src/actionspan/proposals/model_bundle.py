"""A complete trained model in one file: settings, feature transform, networks, classifier."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import torch

from actionspan import __version__
from actionspan.errors import InputError
from actionspan.features.settings import EncoderSettings
from actionspan.features.store import read_settings, read_transform
from actionspan.features.transform import Transform
from actionspan.files.torch_files import read_torch, write_torch
from actionspan.proposals.evaluator import (
    ProposalEvaluator,
    evaluator_from_state,
    evaluator_state,
    load_evaluator,
)
from actionspan.proposals.segment_classifier import (
    SegmentClassifier,
    classifier_from_state,
    classifier_state,
    load_classifier,
)
from actionspan.proposals.settings import CandidateSettings, RankingSettings, SuppressionSettings
from actionspan.settings import Checked, from_mapping, to_json
from actionspan.temporal.model_file import load_model
from actionspan.temporal.networks import TemporalNetwork
from actionspan.video.settings import FlowSettings, FrameSettings

FORMAT = "actionspan model 1"
# Sections that older files lack, with what was done before there were any.
_LATER: dict[str, Any] = {"ranking": {"boundary_power": 1.0}}


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """Everything that turns a new video into proposals."""

    frames: FrameSettings
    flow: FlowSettings
    encoders: EncoderSettings
    candidates: CandidateSettings
    ranking: RankingSettings
    suppression: SuppressionSettings
    transform: Transform
    temporal: TemporalNetwork
    evaluator: ProposalEvaluator
    classifier: SegmentClassifier | None
    """None: proposals get no labels."""


_SECTIONS = {
    name: kind
    for name, kind in get_type_hints(Bundle).items()
    if isinstance(kind, type) and issubclass(kind, Checked)
}  # of the configuration


def write_bundle(
    features: Path,
    temporal: Path,
    evaluator: Path,
    out: Path,
    *,
    classifier: Path | None = None,
    **sections: Checked,
) -> None:
    """Collect one trained model from features.h5, the network's model.pt and pem.pt of a run.

    features.h5 gives the transform and the settings of frames, flow and encoders; `sections` are
    those of candidates, ranking and suppression. Without `classifier`, classifier.pt, proposals
    get no labels.

    Raises:
        InputError: The features were made elsewhere, or a file cannot be read.
    """
    earlier = read_settings(features)
    if "encoders" not in earlier:
        raise InputError(
            f"{features}: no settings of encoders: a model of features made elsewhere cannot take "
            "videos, so it has no bundle"
        )
    arrays = read_transform(features).to_arrays()
    content = {
        "format": FORMAT,
        "actionspan_version": __version__,
        "settings": to_json(json.dumps(earlier), **sections),
        "transform": {name: torch.from_numpy(np.array(values)) for name, values in arrays.items()},
        "temporal": read_torch(temporal),
        "evaluator": evaluator_state(load_evaluator(evaluator)),
    }
    if classifier is not None:
        content["classifier"] = classifier_state(load_classifier(classifier))
    _settings(content, out)
    write_torch(out, content)


def load_bundle(path: Path) -> Bundle:
    """Read a file that `write_bundle` wrote, or `model.pt` in a folder.

    Raises:
        InputError: There is no such file or it is not one of these.
    """
    if path.is_dir():
        if not (path / "model.pt").is_file():
            raise InputError(
                f"{path}: no model.pt in this folder; a run makes results/proposals/mtn/model.pt"
            )
        path = path / "model.pt"
    content = read_torch(path)
    if not isinstance(content, Mapping) or content.get("format") != FORMAT:
        raise InputError(
            f"{path}: not a complete model ({FORMAT!r}); give results/proposals/MODEL/model.pt"
        )
    arrays = {name: values.numpy() for name, values in content["transform"].items()}
    state = content.get("classifier")
    return Bundle(
        **_settings(content, path),
        transform=Transform.from_arrays(arrays),
        temporal=load_model(content["temporal"]),
        evaluator=evaluator_from_state(content["evaluator"]),
        classifier=None if state is None else classifier_from_state(state),
    )


def _settings(content: Mapping[str, Any], path: Path) -> dict[str, Any]:
    given = _LATER | json.loads(content["settings"])
    try:
        return {name: from_mapping(kind, given[name]) for name, kind in _SECTIONS.items()}
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: settings: {error}") from None
