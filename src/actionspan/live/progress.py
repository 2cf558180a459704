"""How far a stream is, what `--resume` needs of it, and how it is doing second by second."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
import torch

from actionspan.errors import InputError
from actionspan.storage.torch_files import SPOILT, read_torch, restoring, unsealed, write_sealed

STATE_FILE, STATUS_FILE = "state.pt", "status.tsv"
_FORMAT = "actionspan stream 3"
_ARRAY = "numpy array"  # key of an array inside the file, which holds tensors and plain values only
_KEPT = 10_000  # latencies that the final summary is made of at most: the last ones


class Ended(NamedTuple):
    """How a stream ended."""

    reason: str  # finished, limit or interrupted
    seconds: float
    proposals: int | None

    @property
    def line(self) -> str:
        """One line for people."""
        found = f"{self.proposals} proposals in " if self.proposals is not None else ""
        more = "; --resume goes on" if self.reason == "interrupted" else ""
        return f"{found}{self.seconds:.1f} s, {self.reason}{more}"


class Place(NamedTuple):
    """A snippet whose actionness is still to come."""

    number: int
    seconds: float  # time stamp
    arrived: float  # `time.monotonic` when its centre frame came


@dataclass(kw_only=True)
class Progress:
    """How far a stream is. With the last two fields it is the state that a later run resumes."""

    made_of: str  # digest of what must be the same to go on: source, model, settings
    ended: bool = False  # nothing is left to do
    snippets: int = 0  # numbered so far; the next has this number
    seconds: float = 0.0  # time stamp of the last one worked on
    done: int = 0  # worked on
    dropped: int = 0
    began: float = 0.0  # seconds since 1970 of the first frame of a live source
    unanswered: deque[Place] = field(default_factory=deque)
    written: Mapping[str, str] = field(default_factory=dict)  # fingerprints of files, by name
    proposer: Mapping[str, Any] = field(default_factory=dict)

    @property
    def date(self) -> str:
        """Date and time of the first frame of a live source."""
        return datetime.fromtimestamp(self.began, UTC).isoformat(timespec="milliseconds")


def write_state(folder: Path, at: Progress) -> None:
    """Write a state, atomically."""
    unanswered = [(place.number, place.seconds) for place in at.unanswered]
    changed = {"unanswered": unanswered, "proposer": _packed(at.proposer)}
    write_sealed(folder / STATE_FILE, vars(at) | changed | {"format": _FORMAT})


def read_state(folder: Path, made_of: str) -> Progress | None:
    """Return the state of an earlier run, None if there is none.

    Raises:
        InputError: It belongs to another stream, or cannot be read.
    """
    path = folder / STATE_FILE
    if not path.is_file():
        return None
    content = read_torch(path, SPOILT)
    if not isinstance(content, Mapping) or content.get("format") != _FORMAT:
        raise InputError(f"{path}: not the state of a stream ({_FORMAT!r}); delete it")
    if content.get("made_of") != made_of:
        raise InputError(
            f"{path}: of another stream: the source, the model or a setting has changed; go on as "
            "before, or begin again without --resume"
        )
    content = unsealed(path, content)
    with restoring(path):
        at = Progress(**{name: content[name] for name in Progress.__dataclass_fields__})
        now = time.monotonic()
        at.unanswered = deque(
            Place(number, seconds, now) for number, seconds in content["unanswered"]
        )
        at.proposer = _unpacked(at.proposer)
    return at


def _packed(value: Any) -> Any:
    """Return a value with its arrays as tensors, which are safe to read again."""
    if isinstance(value, np.ndarray):
        return {_ARRAY: torch.from_numpy(np.ascontiguousarray(value).copy()), "shape": value.shape}
    if isinstance(value, np.generic):
        return {_ARRAY: torch.from_numpy(np.array(value)), "shape": None}
    if isinstance(value, Mapping):
        return {key: _packed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_packed, value))
    return value


def _unpacked(value: Any) -> Any:
    if isinstance(value, Mapping):
        if _ARRAY in value:
            array = value[_ARRAY].numpy()
            return array[()] if value["shape"] is None else array.reshape(value["shape"])
        return {key: _unpacked(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_unpacked, value))
    return value


class Latency(NamedTuple):
    """From the arrival of a frame to its answer, in seconds."""

    look_ahead: float  # waiting for the frames that the model wants to see first
    compute: float  # flow, encoders, temporal network, proposals
    queueing: float  # everything else: waiting for a free stage

    def named(self) -> dict[str, float]:
        """Return the total and the parts by name."""
        return {"total": sum(self), **self._asdict()}

    def milliseconds(self) -> dict[str, float]:
        """Return the total and the parts in milliseconds."""
        return {name: round(1000 * seconds, 3) for name, seconds in self.named().items()}


class Status:
    """Writes a row to status.tsv every so many seconds, and remembers latencies.

    `append`: an earlier run has begun the file.
    """

    def __init__(self, folder: Path, *, append: bool = False, every: float = 1.0) -> None:
        self._path, self._append, self._every = folder / STATUS_FILE, append, every
        self._file: TextIO | None = None
        self._began = self._last = time.monotonic()
        self._busy: list[float] = []
        self._recent: list[float] = []
        self._all: deque[Latency] = deque(maxlen=_KEPT)

    def answered(self, latency: Latency) -> None:
        """Note the latency of a snippet's actionness."""
        self._recent.append(sum(latency))
        self._all.append(latency)

    def due(self) -> bool:
        """Whether it is time for a row."""
        return time.monotonic() - self._last >= self._every

    def write(self, stages: Sequence[Mapping[str, Any]], *, submitted: int, **counts: int) -> None:
        """Write a row.

        Args:
            stages: What `Pipeline.report` returns.
            submitted: Snippets given to the first stage since the stream began.
            counts: Further columns, such as the frames read so far.
        """
        now = time.monotonic()
        passed, busy = now - self._last, [stage["busy_seconds"] for stage in stages]
        earlier = self._busy or [0.0] * len(busy)
        shares = [(b - a) / max(passed, 1e-9) for a, b in zip(earlier, busy, strict=True)]
        entered = [submitted, *(stage["samples"] for stage in stages)]
        queues = [max(0, a - b) for a, b in zip(entered, entered[1:], strict=False)]
        row: dict[str, Any] = {"seconds": f"{now - self._began:.1f}", **counts}
        for number, (queue, share) in enumerate(zip(queues, shares, strict=True), start=1):
            row |= {f"queue_{number}": queue, f"busy_{number}": f"{min(share, 1):.3f}"}
        row |= {f"latency_{key}_ms": value for key, value in _percentiles(self._recent, "").items()}
        self._line(row)
        self._last, self._busy, self._recent = now, busy, []

    def summary(self) -> dict[str, Any]:
        """Return percentiles of the total and of its parts in milliseconds."""
        named = [latency.named() for latency in self._all]
        names = ("total", *Latency._fields)
        return {name: _percentiles([each[name] for each in named], None) for name in names}

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with suppress(OSError):  # every line was flushed; a full disk was said then
                self._file.close()

    def _line(self, row: Mapping[str, Any]) -> None:
        header = "\t".join(row) + "\n"
        try:
            if self._file is None:
                again = self._append and self._path.is_file()
                if again:
                    with self._path.open(encoding="utf-8") as file:
                        again = file.readline() == header
                self._file = self._path.open("a" if again else "w", encoding="utf-8")
                if not again:
                    self._file.write(header)
            self._file.write("\t".join(map(str, row.values())) + "\n")
            self._file.flush()
        except OSError as error:
            raise InputError(f"{self._path}: {error.strerror}") from None


def _percentiles(seconds: Sequence[float], missing: str | None) -> dict[str, Any]:
    """Return median, 95th percentile and maximum in milliseconds, or `missing` for each."""
    names = ("p50", "p95", "max")
    if not seconds:
        return dict.fromkeys(names, missing)
    found = np.percentile(seconds, [50, 95, 100]).tolist()
    return {name: round(1000 * value, 1) for name, value in zip(names, found, strict=True)}
