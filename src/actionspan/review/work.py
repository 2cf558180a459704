"""The work behind the served page: videos are encoded, proposed for and learned from."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Self

from actionspan import __version__
from actionspan.dataset.recordings import Places
from actionspan.errors import InputError, JobError, counted
from actionspan.jobs.progress import progress
from actionspan.jobs.shards import ShardWork
from actionspan.proposals.bundle_files import included_model
from actionspan.proposals.model_bundle import Bundle, load_bundle
from actionspan.propose.page import learned
from actionspan.propose.proposer import proposed_of
from actionspan.propose.results import Result, Shown, result_of
from actionspan.review.copies import Copies
from actionspan.review.corrections import Corrections
from actionspan.review.footage import Encoded, encode_all, source_with_zones
from actionspan.review.keys import LabelKeys
from actionspan.review.page import ServedPage
from actionspan.review.stretches import write_stretches
from actionspan.review.zones import DrawnZones
from actionspan.storage.process import hold_file
from actionspan.storage.writing import read_json, write_json
from actionspan.video.zones import zones_of

_PATIENCE = 5.0  # seconds for the work to end
_RETRY = 60.0  # seconds until work that an error ended begins again


class ReviewWork:
    """A thread that looks at the videos, then learns whenever there is enough to learn from.

    Args:
        folder: For all files; those that are there already are used.
        videos: Files by id.
        encoding: Number of videos encoded at once, and of the cores of each.
        copies: Make copies of videos that browsers do not play.
        address: Of the page, for a message when the same folder is opened a second time.
        keys: A file of keys of labels; without it the folder's keys stay.
        places: Files and clocks of recordings; by default those noted in the folder.
        sound: Show loudness and its changes.

    Raises:
        InputError: Another process has the folder open, or something in it is damaged.
    """

    def __init__(
        self,
        folder: Path,
        videos: Mapping[str, Path],
        encoding: ShardWork | None = None,
        *,
        copies: bool = True,
        address: str = "",
        keys: Path | None = None,
        places: Places | None = None,
        sound: bool = False,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            self._held = hold_file(folder / ".lock", f"{address} (pid {os.getpid()})")
        except BlockingIOError as error:
            raise InputError(f"{folder}: already open at {error}") from None
        self.folder, self.videos, self._encoding = folder, videos, encoding
        self.keys = LabelKeys(folder, keys)
        self.corrections = Corrections(folder / "corrections", videos, folder / "corrections.csv")
        for name, line in self.corrections.remarks().items():
            print(f"{name}: {line}", file=sys.stderr)
        self._copies, self._sound = Copies(folder, videos, wanted=copies), sound
        self._page = ServedPage(folder, places or Places(folder), self._copies.note)
        self.page = self._page.path
        self._model = folder / "model/model.safetensors"
        self._note = folder / "model/learned_from.json"
        self._noted = learned(self._model)
        # size and time of the videos looked at, and their zones
        self._seen: dict[str, Mapping[str, Any]] = {}
        self._encoded, self._results = dict[str, Encoded](), dict[str, Result]()
        self._broken = dict[str, str]()
        self._learned_from = read_json(self._note) if self._note.exists() else {}
        # corrected videos, whether or not it came to anything
        self._tried = set(self._learned_from).intersection(self.corrections.done())
        self._doing, self._failure = "starting", ""
        self._wake, self._asked, self._closed = threading.Condition(), False, False
        self._zones, self._redrawn = DrawnZones(folder / "zones.json"), False
        self._child: subprocess.Popen[str] | None = None
        try:
            self._write_page()
        except JobError as error:  # without room the last one is shown
            if not self.page.is_file():
                raise
            self._failure = str(error)
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._wake:
            self._closed = True
            self._wake.notify()
        if self._child is not None:
            self._child.terminate()
        # a process that is just being started must not find this one gone
        end = time.monotonic() + _PATIENCE
        while self._thread.is_alive() and time.monotonic() < end:
            for child in multiprocessing.active_children():
                child.kill()
            self._thread.join(0.05)
        if not self._thread.is_alive():
            self._held.close()

    def status(self) -> dict[str, Any]:
        """Return the work under way, and the videos to show."""
        kept, done = self.corrections.all(), self.corrections.done()
        versions, known = self.corrections.to_learn(), self._learned_from
        return {
            "doing": self._doing or "waiting to learn" * self._asked,
            "said": self._failure or self._noted.get("sentence", ""),
            "page": self._page.version,
            "not_done": len([name for name in kept.keys() - done if kept[name]["state"]]),
            "versions": {name: one["version"] for name, one in kept.items()},
            "new": sum(known.get(name) != version for name, version in versions.items()),
            "broken": {**self._broken, **self.corrections.remarks()},
        }

    def listing(self) -> list[dict[str, Any]]:
        """Return the known facts of each video; None is not known yet."""
        kept, done = self.corrections.all(), self.corrections.done()
        broken = {**self._broken, **self.corrections.remarks()}
        known = {name: self._results.get(name) for name in self.videos}
        return [
            {
                "video": name,
                "file": str(self.videos[name]),
                "duration_seconds": result and result.duration_seconds,
                "events": None if result is None else len(Shown().events(result.events)),
                "version": kept[name]["version"] if name in kept else 0,
                "done": name in done,
                "problem": broken.get(name, ""),
            }
            for name, result in known.items()
        ]

    def events(self, video_id: str) -> dict[str, Any] | None:
        """Return the events that the page lists of a video; None if it is not one of these."""
        if video_id not in self.videos:
            return None
        result = self._results.get(video_id)
        return {
            "video": video_id,
            "duration_seconds": result and result.duration_seconds,
            "events": result and Shown().events(result.events),
        }

    def video(self, video_id: str) -> Path | None:
        """Return the file that a browser plays of a video, None if it is not one of these."""
        return self._copies.file(video_id) if video_id in self.videos else None

    def learn(self) -> None:
        """Ask for a model of the corrections so far."""
        with self._wake:
            self._asked = True
            self._wake.notify()

    def zones(self, video_id: str) -> dict[str, Any]:
        """Return the zones of a video, see `DrawnZones.of`.

        Raises:
            KeyError: The video does not exist.
        """
        if video_id not in self.videos:
            raise KeyError(video_id)
        return self._zones.of(video_id)

    def save_zones(self, video_id: str, pattern: str, zones: Any) -> None:
        """Keep zones, see `DrawnZones.save`; then look again.

        Raises:
            KeyError: The video does not exist.
            InputError: They are not zones, or not the video's.
        """
        with self._wake:
            if video_id not in self.videos:
                raise KeyError(video_id)
            self.corrections.check_place()
            self._zones.save(video_id, pattern, zones)
            self._redrawn = True
            self._asked = self._asked or bool(self.corrections.done())
            self._wake.notify()

    def _enough(self) -> bool:
        """Return whether there are a quarter more corrected videos than were learned from."""
        new = [name for name in self.corrections.done() if name not in self._tried]
        return len(new) >= max(1, len(self._tried) // 4)

    def _work(self) -> None:
        """Look at the videos, then learn when it is time; an error ends no more than its round."""
        pause = 0.0
        while not self._closed:
            try:
                self._round(pause)
                pause = 1.0
            except Exception as error:  # the page keeps corrections, and reports it
                self._failure = f"Stopped: {error}. Corrections are kept; it is tried again."
                self._seen.clear()
                pause = _RETRY
                if not isinstance(error, (InputError, OSError)):
                    traceback.print_exc()
            self._doing = ""

    def _round(self, pause: float) -> None:
        with self._wake:
            called = lambda: self._asked or self._redrawn or self._closed  # noqa: E731
            self._wake.wait_for(called, timeout=pause)
            wanted, self._asked = self._asked or self._enough(), False
            redrawn, self._redrawn = self._redrawn, False
            if wanted:  # who asked must see work under way
                self._doing = "reading the corrections"
        if wanted or redrawn or not self._seen:
            self._look()
        if wanted and self._redrawn:
            self._asked = True  # of features within the new zones
        elif wanted and not self._closed:
            self._learn()

    def _look(self) -> None:
        """Encode new and changed videos, propose for them, and make copies that browsers play."""
        cameras = self._zones.cameras
        now = {
            name: source_with_zones(path, zones_of(cameras, name))
            for name, path in self.videos.items()
        }
        names = [name for name, source in now.items() if self._seen.get(name) != source]
        if not names:
            return

        def paths() -> Iterator[Path]:
            for number, name in enumerate(names, start=1):
                if self._closed or self._redrawn:
                    return
                self._doing = f"looking at {name} ({number} of {len(names)})"
                yield self.videos[name]

        bundle = self._bundle()
        how = self.folder / "features", self._encoding
        with closing(encode_all(paths(), *how, cameras=cameras)) as encoded:
            for one in progress(encoded, "features", len(names)):
                self._take(bundle, one)
                if time.monotonic() >= self._page.due:
                    self._write_page()
        if self._closed:
            return
        self._failure = ""
        self._write_page()
        for name in self._encoded:
            wanted = self._copies.wanted and not self._closed
            if not wanted or not self._copies.is_missing(self._results[name]):
                continue
            self._doing = f"making a copy of {name} that browsers play"
            try:
                self._copies.make(name)
            except InputError as error:
                self._broken[name] = str(error)
            self._write_page()

    def _take(self, bundle: Bundle, one: Encoded) -> None:
        """Propose for a video; one that cannot be read ends no other."""
        name = one.video.video_id
        self._seen[name] = one.source
        try:
            if one.video.error:
                raise InputError(one.video.error)
            self._results[name] = self._propose(bundle, one, self._results.get(name))
        except InputError as error:
            if isinstance(error, JobError):
                raise
            self._broken[name] = str(error)
            self._encoded.pop(name, None)
            return
        self._broken.pop(name, None)
        self._encoded[name] = one
        self.corrections.shown_of(name, one.fingerprint)

    def _learn(self) -> None:
        """Learn in a process of its own, and propose again."""
        versions, self._tried = self.corrections.to_learn(), set(self.corrections.done())
        known = {name: one for name, one in self._results.items() if name in self._encoded}
        videos = [self.videos[name] for name in sorted(self._tried & self._encoded.keys())]
        if not videos:
            self._failure = "Not learned: the corrected videos cannot be read"
            return
        self._doing = f"learning from {counted(len(videos), 'corrected video')}"
        stretches = self._note.with_name("stretches.json")
        judged = write_stretches(stretches, self.corrections, known)
        videos += [self.videos[name] for name in judged]
        command = [sys.executable, "-m", "actionspan", "learn", *map(str, videos)]
        command += ["--annotations", str(self.corrections.table), "--out", str(self._model.parent)]
        command += ["--features", str(self.folder / "features"), "--stretches", str(stretches)]
        command += ["--zones", str(self._zones.path)] * bool(self._zones.cameras)
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as self._child:
            _, errors = self._child.communicate()
        if self._closed:
            return
        self._failure = ""
        if self._child.returncode:
            reason = errors.strip().splitlines()[-1:] or ["it was ended"]
            self._failure = f"Not learned: {reason[0]}"
        else:
            write_json(self._note, versions)
            self._learned_from, self._noted = versions, learned(self._model)
        bundle = self._bundle()
        for number, (name, one) in enumerate(list(self._encoded.items()), start=1):
            if self._closed or self._redrawn:
                return
            self._doing = f"proposing for {name} ({number} of {len(self._encoded)})"
            self._take(bundle, one)
        self._write_page()

    def _bundle(self) -> Bundle:
        return load_bundle(self._model if self._model.is_file() else included_model())

    def _propose(self, bundle: Bundle, one: Encoded, before: Result | None) -> Result:
        raw, facts = one.read()
        if before is not None and before.source != one.source:
            before = None
        known = one.video.duration_seconds, str(self._model), one.zones
        proposed = proposed_of(bundle, raw, facts, *known)
        given = (proposed, one.video.path, __version__, one.source, before)
        return result_of(*given, sound=self._sound)

    def _write_page(self) -> None:
        self.corrections.check_place()
        results = [self._results[name] for name in self.videos if name in self._results]
        done = self.corrections.done()
        self._page.write(results, done, self._noted.get("thresholds", {}))
