"""The files of a stream, which are valid at any instant, its latencies and its status.

Memory for proposals and chapters is bounded, however long the stream is.
"""

import json
import os
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from actionspan.errors import InputError
from actionspan.live.proposing import OnlineProposal
from actionspan.live.source import Gap
from actionspan.proposals.chapters import choose_chapters, webvtt
from actionspan.proposals.segments import Row, write_proposals
from actionspan.proposals.settings import ChapterSettings
from actionspan.storage.checksums import Growing
from actionspan.storage.writing import write_text
from actionspan.video.sound import LiveSound

_MOST = 100_000  # proposals in the tables: the best; a camera finds some thousands an hour
_SPARE = 10_000  # beyond them, before the worst are dropped
_SETTLED_SECONDS = 600.0  # chapters that ended so long ago are not chosen again
EVENTS, ACTIONNESS, CHAPTERS = "events.jsonl", "actionness.tsv", "live.vtt"
_GROWING = (EVENTS, ACTIONNESS)
PROPOSALS = ("proposals.json", "proposals.csv")
STATUS = "status.tsv"
_COLUMNS = ("snippet", "seconds", "start", "action", "end")
_DIGITS = 6
_KEPT = 10_000  # latencies that the final summary is made of at most: the last ones


class Found:
    """The best proposals of a stream."""

    def __init__(self) -> None:
        self.count = 0  # of all, those dropped too
        self.labelled = self.zoned = False
        self._kept: list[Row] = []

    def add(self, row: Row) -> None:
        """Add a proposal."""
        self.count += 1
        self.labelled |= "label" in row
        self.zoned |= "zone" in row
        self._kept.append(row)
        if len(self._kept) > _MOST + _SPARE:
            self._kept = self.rows()

    def rows(self) -> list[Row]:
        """Return the proposals, best first; of equal scores the earliest."""
        return sorted(self._kept, key=lambda row: -row["score"])[:_MOST]


class LiveChapters:
    """WebVTT chapters: the best proposals that do not overlap, of the last ten minutes or more.

    Earlier ones are settled. No score is too low, as the best of the video may be yet to come.
    """

    def __init__(self) -> None:
        self._settled = ""  # cues
        self._until = 0.0  # seconds: where the last of them ends
        self._recent: list[Row] = []
        self._newest = 0.0

    def add(self, row: Row) -> None:
        """Add a proposal."""
        start, end = row["segment"]
        self._newest = max(self._newest, end)
        if start >= self._until:
            self._recent.append(row)
        if self._recent and self._newest - self._recent[0]["segment"][1] > 2 * _SETTLED_SECONDS:
            self._settle()

    def write(self, path: Path) -> None:
        """Write all chapters, atomically."""
        text = webvtt(self._recent, self._settings())
        write_text(path, text.replace("WEBVTT\n", "WEBVTT\n" + self._settled, 1))

    def _settle(self) -> None:
        horizon = self._newest - _SETTLED_SECONDS
        chosen = [row for _, row in choose_chapters(self._recent, self._settings())]
        old = [row for row in chosen if row["segment"][1] < horizon]
        self._settled += webvtt(old, self._settings()).removeprefix("WEBVTT\n")
        self._until = max([self._until, *(row["segment"][1] for row in old)])
        self._recent = [
            row
            for row in self._recent
            if row["segment"][1] >= horizon and row["segment"][0] >= self._until
        ]

    def _settings(self) -> ChapterSettings:
        return ChapterSettings(chapters=max(1, len(self._recent)), share=0.0, shortest=0.0)


class Outputs:
    """Writes the events of a stream. Every line is complete as soon as it is there.

    Args:
        folder: Made if it is missing.
        name: The video's in proposals.json.
        echo: Gets the events too.
        written: The files of an earlier run, as `written` returns them; later lines are cut off.
            None: begin with empty files.
        tell: Called with the event of each proposal.
        sound: Gives each row of actionness the loudness since the one before, in dB.

    Raises:
        InputError: Files of the earlier run are gone or were changed.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        echo: TextIO | None = None,
        written: Mapping[str, str] | None = None,
        tell: Callable[[Mapping[str, Any]], None] | None = None,
        sound: LiveSound | None = None,
    ) -> None:
        self._sound, self._columns = sound, (*_COLUMNS, *["loudness"] * (sound is not None))
        self.folder, self.name, self.echo, self.tell = folder, name, echo, tell
        self.found, self._chapters = Found(), LiveChapters()
        folder.mkdir(parents=True, exist_ok=True)
        none = {file: Growing() for file in _GROWING}
        self._sums = none if written is None else unchanged(folder, written)
        self._files: dict[str, TextIO] = {}
        for file in _GROWING:
            if written is not None:
                os.truncate(folder / file, self._sums[file].size)
            self._files[file] = (folder / file).open(
                "w" if written is None else "a", encoding="utf-8", newline="\n"
            )
        if written is None:
            self._line(ACTIONNESS, "\t".join(self._columns))
        else:
            with (folder / EVENTS).open(encoding="utf-8") as lines:
                for event in map(json.loads, lines):
                    if event["event"] == "proposal":
                        self._add(event)
                    elif sound is not None and event["event"] == "actionness":
                        sound.since = event["seconds"]
        self._unwritten = False
        self._rewriting, self._written = 0.0, 0.0  # seconds the tables took, and when
        self._chapters.write(folder / CHAPTERS)
        self.write_tables()

    def event(self, kind: str, **fields: Any) -> None:
        """Write an event with its fields."""
        made = {"event": kind} | fields
        line = json.dumps(made)
        self._line(EVENTS, line)
        if self.echo is not None:
            print(line, file=self.echo, flush=True)
        if self.tell is not None and kind == "proposal":
            self.tell(made)

    def actionness(
        self,
        snippet: int,
        seconds: float,
        curves: tuple[float, float, float],
        latency_ms: Mapping[str, float],
    ) -> None:
        """Write start, actionness and end of a snippet."""
        values = [round(float(value), _DIGITS) for value in (seconds, *curves)]
        cells = [str(snippet), *(f"{value:.{_DIGITS}f}" for value in values)]
        named: dict[str, float | None] = dict(zip(_COLUMNS[1:], values, strict=True))
        if self._sound is not None:
            level = self._sound.level(seconds)
            named["loudness"] = None if level is None else round(level, 1)
            cells.append("" if level is None else f"{level:.1f}")
        self._line(ACTIONNESS, "\t".join(cells))
        self.event("actionness", snippet=snippet, **named, latency_ms=dict(latency_ms))

    def proposals(self, found: Sequence[OnlineProposal], emitted: float) -> None:
        """Write proposals; `emitted` is how many seconds of the stream have been seen."""
        for proposal in found:
            fields = {key: value for key, value in vars(proposal).items() if value is not None}
            self.event("proposal", **fields, emitted=emitted)
            self._add(fields)
        if found:
            self._unwritten = True
            self._chapters.write(self.folder / CHAPTERS)

    def gap(self, gap: Gap) -> None:
        """Write a stretch without results."""
        seconds = {"from": round(gap.start, _DIGITS), "to": round(gap.end, _DIGITS)}
        self.event("gap", **seconds, dropped=gap.dropped, reason=gap.reason)

    def write_tables(self) -> None:
        """Write proposals.json and proposals.csv: the best of all, in order."""
        begun = time.monotonic()
        paths = [self.folder / file for file in PROPOSALS]
        more: Any = {"labelled": self.found.labelled, "zoned": self.found.zoned}
        write_proposals([(self.name, self.found.rows())], *paths, **more)
        self._unwritten, self._written = False, time.monotonic()
        self._rewriting = self._written - begun

    def refresh(self) -> None:
        """Write the tables if there is something new, in at most a twentieth of the time."""
        if self._unwritten and time.monotonic() - self._written >= 20 * self._rewriting:
            self.write_tables()

    def written(self) -> dict[str, str]:
        """Return the fingerprints of the growing files, which are on the disk."""
        for file in self._files.values():
            os.fsync(file.fileno())
        return {name: str(total) for name, total in self._sums.items()}

    def close(self) -> None:
        """Write the rest and close the files."""
        try:
            if self._unwritten:
                self.write_tables()
        finally:
            for file in self._files.values():
                with suppress(OSError):  # every line was flushed; a full disk was said then
                    file.close()

    def _line(self, file: str, text: str) -> None:
        try:
            self._files[file].write(text + "\n")
            self._files[file].flush()
            self._sums[file].add(f"{text}\n".encode())
        except OSError as error:
            raise InputError(f"{self.folder / file}: {error.strerror}") from None

    def _add(self, event: Mapping[str, Any]) -> None:
        row: Row = {"score": event["score"], "segment": [event["start"], event["end"]]}
        if "label" in event:
            row |= {"label": event["label"], "label_score": event["label_score"]}
        if "zone" in event:
            row["zone"] = event["zone"]
        self.found.add(row)
        self._chapters.add(row)


def unchanged(folder: Path, written: Mapping[str, str]) -> dict[str, Growing]:
    """Return the fingerprints of files up to where they were written, to continue from.

    Raises:
        InputError: One is gone or was changed since.
    """
    found = {}
    for name, known in written.items():
        try:
            found[name] = Growing(folder / name, int(known.split()[0]))
        except OSError as error:
            raise InputError(f"{folder / name}: {error.strerror}") from None
        if str(found[name]) != known:
            raise InputError(f"{folder / name}: changed since it was written")
    return found


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
    """Writes a row to status.tsv every so many seconds, and remembers latencies.

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
