"""The input of `actionspan stream`: its settings, and its SOURCE, shown without passwords.

A source is a file, a camera of this machine, or an address.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from actionspan.errors import InputError, printable
from actionspan.settings import Checked, option

Policy = Literal["block", "newest"]
Executor = Literal["sequential", "thread", "process"]
SCHEMES = ("rtsp", "rtsps", "http", "https", "rtmp", "rtmps", "udp", "tcp")
_DIGITS = 4  # of a camera's number at most
_HTTP = ("http", "https")
# What some cameras want inside the path, such as /user=me_password=mine_channel=1.
_SECRET = re.compile(r"((?:pass\w*?|pwd|token|secret|auth|key)=)[^/&;]*", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class StreamSettings(Checked):
    """How a stream is read, how its work is shared out, and when it ends."""

    policy: Literal["auto", "block", "newest"] = option(
        "auto",
        "when frames come faster than they are worked on: block makes the source wait, newest "
        "drops whole snippets and names them; auto: block for files, newest for live sources",
    )
    rate: Literal["full", "real"] = option(
        "full", "play a file as fast as the work allows, or at its own rate, like a camera"
    )
    delay: float = option(
        2.0, "a proposal is sent at most this long after its end is seen", unit="seconds", least=0
    )
    executor: Executor = option(
        "thread", "what runs the stages; all give the same results, to the bit"
    )
    stages: int = option(
        2, "parts of equal work that flow and encoders are cut into, each for one core", least=1
    )
    threads: int = option(1, "cores of a single stage (executor sequential)", least=1)
    queue: int = option(
        8, "snippets that wait for the first stage at most; more block, or are dropped", least=1
    )
    sound: bool = option(
        False, "write the loudness of the source's sound next to actionness, if it has any"
    )
    duration: float | None = option(
        None, "end after so much of the stream; without it, at its end", unit="seconds", above=0
    )
    state_seconds: float = option(
        10.0, "how often what --resume needs is written", unit="seconds", above=0
    )
    open_seconds: float = option(
        10.0, "how long opening a live source may take", unit="seconds", above=0
    )
    read_seconds: float = option(
        10.0, "silence after which a live source is opened again", unit="seconds", above=0
    )
    reconnect_seconds: float = option(
        300.0,
        "how long a lost live source is tried again before the stream ends",
        unit="seconds",
        least=0,
    )

    def policy_for(self, *, live: bool) -> Policy:
        """Return the policy for a source.

        Raises:
            InputError: Nearly all of a file would be dropped.
        """
        if self.policy == "newest" and not live and self.rate != "real":
            raise InputError(
                "policy newest: a file at full speed would be dropped nearly whole; add --rate real"
            )
        if self.policy == "auto":
            return "newest" if live else "block"
        return self.policy


@dataclass(frozen=True, kw_only=True)
class LearningSettings(Checked):
    """How the network learns while a stream plays (with --learn)."""

    label_seconds: float = option(
        2.0, "labels of an instance are known so long after its end", unit="seconds", least=0
    )
    learning_window: int = option(
        128, "newest labelled snippets that each step learns from", unit="snippets", least=8
    )
    learning_rate: float = option(1e-4, "AdamW's step size", above=0)


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
    """Return the meaning of a command's SOURCE; nothing is opened.

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

    All before the last @ is hidden, even where a password holds a slash. Where a password could
    hold ? or # too, only the scheme is shown.
    """
    scheme, _, rest = address.partition("://")
    before, at, after = rest.rpartition("@")
    if "?" in before or "#" in before:
        return f"{scheme}://***"
    bare, *query = re.split(r"[?#]", after, maxsplit=1)
    bare = _SECRET.sub(r"\1***", printable(bare))
    return f"{scheme}://{'***@' * bool(at)}{bare}{'?***' * bool(query)}"
