"""Check a configuration against its schema and say in one line what is wrong."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from actionspan.errors import InputError

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
    """Explain a number that YAML took for text, as it does with `1e-3`."""
    if "number" not in kinds or not isinstance(value, str):
        return ""
    try:
        float(value)
    except ValueError:
        return ""
    return "; YAML reads it as text: write numbers like 0.001 or 1.0e-3"


def _wanted(schema: Mapping[str, Any]) -> str:
    """Name what one arm of an `anyOf` allows."""
    if "const" in schema:
        return str(schema["const"])
    least = f" of at least {schema['minimum']}" if "minimum" in schema else ""
    return f"an {schema['type']}{least}" if schema["type"] == "integer" else f"a {schema['type']}"
