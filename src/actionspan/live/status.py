"""The latencies of a stream and its status, a row a second."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from actionspan.errors import InputError

STATUS = "status.tsv"
_KEPT = 10_000  # latencies that the final summary is made of at most: the last ones


class Latency(NamedTuple):
    """From the arrival of a frame to its answer, in seconds."""

    look_ahead: float  # waiting for the frames that the model wants to see first
    compute: float  # flow, encoders, temporal network, proposals
    queueing: float  # everything else: waiting for a free stage

    def milliseconds(self) -> dict[str, float]:
        """Return the total and the parts in milliseconds."""
        named = {"total": sum(self), **self._asdict()}
        return {name: round(1000 * seconds, 3) for name, seconds in named.items()}


class Status:
    """Writes a row to status.tsv after each `every` seconds, and remembers latencies.

    `append`: an earlier run has begun the file.
    """

    def __init__(self, folder: Path, *, append: bool = False, every: float = 1.0) -> None:
        self._path, self._append, self._every = folder / STATUS, append, every
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
        passed = max(now - self._last, 1e-9)
        row: dict[str, Any] = {"seconds": f"{now - self._began:.1f}", **counts}
        entered, earlier = submitted, self._busy or [0.0] * len(stages)
        for number, (stage, before) in enumerate(zip(stages, earlier, strict=True), start=1):
            share = min((stage["busy_seconds"] - before) / passed, 1)
            row[f"queue_{number}"] = max(0, entered - stage["samples"])
            row[f"busy_{number}"] = f"{share:.3f}"
            entered = stage["samples"]
        row |= {f"latency_{key}_ms": value for key, value in _percentiles(self._recent, "").items()}
        self._line(row)
        self._last, self._recent = now, []
        self._busy = [stage["busy_seconds"] for stage in stages]

    def summary(self) -> dict[str, Any]:
        """Return percentiles of the total and of its parts in milliseconds."""
        named = {"total": [sum(latency) for latency in self._all]}
        for place, name in enumerate(Latency._fields):
            named[name] = [latency[place] for latency in self._all]
        return {name: _percentiles(seconds, None) for name, seconds in named.items()}

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with suppress(OSError):  # every line was flushed; a full disk was reported then
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
                self._file.write("" if again else header)
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
