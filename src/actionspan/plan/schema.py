"""The schema of config.yaml, made from the settings dataclasses so that a knob is written once."""

import argparse
import dataclasses
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import yaml

from actionspan.dataset.formats.records import SUBSETS
from actionspan.dataset.formats.registry import FORMAT_NAMES
from actionspan.demo.scenario import DemoSettings
from actionspan.errors import InputError
from actionspan.evaluation.baselines import METHODS, BaselineSettings
from actionspan.evaluation.records import EvaluationSettings
from actionspan.features.settings import EncoderSettings, ExternalSettings, RescaleSettings
from actionspan.papers.aavg.settings import ExperimentSettings
from actionspan.parallel.settings import ON_CPUS, ParallelSettings, processes
from actionspan.proposals.settings import (
    CandidateSettings,
    EvaluatorSettings,
    RankingSettings,
    SuppressionSettings,
)
from actionspan.recognition.clip_settings import ClipSettings
from actionspan.recognition.settings import RecognitionSettings
from actionspan.settings import from_mapping
from actionspan.temporal.settings import MODELS, PredictionSettings, TemporalSettings
from actionspan.video.settings import FlowSettings, FrameSettings

# Section of config.yaml → the settings of the commands it configures.
SECTIONS: dict[str, type[Any]] = {
    "demo": DemoSettings,
    "video.frames": FrameSettings,
    "video.flow": FlowSettings,
    "recognition.store": ClipSettings,
    "recognition.training": RecognitionSettings,
    "recognition.experiments": ExperimentSettings,
    "features.encoders": EncoderSettings,
    "features.external": ExternalSettings,
    "features.rescale": RescaleSettings,
    "temporal.parallel": ParallelSettings,
    "temporal.training": TemporalSettings,
    "temporal.prediction": PredictionSettings,
    "proposals.candidates": CandidateSettings,
    "proposals.evaluator": EvaluatorSettings,
    "proposals.ranking": RankingSettings,
    "proposals.suppression": SuppressionSettings,
    "evaluation.baseline": BaselineSettings,
    "evaluation.protocol": EvaluationSettings,
}

_TEXT_OR_NULL = {"type": ["string", "null"]}
_COUNT = {"type": "integer", "minimum": 1}

# What the workflow itself reads, beside the sections above.
_WORKFLOW: dict[str, dict[str, Any]] = {
    "dataset": {
        "videos": {**_TEXT_OR_NULL, "description": "folder of videos; demo: the embedded set"},
        "annotations": {**_TEXT_OR_NULL, "description": "annotation file, or folder of THUMOS14"},
        "format": {"enum": list(FORMAT_NAMES)},
        "overshoot_seconds": {"type": "number", "minimum": 0},
        "ambiguous": {"type": "boolean"},
        "video_info": {**_TEXT_OR_NULL, "description": "video_info_new.csv"},
        "on_bad_input": {"enum": ["skip", "fail"]},
        "validation_fraction": {"type": "number", "minimum": 0, "maximum": 1},
        "videos_per_shard": {"anyOf": [{"const": "auto"}, _COUNT]},
    },
    "video": {"processes": _COUNT},
    "recognition": {
        "clips": {**_TEXT_OR_NULL, "description": "folder of trimmed clips by class"},
        "splits": {**_TEXT_OR_NULL, "description": "folder of their split files"},
        "split": _COUNT,
        "weights": {**_TEXT_OR_NULL, "description": "what the networks start from"},
        "exchange": {"enum": list(ON_CPUS)},
        "learners": _COUNT,
        "in_process": {"type": "boolean"},
        "threads": _COUNT,
    },
    "features.external": {
        "folder": {**_TEXT_OR_NULL, "description": "folder of feature files, one a video"}
    },
    "features": {"source": {"enum": ["pooled", "scores", "external"]}, "threads": _COUNT},
    "temporal": {
        "models": {
            "type": "array",
            "items": {"enum": list(MODELS)},
            "minItems": 1,
            "uniqueItems": True,
        },
        "exchange": {"enum": list(ON_CPUS)},
        "ranks": _COUNT,
        "threads": _COUNT,
    },
    "scaling": {
        "model": {"enum": list(MODELS)},
        "exchanges": {
            "type": "array",
            "items": {"enum": [name for name in ON_CPUS if name != "none"]},
            "minItems": 1,
            "uniqueItems": True,
        },
        "ranks": {"type": "array", "items": _COUNT, "minItems": 1, "uniqueItems": True},
        "repeats": _COUNT,
        "epochs": _COUNT,
    },
    "mpi": {"launcher": {"type": "string", "minLength": 1}},
    "evaluation": {
        "baselines": {
            "type": "array",
            "items": {"enum": list(METHODS)},
            "uniqueItems": True,
        },
        "subset": {"enum": list(SUBSETS)},
        "timelines": {"type": "integer", "minimum": 0},
        "seeds": _COUNT,
    },
}


def build_schema() -> dict[str, Any]:
    """Return the JSON Schema of config.yaml: every key is required and no other is allowed."""
    root: dict[str, Any] = {"properties": {}}
    for name, properties in _WORKFLOW.items():
        _section(root, name)["properties"].update(properties)
    for name, settings in SECTIONS.items():
        _section(root, name)["properties"].update(_properties(settings))
    # one key for all sources: features.source, which the rules pass on as --source
    del _section(root, "features.encoders")["properties"]["source"]
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **root}
    _close(schema)
    return schema


def check_settings(config: Mapping[str, Any], name: str) -> None:
    """Build every settings object of a configuration that fits the schema.

    Raises:
        InputError: A value is out of range; the line names its section.
    """
    for section, settings in SECTIONS.items():
        values: Any = config
        for key in section.split("."):
            values = values[key]
        if section == "features.encoders" and config["features"]["source"] != "external":
            values = {**encoders_of(config), "source": config["features"]["source"]}
        try:
            from_mapping(settings, values)
        except ValueError as error:
            raise InputError(f"{name}: {section}: {error}") from None
    for stage, key in (("temporal", "ranks"), ("recognition", "learners")):
        try:
            processes(config[stage]["exchange"], config[stage][key])
        except ValueError as error:
            raise InputError(f"{name}: {stage}: {error}") from None
    _check_start(config["recognition"], name)
    if trains_classifiers(config) and config["features"]["encoders"]["flow_gain"] != 1:
        raise InputError(
            f"{name}: features.encoders.flow_gain: must be 1 with features.source: scores, as the "
            "classifiers are trained with it"
        )


def trains_classifiers(config: Mapping[str, Any]) -> bool:
    """Return whether features are the scores of classifiers that the workflow trains itself."""
    encoders = config["features"]["encoders"]
    given = encoders["rgb_weights"] or encoders["flow_weights"] or encoders["rgb_encoder"] == "i3d"
    return config["features"]["source"] == "scores" and not given


def encoders_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return features.encoders; of classifiers that the workflow trains, as they are trained."""
    encoders = dict(config["features"]["encoders"])
    if trains_classifiers(config):
        training = config["recognition"]["training"]
        for stream in ("rgb", "flow"):
            encoders[f"{stream}_encoder"] = training["network"]
            encoders[f"{stream}_weights"] = f"results/recognition/{stream}/model.pt"
        encoders["input_size"] = training["input_size"]
    return encoders


def _check_start(recognition: Mapping[str, Any], name: str) -> None:
    """Check that classifiers have weights to start from where they want them, and there alone."""
    training, weights = recognition["training"], recognition["weights"]
    network = training["network"]
    if weights and not training["pretrained"]:
        raise InputError(
            f"{name}: recognition.weights: {weights} is not used with "
            "recognition.training.pretrained: false; leave out one of them"
        )
    if training["pretrained"] and not weights and network != "efficientnet_lite0":
        raise InputError(
            f"{name}: recognition.weights: no weights come with {network}; give a checkpoint or, "
            "for resnets, a name of torchvision's, or set recognition.training.pretrained: false"
        )


def _section(root: dict[str, Any], name: str) -> dict[str, Any]:
    for key in name.split("."):
        root = root["properties"].setdefault(key, {"type": "object", "properties": {}})
    return root


def _properties(settings: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(settings)
    found = {}
    for field in dataclasses.fields(settings):
        unit = f" [{field.metadata['unit']}]" if field.metadata["unit"] else ""
        found[field.name] = {
            **_kind(hints[field.name]),
            "description": field.metadata["help"] + unit,
        }
    return found


def _kind(annotation: Any) -> dict[str, Any]:
    """Return the schema of one field's type."""
    if get_origin(annotation) in (Union, types.UnionType):
        inner, _ = get_args(annotation)
        kind = _kind(inner)
        if "enum" in kind:
            return {"enum": [*kind["enum"], None]}
        return {"type": [kind["type"], "null"]}
    if get_origin(annotation) is Literal:
        return {"enum": list(get_args(annotation))}
    names = {int: "integer", float: "number", str: "string", bool: "boolean", Path: "string"}
    return {"type": names[annotation]}


def _close(schema: dict[str, Any]) -> None:
    """Require every property of every object and forbid all others."""
    if "properties" in schema:
        schema["required"] = list(schema["properties"])
        schema["additionalProperties"] = False
        for inner in schema["properties"].values():
            _close(inner)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: the command has no flags."""


def run(arguments: argparse.Namespace) -> None:
    """Print the schema."""
    print("# Made by `make schema` from the settings dataclasses; do not edit.")
    yaml.safe_dump(build_schema(), sys.stdout, sort_keys=False, width=100)
