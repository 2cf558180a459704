"""How a stream is doing: latencies, queues and the busy share of each stage, second by second."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from actionspan.errors import InputError

FILE = "status.tsv"
_KEPT = 10_000  # latencies that the final summary is made of at most: the last ones
_PARTS = ("look_ahead", "compute", "queueing")


class Latency(NamedTuple):
    """From the arrival of a frame to its answer, in seconds."""

    look_ahead: float  # waiting for the frames that the model wants to see first
    compute: float  # flow, encoders, temporal network, proposals
    queueing: float  # everything else: waiting for a free stage

    @property
    def total(self) -> float:
        """From arrival to emission."""
        return sum(self)

    def milliseconds(self) -> dict[str, float]:
        """Return the parts and their sum in milliseconds."""
        named = {"total": self.total} | dict(zip(_PARTS, self, strict=True))
        return {name: round(1000 * seconds, 3) for name, seconds in named.items()}


class Counts(NamedTuple):
    """Totals since the stream began."""

    frames: int  # read
    submitted: int  # snippets given to the first stage
    done: int  # snippets answered
    dropped: int  # snippets
    waiting: int  # snippets before the first stage, now


class Status:
    """Writes a row a second and remembers latencies.

    Args:
        folder: Where status.tsv is written.
        append: Whether an earlier run has begun it.
        every: Seconds between two rows.
    """

    def __init__(self, folder: Path, *, append: bool = False, every: float = 1.0) -> None:
        self._path, self._append, self._every = folder / FILE, append, every
        self._file: TextIO | None = None
        self._began = self._last = time.monotonic()
        self._busy: list[float] = []
        self._recent: list[float] = []
        self._all: deque[Latency] = deque(maxlen=_KEPT)

    def answered(self, latency: Latency) -> None:
        """Note the latency of a snippet's actionness."""
        self._recent.append(latency.total)
        self._all.append(latency)

    def due(self) -> bool:
        """Whether it is time for a row."""
        return time.monotonic() - self._last >= self._every

    def write(self, counts: Counts, stages: Sequence[Mapping[str, Any]]) -> None:
        """Write a row; `stages` is what `Pipeline.report` returns."""
        now = time.monotonic()
        passed, busy = now - self._last, [stage["busy_seconds"] for stage in stages]
        earlier = self._busy or [0.0] * len(busy)
        shares = [(b - a) / max(passed, 1e-9) for a, b in zip(earlier, busy, strict=True)]
        entered = [counts.submitted, *(stage["samples"] for stage in stages)]
        queues = [max(0, a - b) for a, b in zip(entered, entered[1:], strict=False)]
        row: dict[str, Any] = {
            "seconds": f"{now - self._began:.1f}",
            "frames": counts.frames,
            "dropped": counts.dropped,
            "done": counts.done,
            "waiting": counts.waiting,
        }
        for number, (queue, share) in enumerate(zip(queues, shares, strict=True), start=1):
            row |= {f"queue_{number}": queue, f"busy_{number}": f"{min(share, 1):.3f}"}
        row |= _percentiles(self._recent)
        self._line(row)
        self._last, self._busy, self._recent = now, busy, []

    def summary(self) -> dict[str, Any]:
        """Return percentiles in milliseconds, of the total and of its parts."""
        columns = {"total": [each.total for each in self._all]}
        for part in _PARTS:
            columns[part] = [getattr(each, part) for each in self._all]
        return {name: _percentiles(values, prefix="") for name, values in columns.items()}

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with suppress(OSError):  # every line was flushed; a full disk was said then
                self._file.close()

    def _line(self, row: Mapping[str, Any]) -> None:
        header = "\t".join(row) + "\n"
        try:
            if self._file is None:
                again = self._append and self._path.is_file() and _first_line(self._path) == header
                self._file = self._path.open("a" if again else "w", encoding="utf-8")
                if not again:
                    self._file.write(header)
            self._file.write("\t".join(map(str, row.values())) + "\n")
            self._file.flush()
        except OSError as error:
            raise InputError(f"{self._path}: {error.strerror}") from None


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.readline()


def _percentiles(seconds: Sequence[float], prefix: str = "latency_") -> dict[str, Any]:
    """Return median, 95th percentile and maximum in milliseconds; empty where there is no value."""
    names = [f"{prefix}{name}_ms" if prefix else name for name in ("p50", "p95", "max")]
    if not seconds:
        return dict.fromkeys(names, "" if prefix else None)
    found = np.percentile(seconds, [50, 95, 100]).tolist()
    return {name: round(1000 * value, 1) for name, value in zip(names, found, strict=True)}
