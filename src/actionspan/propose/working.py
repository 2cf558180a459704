"""The videos of a call, each in a separate process, and several at once."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from actionspan.errors import JobError, printable
from actionspan.jobs.apart import Outcome, still_working, unready, work_apart
from actionspan.jobs.progress import video_progress
from actionspan.jobs.shards import FaultSettings
from actionspan.propose.results import (
    Result,
    ResultFolder,
    Shown,
    lacks_copy,
    make_copy,
    result_of,
    source_of,
)
from actionspan.storage.process import sweep

if TYPE_CHECKING:
    from actionspan.dataset.completing import Truth
    from actionspan.dataset.tables import Instance
    from actionspan.features.settings import Device
    from actionspan.propose.labels import Labels

# a model, or none, its cores, its device and an encoder that it does not hold
Loading = tuple[Path | None, int, "Device | None", Sequence[str], "Labels | None"]


class Made(NamedTuple):
    """What became of a video."""

    reason: str = ""  # why there is nothing of it, with its file
    before: bool = False  # it was done before
    summary: Mapping[str, Any] = {}


class _Task(NamedTuple):
    """Propose for a video, or, with a result, draw it, or write a copy that browsers play."""

    path: Path
    result: Result | None = None
    truth: "Sequence[Instance]" = ()
    copy: bool = False
    model_first: bool = False  # the video is opened when the model is there


_LOADED = "loaded"  # what a process says of the model


def each_video(
    folder: ResultFolder,
    videos: Mapping[str, Path],
    truth: "Truth | None",
    shown: Shown,
    loading: Loading,
    *,
    copies: bool,
    quiet: bool,
    jobs: int = 1,
) -> Iterator[Made]:
    """Do what is left to do for each video, and yield the outcomes in order.

    Networks see `jobs` videos at once; all else is done for one after the other.

    An error, a crash or a stall of one video does not stop the others. Videos are files by id. The
    model is loaded if a video needs it; with `copies` videos that browsers do not play get copies
    that they do, after all outcomes; `quiet` shows no progress.

    Raises:
        JobError: The model cannot be loaded, the disk is full, or somebody ended the process.
    """
    unfinished = [path for path in videos.values() if folder.finished(path) is None]
    needed = bool(unfinished)
    unplayed: list[_Task] = []
    told: list[Callable[[float, float], None]] = []
    given: list[_Task] = []
    loaded = not needed

    def tell(said: Any) -> None:
        nonlocal loaded
        if said == _LOADED:
            loaded = True
        else:
            told[-1](*said)

    work, load = partial(_work, folder, shown), partial(_load, *loading)
    ahead = _Ahead(work, unfinished, load, jobs, quiet=quiet)
    outcomes = work_apart(
        work,
        iter(given.pop, None),
        prepare=load if needed else None,
        stall_seconds=FaultSettings().stall_seconds,
        tell=tell,
    )

    def failed(task: _Task, title: str = "") -> str:
        with video_progress(title, quiet=quiet or not title) as on_progress:
            told.append(on_progress)
            given.append(task)
            outcome = next(outcomes)[1]
            if outcome.passing and not loaded:  # the process died: of the video or the model?
                given.append(task._replace(model_first=True))
                outcome = next(outcomes)[1]
                if outcome.passing and not loaded:
                    raise JobError(f"the model cannot be loaded: {outcome.reason}")
        return _with_file(task.path, outcome.reason)

    with _swept(folder, unfinished), closing(outcomes), closing(ahead):
        for number, (video_id, path) in enumerate(videos.items(), start=1):
            result, reason, before = folder.finished(path), "", path not in unfinished
            if not before:
                title = f"{path.name} ({number} of {len(videos)})"
                reason = ahead.failed(path, title, failed)
                result = folder.finished(path, made=True)
            if result is not None and not reason:
                known = truth.within(video_id, result.duration_seconds) if truth else ()
                if not folder.is_shown(result, known, shown):
                    reason = failed(_Task(path, result, known))
            if reason or result is None:
                yield Made(reason=reason or f"{path}: it was replaced while it was read")
                continue
            if copies and lacks_copy(folder.folder, result, path):
                unplayed.append(_Task(path, result, copy=True))
            yield Made(before=before, summary=shown.summary(_found(result, path)))
        for task in unplayed:
            if why := failed(task, f"{task.path.name}: a copy that browsers play"):
                print(f"{why}; the page cannot play it", file=sys.stderr)


_FILES = (".vtt", ".svg", ".jpg")


@contextmanager
def _swept(folder: ResultFolder, videos: Sequence[Path]) -> Iterator[None]:
    """Remove what processes that are ended in the middle leave of the files of videos."""
    try:
        yield
    except BaseException:
        for path in videos:
            for name in (
                *(f"{path.stem}{suffix}" for suffix in _FILES),
                f"videos/{path.stem}.json",
            ):
                with suppress(OSError):  # no folder yet
                    sweep(folder.folder / name)
        raise


class _Ahead:
    """Processes that propose for several videos at once, before their turn; none for one alone."""

    def __init__(
        self,
        work: Callable[[_Task], None],
        videos: Sequence[Path],
        load: Callable[[], None],
        jobs: int,
        *,
        quiet: bool,
    ) -> None:
        processes = min(jobs, len(videos))
        self._videos, self._quiet = videos if processes > 1 else [], quiet
        self._known: dict[Path, Outcome] = {}
        self._outcomes = work_apart(
            work,
            map(_Task, self._videos),
            prepare=load,
            processes=processes,
            stall_seconds=FaultSettings().stall_seconds,
        )

    def failed(self, path: Path, title: str, alone: Callable[[_Task, str], str]) -> str:
        """Wait for a video; return why there is nothing of it, or an empty text.

        What may be no video's fault is tried again `alone`, as is all where none works ahead.
        """
        while path in self._videos and path not in self._known:
            index, outcome = next(self._outcomes)
            self._known[self._videos[index]] = outcome
        outcome = self._known.pop(path, Outcome(passing=True))
        if outcome.passing:
            return alone(_Task(path), title)
        if not self._quiet and not outcome.reason:
            print(f"{title}: done", file=sys.stderr, flush=True)
        return _with_file(path, outcome.reason)

    def close(self) -> None:
        """End the processes."""
        self._outcomes.close()


def _with_file(path: Path, why: str) -> str:
    reason = printable(why)
    return reason if not reason or str(path) in reason else f"{path}: {reason}"


_proposer: Future[Any]  # in a process of its own


def _load(*loading: Any) -> None:
    """Begin to load the model, as `Loading` says: meanwhile the first video is opened."""
    global _proposer
    _proposer = ThreadPoolExecutor(1).submit(_loaded, *loading)


def _loaded(
    model: Path | None,
    threads: int,
    device: "Device | None",
    encoders: Sequence[str],
    labels: "Labels | None",
) -> Any:
    proposer = _proposing(model, threads, device, encoders)
    if labels is None:
        return proposer
    import torch

    from actionspan.propose.labels import Labelling

    torch.set_num_threads(threads)
    return Labelling(proposer, labels, device)


def _proposing(
    model: Path | None, threads: int, device: "Device | None", encoders: Sequence[str]
) -> Any:
    if model is None:
        from actionspan.propose.proposed import MotionProposer

        return MotionProposer()
    import torch

    from actionspan.jobs.memory import keep_freed_memory
    from actionspan.propose.proposer import Proposer

    keep_freed_memory()
    torch.set_num_threads(threads)
    return Proposer(model, device=device, encoders=encoders)


def _work(folder: ResultFolder, shown: Shown, task: _Task) -> None:
    """Do a task and store its result in the folder."""
    if task.copy and task.result is not None:
        length = task.result.duration_seconds
        make_copy(folder.folder, task.path, lambda far: still_working((far, length)))
        return
    if task.result is not None:
        folder.show(_found(task.result, task.path), task.truth, shown)
        return
    from actionspan.propose.proposed import open_video

    source = source_of(task.path)
    try:
        video = task.path if task.model_first else open_video(task.path)
    finally:  # whatever the video is: a model that cannot be loaded ends the job
        if error := _proposer.exception():
            raise unready(error) from error
        still_working(_LOADED)
    proposed = _proposer.result().propose(video, lambda *far: still_working(far))
    folder.put(result_of(proposed, task.path, folder.model, source))


def _found(result: Result, path: Path) -> Result:
    return replace(result, path=str(path.absolute()))  # it may lie elsewhere by now
