"""JSON of annotation tools: parsed with one line for what is wrong, looked at to tell forms."""

import json
from collections.abc import Callable
from typing import Any

from actionspan.errors import InputError


def parse_json(
    file: str, text: str, to_object: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Any:
    """Parse JSON, whose objects `to_object` makes of pairs.

    Raises:
        InputError: The text is not JSON, or is nested too deeply.
    """
    try:
        return json.loads(text, object_pairs_hook=to_object)
    except json.JSONDecodeError as error:
        raise InputError(f"{file}: line {error.lineno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise InputError(f"{file}: not annotations: nested too deeply") from None
    except ValueError as error:
        raise InputError(f"{file}: not JSON: {error}") from None


def peek_json(text: str) -> Any:
    """Return the value of a JSON text, None for any other text."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def objects(value: Any) -> dict[str, dict[str, Any]]:
    """Return the members of an object that are objects; none of what is no object."""
    if not isinstance(value, dict):
        return {}
    return {key: member for key, member in value.items() if isinstance(member, dict)}


def items(value: Any) -> list[Any]:
    """Return a list as it is, and an empty one for anything else."""
    return value if isinstance(value, list) else []
