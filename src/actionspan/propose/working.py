"""The videos of a call, each in a separate process, and several at once."""

import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from actionspan.errors import JobError, printable
from actionspan.jobs.apart import Outcome, still_working, unready, work_apart
from actionspan.jobs.progress import video_progress
from actionspan.jobs.shards import FaultSettings
from actionspan.propose.result_folder import ResultFolder, lacks_copy, make_copy
from actionspan.propose.results import Result, Shown, result_of
from actionspan.storage.process import sweep

if TYPE_CHECKING:
    from actionspan.annotations.tables import Instance
    from actionspan.dataset.completing import Truth
    from actionspan.features.settings import Device
    from actionspan.propose.labels import Labels
    from actionspan.video.zones import Cameras


class Made(NamedTuple):
    """The outcome of a video."""

    reason: str = ""  # why it failed, with its file
    before: bool = False  # it was finished before the call
    summary: Mapping[str, Any] = {}


class Loading(NamedTuple):
    """The model to load, and how."""

    model: Path | None = None  # None: motion grouping
    threads: int = 1
    device: "Device | None" = None
    encoders: Sequence[str] = ()  # that the model does not hold
    labels: "Labels | None" = None
    sound: bool = False  # give results the curves of sound
    cameras: "Cameras" = {}


class _Propose(NamedTuple):
    """Propose for a video, and store the result."""

    path: Path
    model_first: bool = False  # open the video when the model is loaded


class _Draw(NamedTuple):
    """Draw a result."""

    path: Path
    result: Result
    truth: "Sequence[Instance]"


class _Copy(NamedTuple):
    """Write a copy that browsers play."""

    path: Path
    duration_seconds: float


_Task = _Propose | _Draw | _Copy
_LOADED = "loaded"  # the message of a process that has loaded the model


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
    """Process the videos that are not finished, and yield the outcomes of all in order.

    Networks see `jobs` videos at once; all else is done for one after the other.

    An error, a crash or a stall of one video does not stop the others. Videos are files by id. The
    model is loaded if a video needs it; with `copies` videos that browsers do not play get copies
    that they do, after all outcomes; `quiet` shows no progress.

    Raises:
        JobError: The model cannot be loaded, the disk is full, or somebody ended the process.
    """
    unfinished = [path for path in videos.values() if folder.finished(path) is None]
    unplayed: list[_Copy] = []
    worker = _Worker(folder, shown, loading)
    single = _Single(worker, load=bool(unfinished), quiet=quiet)
    ahead = _ahead(worker, unfinished, jobs)
    with _swept(folder, unfinished), closing(single.outcomes), closing(ahead):
        for number, (video_id, path) in enumerate(videos.items(), start=1):
            # 1. its proposals
            result, reason, before = folder.finished(path), "", path not in unfinished
            if not before:
                title = f"{path.name} ({number} of {len(videos)})"
                outcome = next(ahead)
                if outcome.passing:  # perhaps not the video's fault
                    reason = single.failed(_Propose(path), title)
                else:
                    reason = _with_file(path, outcome.reason)
                    if not quiet and not reason:
                        print(f"{title}: done", file=sys.stderr, flush=True)
                result = folder.finished(path, made=True)
            # 2. its chapters and figures
            if result is not None and not reason:
                known = truth.within(video_id, result.duration_seconds) if truth else ()
                if not folder.is_shown(result, known, shown):
                    reason = single.failed(_Draw(path, result, known))
            if reason or result is None:
                yield Made(reason=reason or f"{path}: it was replaced while it was read")
                continue
            if copies and lacks_copy(folder.folder, result, path):
                unplayed.append(_Copy(path, result.duration_seconds))
            yield Made(before=before, summary=shown.summary(result.at(path)))
        # 3. copies
        for task in unplayed:
            if why := single.failed(task, f"{task.path.name}: a copy that browsers play"):
                print(f"{why}; the page cannot play it", file=sys.stderr)


@contextmanager
def _swept(folder: ResultFolder, videos: Sequence[Path]) -> Iterator[None]:
    """Remove unfinished files of videos when the call is stopped."""
    try:
        yield
    except BaseException:
        for path in videos:
            for file in (*folder.beside(path.stem), folder.result_path(path.stem)):
                with suppress(OSError):  # no folder yet
                    sweep(file)
        raise


def _ahead(worker: "_Worker", videos: Sequence[Path], jobs: int) -> Generator[Outcome, None, None]:
    """Yield the outcome of each video from several processes, which work ahead.

    For a single process the outcomes are passing: `_Single` does the work.
    """
    processes, known = min(jobs, len(videos)), dict[int, Outcome]()
    outcomes = work_apart(
        worker.work,
        map(_Propose, videos),
        prepare=worker.load,
        processes=processes,
        stall_seconds=FaultSettings().stall_seconds,
    )
    with closing(outcomes):
        for place in range(len(videos)):
            while processes > 1 and place not in known:
                known.update([next(outcomes)])
            yield known.pop(place, Outcome(passing=True))


class _Single:
    """A process that works on one task after the other, and shows its progress."""

    def __init__(self, worker: "_Worker", *, load: bool, quiet: bool) -> None:
        self._quiet, self._loaded = quiet, not load
        self.outcomes = work_apart(
            worker.work,
            self._tasks(),
            prepare=worker.load if load else None,
            stall_seconds=FaultSettings().stall_seconds,
            on_message=self._receive,
        )

    def failed(self, task: _Task, title: str = "") -> str:
        """Do a task and return why it failed, or an empty text.

        Raises:
            JobError: The model cannot be loaded.
        """
        with video_progress(title, quiet=self._quiet or not title) as self._show:
            outcome = self._outcome_of(task)
            if outcome.passing and not self._loaded:  # did it die of the video or of the model?
                if isinstance(task, _Propose):
                    task = task._replace(model_first=True)
                outcome = self._outcome_of(task)
                if outcome.passing and not self._loaded:
                    raise JobError(f"the model cannot be loaded: {outcome.reason}")
        return _with_file(task.path, outcome.reason)

    def _outcome_of(self, task: _Task) -> Outcome:
        self._task = task
        return next(self.outcomes)[1]

    def _tasks(self) -> Iterator[_Task]:
        while True:
            yield self._task

    def _receive(self, message: Any) -> None:
        if message == _LOADED:
            self._loaded = True
        else:
            self._show(*message)


def _with_file(path: Path, why: str) -> str:
    reason = printable(why)
    return reason if not reason or str(path) in reason else f"{path}: {reason}"


@dataclass
class _Worker:
    """The work of a process; each process has its own copy with its own model."""

    folder: ResultFolder
    shown: Shown
    loading: Loading
    _proposer: Future[Any] = field(init=False)

    def load(self) -> None:
        """Start to load the model; meanwhile the first video is opened."""
        self._proposer = ThreadPoolExecutor(1).submit(load_proposer, self.loading)

    def work(self, task: _Task) -> None:
        """Do a task and store its result in the folder."""
        match task:
            case _Propose(path, model_first):
                self._propose(path, model_first=model_first)
            case _Draw(path, result, truth):
                self.folder.show(result.at(path), truth, self.shown)
            case _Copy(path, length):
                make_copy(self.folder.folder, path, lambda far: still_working((far, length)))

    def _propose(self, path: Path, *, model_first: bool) -> None:
        from actionspan.propose.proposed import open_video

        source = self.folder.source_of(path)
        try:
            video = path if model_first else open_video(path)
        finally:  # whatever the video is: a model that cannot be loaded ends the job
            if error := self._proposer.exception():
                raise unready(error) from error
            still_working(_LOADED)
        proposed = self._proposer.result().propose(video, lambda *far: still_working(far))
        made = result_of(proposed, path, self.folder.model, source, sound=self.loading.sound)
        self.folder.put(made)


def load_proposer(loading: Loading) -> Any:
    """Return a proposer, one of `Proposer`, `MotionProposer` and `Labelling`."""
    proposer: Any
    if loading.model is None:
        from actionspan.propose.proposed import MotionProposer

        proposer = MotionProposer(loading.cameras)
    else:
        import torch

        from actionspan.jobs.memory import keep_freed_memory
        from actionspan.propose.proposer import Proposer

        keep_freed_memory()
        torch.set_num_threads(loading.threads)
        how: Any = {"device": loading.device, "encoders": loading.encoders}
        proposer = Proposer(loading.model, **how, cameras=loading.cameras)
    if loading.labels is None:
        return proposer
    import torch

    from actionspan.propose.labels import Labelling

    torch.set_num_threads(loading.threads)
    return Labelling(proposer, loading.labels, loading.device)
