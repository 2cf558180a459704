"""Check a configuration against the settings; one line names the key that is wrong."""

import difflib
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from functools import cache, reduce
from pathlib import Path
from typing import Any

import yaml

from actionspan.errors import InputError, brief, printable
from actionspan.networks.names import is_hub
from actionspan.parallel.settings import processes
from actionspan.recognition.settings import RecognitionSettings
from actionspan.settings import Knob, from_mapping
from actionspan.storage.text import wildcard_fault
from actionspan.video.settings import FrameSettings
from actionspan.workflow.features import (
    encoders_of,
    kind_of,
    start_of,
    training_of,
    trains_classifiers,
)
from actionspan.workflow.sections import SECTIONS

_LONGEST_NAME, _LONGEST_PATH = 255, 4095  # bytes, on Linux
_SHOWN = 300  # characters of a value
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
                whole[knob.name] = part[knob.name] = _read(knob, part[knob.name])
    _refuse(_mistakes(given, "", complete=False), name)


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
    """Check every key and value of a merged configuration by itself.

    `name` is what messages call it, e.g. `"config.yaml"`.

    Raises:
        InputError: A key or value is wrong; the line names it and the allowed values.
    """
    _refuse(_mistakes(config, "", complete=True), name)


def _refuse(problems: Iterator[str], name: str) -> None:
    """Raise InputError for the first problem."""
    if (problem := next(problems, None)) is not None:
        raise InputError(printable(f"{name}: {problem}"))


def _mistakes(part: Any, where: str, *, complete: bool) -> Iterator[str]:
    """Yield the faults in a part of a configuration, each with its key, keys before values.

    `complete`: whether a key that is missing is a mistake.
    """
    keys, inside = _keys()[where], f"{where}." if where else ""
    if not isinstance(part, Mapping):
        yield f"{where} {brief(part)}: must have keys: {{KEY: VALUE}}"
        return
    for key in map(str, part):
        if key not in keys:
            near = difflib.get_close_matches(key, keys, n=1)
            hint = f"did you mean {near[0]}?" if near else "known keys are " + ", ".join(keys)
            yield f"{inside}{key}: unknown key; {hint}"
    for key, knob in keys.items():
        if key not in part:
            if complete:
                yield f"{inside}{key}: missing"
        elif knob is None:
            yield from _mistakes(part[key], inside + key, complete=complete)
        else:
            yield from _mistakes_of(knob, part[key], inside)


def _mistakes_of(knob: Knob, value: Any, inside: str) -> Iterator[str]:
    """Yield the faults of a value."""
    try:
        knob.check(value)
    except ValueError as error:
        yield f"{inside}{error}{_hint(knob, value)}"
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and (problem := _text_problem(inside + knob.name, text)):
            yield f"{inside}{knob.name} {printable(text)[:_SHOWN]!r}: {problem}"


def _hint(knob: Knob, value: Any) -> str:
    """Return the number to write for a text that means one, such as `1e-3`."""
    for text in value if isinstance(value, list) else [value]:
        with suppress(ValueError):
            if isinstance(text, str) and knob.kind in (int, float) and math.isfinite(float(text)):
                return "; YAML reads it as text: write it without quotes, and 1e-3 as 1.0e-3"
    return ""


@cache
def _keys() -> dict[str, dict[str, Knob | None]]:
    """Return the keys of each section, in order; None marks a section in it."""
    found: dict[str, dict[str, Knob | None]] = {"": {}}
    for name, section in SECTIONS.items():
        before = ""
        for word in name.split("."):
            found[before].setdefault(word, None)
            before = f"{before}.{word}".lstrip(".")
            found.setdefault(before, {})
        found[name] |= {knob.name: knob for knob in section.knobs}
    return found


def _text_problem(key: str, text: str) -> str:
    """Return why no rule can pass on a text, or an empty text."""
    if not text.isprintable():
        return "control characters cannot be in a path or a command; rename it"
    if key == "mpi.launcher":
        return ""
    if problem := wildcard_fault(text):
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
        if problem := wildcard_fault(path, by_function=True):
            raise InputError(f"{key}: {printable(path)}: {problem}; rename it")


def check_settings(config: Mapping[str, Any], name: str) -> None:
    """Build every settings object of a configuration with values that are allowed by themselves.

    Raises:
        InputError: A value is out of range, or does not go with another; the line names its key.
    """
    _refuse(_problems(config), name)


def _problems(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield the faults of the values of a configuration, each with its key."""
    for key, section in SECTIONS.items():
        values = reduce(lambda part, word: part.get(word, {}), key.split("."), config)
        if key == "features.encoders" and config["features"]["source"] != "external":
            values = {**encoders_of(config), "source": kind_of(config)}
        try:
            for settings in section.settings:
                from_mapping(settings, values)
        except ValueError as error:
            yield f"{key}: {error}"
    yield from _problems_of_zones(config["video"]["zones"])
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


def _problems_of_zones(zones: Any) -> Iterator[str]:
    """Yield the faults in the file of video.zones; a job sees a file in storage first."""
    if zones is None or "://" in str(zones):
        return
    from actionspan.video.zones import read_zones  # it takes a decoder's time to import

    try:
        read_zones(Path(str(zones)))
    except InputError as error:
        yield f"video.zones: {error}"


def _problems_of_tuned(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield what tuned encoders are asked for that they cannot give."""
    if not config["video"]["keep"]:
        yield (
            "video.keep: must be true with features.source: finetuned, as encoders are "
            "tuned on images of the frames and flow"
        )
    encoders, finetune = config["features"]["encoders"], config["finetune"]
    tuned = Path(encoders["rgb_encoder"]).is_relative_to("results/finetune")
    if "rgb" in finetune["streams"] and tuned:
        yield (
            f"features.encoders.rgb_encoder: {encoders['rgb_encoder']} is written by the tuning; "
            "copy it elsewhere first"
        )
    store, size = finetune["store"], finetune["input_size"]
    if min(store["height"], store["width"]) < size:
        yield (
            f"finetune.store: {store['height']} × {store['width']} pixels are fewer than "
            f"finetune.input_size, {size}: images would be enlarged; raise height and width"
        )
    if encoders["clip_encoder"] != "none":
        yield (
            f"features.encoders.clip_encoder: {encoders['clip_encoder']} does not go with "
            "features.source: finetuned, which has frames but no clips; give none"
        )
    if "flow" in finetune["streams"] and encoders["flow_encoder"] in ("flow_histogram", "none"):
        yield (
            f"finetune.streams: flow, but features.encoders.flow_encoder is "
            f"{encoders['flow_encoder']}, which nothing can tune; leave flow out, or name a network"
        )
    if config["evaluation"]["folds"] > 1:
        yield (
            f"evaluation.folds: {config['evaluation']['folds']} does not go with "
            "features.source: finetuned: encoders are tuned on all training videos, including "
            "held-out folds"
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
