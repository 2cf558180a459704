"""The files of a stream, which are valid at any instant.

Memory for proposals and chapters is bounded, however long the stream is.
"""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from actionspan.errors import InputError
from actionspan.live.hand_over import Gap
from actionspan.live.proposing import OnlineProposal
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
_COLUMNS = ("snippet", "seconds", "start", "action", "end")
_DIGITS = 6


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
        on_proposal: Called with the event of each proposal.
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
        on_proposal: Callable[[Mapping[str, Any]], None] | None = None,
        sound: LiveSound | None = None,
    ) -> None:
        self._sound, self._columns = sound, (*_COLUMNS, *["loudness"] * (sound is not None))
        self.folder, self.name, self.echo, self.on_proposal = folder, name, echo, on_proposal
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
        if self.on_proposal is not None and kind == "proposal":
            self.on_proposal(made)

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
                with suppress(OSError):  # every line was flushed; a full disk was reported then
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
