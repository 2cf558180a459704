"""The members of an object in a JSON file one after another: a file may be larger than memory."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TextIO

_CHARACTERS = 1 << 20  # read at once
_SPACE = re.compile(r"[ \t\n\r]*")
_AFTER = tuple(",]} \t\n\r")


class RepeatedMemberError(ValueError):
    """A file has the object in it twice."""


_ObjectHook = Callable[[list[tuple[str, Any]]], Any]


def members(
    file: TextIO, name: str, object_hook: _ObjectHook | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield the members of the object `name` of a JSON file: `{"name": {key: value, …}}`.

    Other members of the file are passed over. `object_hook` makes objects of pairs.

    Raises:
        KeyError: The file is not an object, or has no such object in it.
        RepeatedMemberError: It has two, and the members of the first were yielded.
        ValueError: It is not JSON.
    """
    text, found = _Text(file, object_hook), False
    for key in _keys(text) if text.peek() == "{" else ():
        if key != name or text.peek() != "{":
            text.value()
        elif found:
            raise RepeatedMemberError(f"two objects {name!r}")
        else:
            found = True
            for member in _keys(text):
                yield member, text.value()
    if not found:
        raise KeyError(f"no object {name!r}")
    if text.peek():
        raise ValueError("more than one JSON value")


class _Text:
    """A JSON text read as far as it is needed."""

    def __init__(self, file: TextIO, object_hook: _ObjectHook | None) -> None:
        self._file, self._text, self._at, self._ended = file, "", 0, False
        self._decoder = json.JSONDecoder(object_pairs_hook=object_hook)

    def peek(self) -> str:
        """Return the next character that is not a space; nothing at the end."""
        while True:
            space = _SPACE.match(self._text, self._at)
            assert space is not None
            self._at = space.end()
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._read_on()

    def take(self, wanted: str) -> None:
        """Pass over the next character, which must be `wanted`."""
        if self.peek() != wanted:
            raise ValueError(f"no {wanted!r}")
        self._at += 1

    def value(self) -> Any:
        """Return the next JSON value."""
        closed = self.peek() in '"[{'  # a number or a word continues up to its end
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
                if closed or self._ended or self._text[end : end + 1] in _AFTER:
                    self._at = end
                    return value
            except json.JSONDecodeError:
                if self._ended:
                    raise
            self._read_on()

    def _read_on(self) -> None:
        rest = self._text[self._at :]
        more = self._file.read(max(_CHARACTERS, len(rest)))  # a long value is tried a few times
        self._text, self._at, self._ended = rest + more, 0, not more


def _keys(text: _Text) -> Iterator[str]:
    """Yield the keys of the next object; the caller takes the value of each."""
    text.take("{")
    following = text.peek() != "}"
    while following:
        if text.peek() != '"':
            raise ValueError("no key")
        key: str = text.value()
        text.take(":")
        yield key
        following = text.peek() == ","
        if following:
            text.take(",")
    text.take("}")
