"""Print the schema of config.yaml, made from the settings dataclasses."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from actionspan.settings import Knob
from actionspan.workflow.sections import OURS, Section

_TYPES = {int: "integer", float: "number", str: "string", bool: "boolean", Path: "string"}


def build_schema() -> dict[str, Any]:
    """Return the JSON Schema of config.yaml: every key is required and no other is allowed."""
    root: dict[str, Any] = {"properties": {}}
    _add_sections(root, OURS)
    _require_all(root)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **root}


def _add_sections(root: dict[str, Any], sections: Mapping[str, Section]) -> None:
    """Add sections to a schema, in place; all of their keys are optional."""
    for name, section in sections.items():
        inner = root
        for key in name.split("."):
            closed = {"type": "object", "properties": {}, "additionalProperties": False}
            inner = inner["properties"].setdefault(key, closed)
        inner["properties"] |= {knob.name: _schema_of(knob) for knob in section.knobs}


def _schema_of(knob: Knob) -> dict[str, Any]:
    """Return the schema of one key; it cannot state that lists rise and numbers are finite."""
    kind: dict[str, Any] = {"type": _TYPES[knob.kind]}
    if knob.choices:
        kind = {"enum": list(knob.choices)}
        if knob.pattern:
            like = {"type": "string", "pattern": f"^({knob.pattern})$", "description": knob.like}
            kind = {"anyOf": [kind, like]}
    elif knob.fewest and not knob.many:
        kind["minLength"] = knob.fewest
    bounds = {
        "exclusiveMinimum": knob.above,
        "minimum": knob.least,
        "exclusiveMaximum": knob.below,
        "maximum": knob.most,
    }
    kind |= {word: value for word, value in bounds.items() if value is not None}
    if knob.also is not None:
        kind = {"anyOf": [{"const": knob.also}, kind]}
    if knob.many:
        kind = {"type": "array", "items": kind, "minItems": knob.fewest, "uniqueItems": True}
    if knob.optional and "enum" in kind:
        kind["enum"].append(None)
    elif knob.optional:
        kind["type"] = [kind["type"], "null"]
    return {**kind, "description": knob.text}


def _require_all(schema: dict[str, Any]) -> None:
    """Require every property of every object and forbid all others."""
    if "properties" in schema:
        schema.pop("additionalProperties", None)
        schema |= {"required": list(schema["properties"]), "additionalProperties": False}
        for inner in schema["properties"].values():
            _require_all(inner)


def add_arguments(_: argparse.ArgumentParser) -> None:
    """Add nothing: the command has no flags."""


def run(_: argparse.Namespace) -> None:
    """Print the schema."""
    print("# Made by `make config` from the settings dataclasses; do not edit.")
    yaml.safe_dump(build_schema(), sys.stdout, sort_keys=False, width=100, allow_unicode=True)
