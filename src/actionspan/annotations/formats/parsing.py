"""JSON and XML of annotation tools, parsed with one line for a fault.

XML may come from anywhere: no document type, so no entities, and neither large nor deep.
"""

import json
import re
from collections.abc import Callable
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from actionspan.errors import InputError

LARGEST = 1 << 27  # characters; a tree takes some ten times as much memory
_DEEPEST = 100
_BEFORE = re.compile(r"\s*(?:<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*(?:\[.*?\]\s*)?>)", re.DOTALL)
_NAME = re.compile(r"\s*<([\w:.-]+)")


def parse_json(
    file: str, text: str, to_object: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Any:
    """Parse JSON; `to_object` makes its objects of pairs.

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
    """Return the members of an object that are objects; of any other value, none."""
    if not isinstance(value, dict):
        return {}
    return {key: member for key, member in value.items() if isinstance(member, dict)}


def items(value: Any) -> list[Any]:
    """Return a list as it is, and an empty one for anything else."""
    return value if isinstance(value, list) else []


def root_name(text: str) -> str:
    """Return the name of the first element; empty if the text is not XML."""
    place = 0
    while found := _BEFORE.match(text, place):
        place = found.end()
    name = _NAME.match(text, place)
    return name[1] if name else ""


def parse_xml(file: str, text: str) -> Element:
    """Return the root of a document.

    Raises:
        InputError: It is not well-formed, has a document type, or is too large or too deep.
    """
    if len(text) > LARGEST:
        raise InputError(f"{file}: XML of {len(text):,} characters; at most {LARGEST:,} are read")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise InputError(f"{file}: not UTF-8 text; save the file as UTF-8")
    builder = TreeBuilder()
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise InputError("nested too deeply")
        builder.start(name, attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(name)

    def doctype(*_: object) -> None:
        raise InputError("a document type (DOCTYPE), which may define entities; remove it")

    parser = expat.ParserCreate("utf-8")  # whatever the file declares: its text is decoded already
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise InputError(f"{file}: line {error.lineno}: not XML: {reason}") from None
    except InputError as error:
        raise InputError(f"{file}: line {parser.CurrentLineNumber}: {error}") from None
    return builder.close()
