"""JPEGs of a camera that sends multipart/x-mixed-replace, as cheap cameras do over HTTP.

Lengths are believed where a picture ends there, as it is then whole before the next part begins.
What is between two parts, or is no JPEG, is passed over up to the next boundary.
"""

import re
from collections.abc import Iterator

from actionspan.errors import InputError

LOOK = 4096  # bytes among which the first boundary is
_MOST = 1 << 26  # bytes of a part
_LONGEST_HEAD = 1 << 14  # bytes of the lines before a picture
_FIRST = re.compile(
    rb"(--[!-~]{1,200})[ \t]*\r?\n(?:[^\r\n:]{1,99}:[^\r\n]*\r?\n){0,20}?content-type:[ \t]*image/",
    re.IGNORECASE,
)
_HEAD_ENDS = re.compile(rb"\r?\n\r?\n")
_KIND = re.compile(rb"^content-type:[ \t]*image/jpe?g", re.IGNORECASE | re.MULTILINE)
_LENGTH = re.compile(rb"^content-length:[ \t]*(\d{1,20})", re.IGNORECASE | re.MULTILINE)
_PICTURE_ENDS = b"\xff\xd9"


def find_boundary(data: bytes) -> bytes | None:
    """Return the boundary of what begins with `data`; None: it is no multipart with pictures."""
    found = _FIRST.search(data)
    return found[1] if found else None


class Parts:
    """Cuts bytes into pictures as they come.

    Args:
        boundary: With its two dashes.
    """

    def __init__(self, boundary: bytes) -> None:
        self._boundary = boundary
        self._data = bytearray()
        self._in_picture = False
        self._length: int | None = None  # of the picture, as its head says
        self._searched = 0  # bytes that hold no boundary

    def add(self, data: bytes) -> Iterator[bytes]:
        """Take what has come, and yield each picture that is whole.

        Raises:
            InputError: There is no boundary in 64 MiB; the line lacks the source.
        """
        self._data += data
        while (picture := self._next()) is not None:
            if picture:
                yield picture
        if len(self._data) > _MOST:
            raise InputError(f"a part of more than {_MOST >> 20} MiB: no boundary ends it")

    def _next(self) -> bytes | None:
        """Return a picture, nothing where something else was passed over; None: more must come."""
        if self._in_picture:
            return self._picture()
        at = self._data.find(self._boundary)
        if at < 0:
            del self._data[: -len(self._boundary)]
            return None
        del self._data[:at]
        head = _HEAD_ENDS.search(self._data, len(self._boundary))
        if head is None and len(self._data) < _LONGEST_HEAD:
            return None
        lines = bytes(self._data[: head.start()]) if head else b""
        if self._boundary in lines[1:] or not _KIND.search(lines):
            del self._data[: len(self._boundary)]
            return b""
        length = _LENGTH.search(lines)
        assert head is not None
        del self._data[: head.end()]
        self._in_picture, self._searched = True, 0
        self._length = int(length[1]) if length else None
        return b""

    def _picture(self) -> bytes | None:
        end = self._length if self._length and self._ends_at(self._length) else None
        if end is None:
            end = self._data.find(b"\n" + self._boundary, self._searched)
            self._searched = max(0, len(self._data) - len(self._boundary))
        if end < 0:
            return None
        picture = bytes(self._data[:end])
        del self._data[:end]
        self._in_picture = False
        return picture

    def _ends_at(self, length: int) -> bool:
        """Whether a picture is there and ends where its head says so."""
        there = self._data[max(0, length - 64) : length]
        return len(self._data) >= length and there.rstrip(b"\0\r\n").endswith(_PICTURE_ENDS)
