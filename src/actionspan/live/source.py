"""What SOURCE means: a file, a camera of this machine, or an address; shown without passwords."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from actionspan.errors import InputError, printable

SCHEMES = ("rtsp", "rtsps", "http", "https", "rtmp", "rtmps", "udp", "tcp")
_DIGITS = 4  # of a camera's number at most
_HTTP = ("http", "https")
# What some cameras want inside the path, such as /user=me_password=mine_channel=1.
_SECRET = re.compile(r"((?:pass\w*?|pwd|token|secret|auth|key)=)[^/&;]*", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Source:
    """A source as it is opened (`place`) and as it may be shown and written (`shown`)."""

    kind: Literal["file", "camera", "address"]
    place: str = field(repr=False)  # may hold a password: never printed, logged or written
    shown: str
    name: str  # of the video in proposals.json

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.place)

    @property
    def may_be_recorded(self) -> bool:
        """Whether it may have an end: a file, or a file on a web server."""
        return self.kind == "file" or self.place.split(":", 1)[0].lower() in _HTTP


def parse_source(text: str) -> Source:
    """Return what a command's SOURCE means; nothing is opened.

    Raises:
        InputError: The form is not known. The message never holds what could be a password.
    """
    scheme, colon, rest = text.partition(":")
    if scheme == "camera" and colon:
        if not rest.isascii() or not rest.isdigit() or len(rest) > _DIGITS:
            raise InputError("SOURCE camera: give the camera's number, such as camera:0")
        return Source(kind="camera", place=rest, shown=text, name=f"camera-{int(rest)}")
    if "://" not in text and not (colon and scheme.lower() in SCHEMES and rest[:1] == "/"):
        return Source(kind="file", place=text, shown=printable(text), name=Path(text).stem)
    if scheme.lower() not in SCHEMES or not rest.startswith("//") or not rest[2:]:
        raise InputError(
            f"SOURCE: an address that begins with {', '.join(SCHEMES[:-1])} or {SCHEMES[-1]} "
            "and ://, a file, or camera:0"
        )
    shown = redacted(text)
    bare = shown.partition("://")[2].replace("***@", "").removesuffix("?***")
    name = re.sub(r"[^A-Za-z0-9.]+", "-", bare).strip("-.") or scheme
    return Source(kind="address", place=text, shown=shown, name=name)


def redacted(address: str) -> str:
    """Return an address without user, password, query and fragment.

    Whatever stands before the last @ is hidden, even where a password holds a slash. Where it
    could hold ? or # too, nothing but the scheme is shown.
    """
    scheme, _, rest = address.partition("://")
    before, at, after = rest.rpartition("@")
    if "?" in before or "#" in before:
        return f"{scheme}://***"
    bare, *query = re.split(r"[?#]", after, maxsplit=1)
    bare = _SECRET.sub(r"\1***", printable(bare))
    return f"{scheme}://{'***@' * bool(at)}{bare}{'?***' * bool(query)}"
