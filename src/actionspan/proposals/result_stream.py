"""The videos of an ActivityNet result file one after another: a file may be larger than memory."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from actionspan.errors import InputError
from actionspan.files.storage import read_json

_CHARACTERS = 1 << 20  # read at once
_SPACE = re.compile(r"[ \t\n\r]*")
_AFTER = tuple(",]} \t\n\r")
_DECODER = json.JSONDecoder()


def read_results(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield each video id of `{"results": {video_id: …}}` with what the file has of it.

    Other keys of the file are passed over.

    Raises:
        InputError: The file is missing, is not JSON in UTF-8 or has no such object.
    """
    found = False
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = _Text(file)
            for key in _keys(text) if text.peek() == "{" else ():
                if key != "results" or text.peek() != "{":
                    text.value()
                elif found:
                    raise InputError(f"{path}: two objects 'results'; keep one")
                else:
                    found = True
                    for video_id in _keys(text):
                        yield video_id, text.value()
            if found and text.peek():
                raise ValueError("more than one JSON value")
    except (OSError, ValueError, RecursionError):
        read_json(path)  # names the line
        raise
    if not found:
        read_json(path)
        raise InputError(
            f'{path}: not a result file: no proposals in it; write {{"results": {{video: '
            '[{"score": 0.9, "segment": [1.0, 2.5]}]}}'
        )


class _Text:
    """A JSON text read as far as it is needed."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._text, self._at, self._ended = file, "", 0, False

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
        closed = self.peek() in '"[{'  # a number or a word goes on up to what ends it
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
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
