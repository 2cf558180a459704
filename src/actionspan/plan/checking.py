"""Check a configuration against its schema and settings; say in one line what is wrong."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from actionspan.errors import InputError
from actionspan.parallel.settings import processes
from actionspan.plan.sections import SECTIONS
from actionspan.settings import from_mapping

# JSON Schema takes 20.0 for an integer; the flag that it becomes does not.
_Validator = extend(
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    ),
)


def check_config(config: Mapping[str, Any], schema_path: Path, name: str) -> None:
    """Check every key and value of a configuration.

    Args:
        config: The merged configuration.
        schema_path: A JSON Schema in YAML.
        name: How messages call the configuration, e.g. `"config.yaml"`.

    Raises:
        InputError: A key or value is wrong; the line names it and what is allowed.
    """
    schema = yaml.safe_load(schema_path.read_text(encoding="utf-8"))
    errors = sorted(_Validator(schema).iter_errors(config), key=lambda e: list(e.path))
    if errors:
        raise InputError(f"{name}: {_describe(errors[0])}")


def check_settings(config: Mapping[str, Any], name: str) -> None:
    """Build every settings object of a configuration that fits the schema.

    Raises:
        InputError: A value is out of range; the line names its section.
    """
    for key, section in SECTIONS.items():
        values = section.values(config, key)
        if key == "features.encoders" and config["features"]["source"] != "external":
            values = {**encoders_of(config), "source": config["features"]["source"]}
        try:
            for settings in section.settings:
                from_mapping(settings, values)
        except ValueError as error:
            raise InputError(f"{name}: {key}: {error}") from None
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


def _describe(error: ValidationError) -> str:
    """Return `key.path: what is wrong` for one schema error."""
    where = ".".join(str(part) for part in error.path)
    if error.validator == "additionalProperties":
        known = list(error.schema["properties"])
        unknown = sorted(str(key) for key in set(error.instance) - set(known))[0]
        near = difflib.get_close_matches(unknown, known, n=1)
        hint = f"did you mean {near[0]}?" if near else "known keys are " + ", ".join(known)
        return f"{where + '.' if where else ''}{unknown}: unknown key; {hint}"
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        return f"{where + '.' if where else ''}{missing[0]}: missing"
    if error.validator == "enum":
        allowed = ", ".join("null" if one is None else str(one) for one in error.validator_value)
        return f"{where}: {error.instance!r} is not one of {allowed}"
    limits = {
        "minimum": "is less than",
        "maximum": "is more than",
        "exclusiveMinimum": "must be more than",
        "exclusiveMaximum": "must be less than",
    }
    if error.validator in limits:
        return f"{where}: {error.instance} {limits[str(error.validator)]} {error.validator_value}"
    if error.validator == "type":
        kinds = error.validator_value
        allowed = kinds if isinstance(kinds, str) else " or ".join(kinds)
        return f"{where}: {error.instance!r} is not of type {allowed}{_hint(error.instance, kinds)}"
    if error.validator == "anyOf":
        allowed = " or ".join(_wanted(arm) for arm in error.validator_value)
        return f"{where}: {error.instance!r} is not {allowed}"
    return f"{where or 'configuration'}: {error.message}"


def _hint(value: Any, kinds: str | list[str]) -> str:
    """Say what to write for a text that stands for a number, as `1e-3` does, or for a list."""
    if not isinstance(value, str):
        return ""
    if "array" in kinds:
        return f"; write a list: [{', '.join(value.replace(',', ' ').split())}]"
    try:
        float(value)
    except ValueError:
        return ""
    return "; YAML reads it as text: write numbers like 0.001 or 1.0e-3" * ("number" in kinds)


def _wanted(schema: Mapping[str, Any]) -> str:
    """Name what one arm of an `anyOf` allows."""
    if "const" in schema:
        return str(schema["const"])
    words = {"minimum": "of at least", "exclusiveMinimum": "above"}
    bounds = "".join(f" {words[key]} {schema[key]}" for key in words if key in schema)
    return f"{'an' if schema['type'] == 'integer' else 'a'} {schema['type']}{bounds}"
