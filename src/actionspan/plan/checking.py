"""Check a configuration against its schema and settings; say in one line what is wrong."""

import difflib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from functools import reduce
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from actionspan.errors import InputError, printable
from actionspan.files.text import filled_in
from actionspan.networks.names import is_hub
from actionspan.parallel.settings import processes
from actionspan.plan.features import encoders_of, kind_of, start_of, training_of, trains_classifiers
from actionspan.plan.schema import add_sections, build_schema
from actionspan.plan.sections import PLUGGED, SECTIONS
from actionspan.recognition.settings import RecognitionSettings
from actionspan.settings import Knob, from_mapping
from actionspan.video.settings import FrameSettings

# To JSON Schema 20.0 is an integer; the flag made from it does not take it.
_Validator = extend(
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    ),
)
_LIMITS = {
    "minimum": "is less than",
    "maximum": "is more than",
    "exclusiveMinimum": "must be more than",
    "exclusiveMaximum": "must be less than",
}

_LONGEST_NAME, _LONGEST_PATH = 255, 4095  # bytes, on Linux
_SHOWN = 300  # characters of a value
_DEEPEST = 8  # levels, more than the schema has: an alias of YAML can hold itself
_NULLS = ("", "~", "null", "Null", "NULL")  # what YAML reads as null


def read_given(config: dict[str, Any], given: Mapping[str, Any], name: str) -> None:
    """Read in place what `--config` gave: Snakemake hands over all scalars as texts.

    A text is read as in a file of YAML, but where a setting is a text or a path.

    Raises:
        InputError: A key or value is wrong; the line begins with `name` and names the key.
    """
    given = deepcopy(dict(given))
    for key, section in SECTIONS.items():
        whole, part = (_inside(each, key) for each in (config, given))
        for knob in section.knobs:
            if isinstance(part, dict) and knob.name in part:
                whole[knob.name] = part[knob.name] = value = _read(knob, part[knob.name])
                try:
                    knob.check(value)
                except ValueError as error:
                    raise InputError(printable(f"{name}: {key}.{error}")) from None
    schema: dict[str, Any] = {"properties": {}, "additionalProperties": False}
    add_sections(schema, SECTIONS)
    check_values(given, schema, name)


def _inside(part: Any, key: str) -> Any:
    for word in key.split("."):
        part = part.get(word, {}) if isinstance(part, Mapping) else {}
    return part


def _read(knob: Knob, value: Any) -> Any:
    if isinstance(value, list):
        return [_read(knob, item) for item in value]
    if not isinstance(value, str):
        return value
    if knob.optional and value in _NULLS:
        return None
    with suppress(ValueError, yaml.YAMLError):
        read = yaml.safe_load(value) if knob.kind not in (str, Path) else value
        return float(read) if knob.kind is float and isinstance(read, str) else read  # 1e-3
    return value


def check_config(config: Mapping[str, Any], name: str) -> None:
    """Check every key and value of a merged configuration against the schema of the settings.

    `name` is what messages call it, e.g. `"config.yaml"`.

    Raises:
        InputError: A key or value is wrong; the line names it and what is allowed.
    """
    for key, value in leaves(config):
        if isinstance(value, int) and abs(value) > sys.float_info.max:
            raise InputError(f"{name}: {printable(key)}: a number of more than 300 digits")
    schema = build_schema()
    add_sections(schema, PLUGGED)
    check_values(config, schema, name)


def check_values(config: Mapping[str, Any], schema: Mapping[str, Any], name: str) -> None:
    """Check every key and value of a configuration against a JSON Schema, as `check_config`."""
    errors = sorted(_Validator(schema).iter_errors(config), key=lambda e: list(e.path))
    if errors:
        raise InputError(printable(f"{name}: {_describe(errors[0])}"))
    for key, value in leaves(config):
        if isinstance(value, str) and (problem := _text_problem(key, value)):
            raise InputError(f"{name}: {key}: {printable(value)[:_SHOWN]!r}: {problem}")


def leaves(config: Mapping[Any, Any], inside: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value of a configuration with its key, and the items of lists one by one."""
    for key, value in config.items():
        if not isinstance(key, str):
            yield f"{inside}a key", key
            continue
        where = f"{inside}{key}"
        if isinstance(value, Mapping) and where.count(".") < _DEEPEST:
            yield from leaves(value, f"{where}.")
        for item in value if isinstance(value, list | tuple) else [value]:
            yield where, item


def _text_problem(key: str, text: str) -> str:
    """Return why no rule can pass on a text, or an empty text."""
    if not text.isprintable():
        return "control characters cannot be in a path or a command; rename it"
    if key == "mpi.launcher":
        return ""
    if problem := filled_in(text):
        return f"{problem}; rename it"
    if text.startswith("-"):
        return "a command takes it for a flag; write the whole path"
    path = os.fsencode(text)
    if len(path) > _LONGEST_PATH or max(map(len, path.split(b"/"))) > _LONGEST_NAME:
        return f"a file's name has at most {_LONGEST_NAME} bytes, a path {_LONGEST_PATH:,}"
    return ""


def check_names(paths: Iterable[str], key: str) -> None:
    """Check that Snakemake takes the files that functions give to rules literally.

    Raises:
        InputError: It does not; the line begins with the configuration's `key`.
    """
    for path in paths:
        if problem := filled_in(path, by_function=True):
            raise InputError(f"{key}: {printable(path)}: {problem}; rename it")


def check_settings(config: Mapping[str, Any], name: str) -> None:
    """Build every settings object of a configuration that fits the schema.

    Raises:
        InputError: A value is out of range, or does not go with another; the line names its key.
    """
    if (problem := next(_problems(config), None)) is not None:
        raise InputError(f"{name}: {problem}")


def _problems(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the values of a configuration, each with its key."""
    for key, section in SECTIONS.items():
        values = reduce(lambda part, word: part.get(word, {}), key.split("."), config)
        if key == "features.encoders" and config["features"]["source"] != "external":
            values = {**encoders_of(config), "source": kind_of(config)}
        try:
            for settings in section.settings:
                from_mapping(settings, values)
        except ValueError as error:
            yield f"{key}: {error}"
    for stage, key in (("temporal", "ranks"), ("recognition", "learners"), ("finetune", "ranks")):
        try:
            processes(config[stage]["exchange"], config[stage][key])
        except ValueError as error:
            yield f"{stage}: {error}"
    encoders, side = config["features"]["encoders"], config["video"]["frames"]["clip_side"]
    sees_clips = config["features"]["source"] != "external" and is_hub(encoders["clip_encoder"])
    if sees_clips and side <= FrameSettings.clip_side:
        yield (
            f"video.frames.clip_side: {side}: {encoders['clip_encoder']} would see enlarged "
            "frames; give the size that it sees, mostly 256"
        )
    if encoders["clip_encoder"] == "i3d" and encoders["clip_size"] > side:
        yield (
            f"features.encoders.clip_size: {encoders['clip_size']} is more than "
            f"video.frames.clip_side, {side}: the frames would be enlarged; raise clip_side"
        )
    if config["features"]["source"] == "finetuned":
        yield from _problems_of_tuned(config)
    yield from _problems_of_start(config["recognition"])
    shown, models = config["report"]["model"], list(config["temporal"]["models"])
    if shown is not None and shown not in models:
        yield f"report.model: {shown!r} is not one of temporal.models: {', '.join(models)}"
    own_segments = trains_classifiers(config) and not config["recognition"]["clips"]
    if config["evaluation"]["folds"] > 1 and own_segments:
        yield (
            f"evaluation.folds: {config['evaluation']['folds']} does not go with "
            "features.source: scores of classifiers that learn from all training videos; give "
            "recognition.clips or weights, or another source"
        )
    if trains_classifiers(config) and encoders["flow_gain"] != 1:
        yield (
            "features.encoders.flow_gain: must be 1 with features.source: scores, as the "
            "classifiers are trained with it"
        )


def _problems_of_tuned(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield what tuned encoders are asked for that they cannot give."""
    if not config["video"]["keep"]:
        yield (
            "video.keep: must be true with features.source: finetuned, as encoders are "
            "tuned on pictures of the frames and flow"
        )
    encoders, finetune = config["features"]["encoders"], config["finetune"]
    tuned = Path(encoders["rgb_encoder"]).is_relative_to("results/finetune")
    if "rgb" in finetune["streams"] and tuned:
        yield (
            f"features.encoders.rgb_encoder: {encoders['rgb_encoder']} is what the tuning writes; "
            "copy it elsewhere first"
        )
    store, size = finetune["store"], finetune["input_size"]
    if min(store["height"], store["width"]) < size:
        yield (
            f"finetune.store: {store['height']} × {store['width']} pixels are fewer than "
            f"finetune.input_size, {size}: pictures would be enlarged; raise height and width"
        )
    if encoders["clip_encoder"] != "none":
        yield (
            f"features.encoders.clip_encoder: {encoders['clip_encoder']} does not go with "
            "features.source: finetuned, whose pictures hold no clips; give none"
        )
    if "flow" in finetune["streams"] and encoders["flow_encoder"] in ("flow_histogram", "none"):
        yield (
            f"finetune.streams: flow, but features.encoders.flow_encoder is "
            f"{encoders['flow_encoder']}, which nothing can tune; leave flow out, or name a network"
        )
    if config["evaluation"]["folds"] > 1:
        yield (
            f"evaluation.folds: {config['evaluation']['folds']} does not go with "
            "features.source: finetuned: encoders are tuned on all training videos, those of the "
            "folds that are held out among them"
        )


def _problems_of_start(recognition: Mapping[str, Any]) -> Iterator[str]:
    """Yield where weights to start from are missing, or given to classifiers that take none."""
    networks = {stream: training_of(recognition, stream)["network"] for stream in ("rgb", "flow")}
    try:
        from_mapping(RecognitionSettings, training_of(recognition, "flow"))
    except ValueError as error:
        yield f"recognition.flow: {error}"
    own = recognition["flow"]["weights"] or networks["flow"] != networks["rgb"]
    if own and "transfer" in recognition["training"]["aavg"]:
        yield (
            "recognition.flow: network and weights of its own do not go with transfer, by "
            "which flow starts from the RGB network; leave it out of recognition.training.aavg"
        )
    pretrained = recognition["training"]["pretrained"]
    for stream, network in networks.items():
        weights = start_of(recognition, stream)
        key = f"recognition.{'flow.' if stream == 'flow' and own else ''}weights"
        if weights and not pretrained:
            yield (
                f"{key}: {weights} is not used with recognition.training.pretrained: "
                "false; leave out one of them"
            )
        if pretrained and not network.startswith("efficientnet") and not weights:
            yield (
                f"{key}: no weights come with {network}; give a checkpoint or, for "
                "resnets, a name of torchvision's, or set recognition.training.pretrained: false"
            )


def _describe(error: ValidationError) -> str:
    """Return `key.path: what is wrong` for one schema error."""
    where = ".".join(str(part) for part in error.path)
    inside = f"{where}." if where else ""
    value, allowed, rule = error.instance, error.validator_value, str(error.validator)
    if rule == "additionalProperties":
        keys = list(error.schema["properties"])
        unknown = sorted(str(key) for key in set(value) - set(keys))[0]
        near = difflib.get_close_matches(unknown, keys, n=1)
        hint = f"did you mean {near[0]}?" if near else "known keys are " + ", ".join(keys)
        return f"{inside}{unknown}: unknown key; {hint}"
    if rule == "required":
        return f"{inside}{next(key for key in allowed if key not in value)}: missing"
    if rule == "enum":
        choices = ", ".join("null" if choice is None else str(choice) for choice in allowed)
        return f"{where}: {value!r} is not one of {choices}"
    if rule in _LIMITS:
        return f"{where}: {value} {_LIMITS[rule]} {allowed}"
    if rule == "type":
        kinds = allowed if isinstance(allowed, str) else " or ".join(allowed)
        hint = "; give its keys: {KEY: VALUE}" * (kinds == "object")
        return f"{where}: {value!r} is not of type {kinds}{hint or _hint(value, kinds)}"
    if rule == "anyOf":
        return f"{where}: {value!r} is not {' or '.join(map(_wanted, allowed))}"
    return f"{where or 'configuration'}: {error.message}"


def _hint(value: Any, kinds: str) -> str:
    """Say what to write in place of a text that means a number, as `1e-3` does, or a list."""
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
    if "enum" in schema:
        return f"one of {', '.join(map(str, schema['enum']))}"
    if "pattern" in schema:
        return str(schema["description"])
    if "const" in schema:
        return str(schema["const"])
    least = f" of at least {schema['minimum']}" if "minimum" in schema else ""
    bounds = f" above {schema['exclusiveMinimum']}" if "exclusiveMinimum" in schema else least
    bounds += f" and at most {schema['maximum']}" if "maximum" in schema else ""
    return f"{'an' if schema['type'] == 'integer' else 'a'} {schema['type']}{bounds}"
