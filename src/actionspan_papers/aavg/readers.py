"""The logs and the scores of runs of recognition, read for all seeds of each run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from actionspan.arrays import Float64
from actionspan.errors import InputError
from actionspan.recognition.scores import read_classifier_scores
from actionspan.workflow.runs import Learning
from actionspan_papers.aavg.comparisons import STREAMS, ExperimentSettings
from actionspan_papers.experiments import files
from actionspan_papers.kinds import Flags
from actionspan_papers.runs import by_seed, read_logs

_COUNTS = ("samples", "averages", "sent_bytes", "seconds", "communication_seconds")
_ALIKE = ("classes", "clips", "labels", "samples")
_LOG_NUMBERS = ("learning_rate", "validation_accuracy", *_COUNTS)

SCORES = {
    "scores": files("runs/{run}/{stream}/scores.json of any runs, with how they were trained")
}
LOGS_AND_SCORES = {"logs": files("runs/{run}/{stream}/log.tsv of any runs"), **SCORES}
"""The flags of the runs that a step reads."""
SETTINGS: dict[str, Any] = {
    "settings": (ExperimentSettings,),
    # they list the runs: the rules' business, not a step's
    "planned": ("seeds", "intervals", "learning_rates", "rate_seeds"),
}
"""The settings of a step."""

RunKey = tuple[str, str]
"""The name of a run of the first seed (or its way of joining learners), and a stream."""


@dataclass(frozen=True, kw_only=True)
class RunLogs:
    """The logs of all seeds of a run."""

    learning: Learning
    """The run of the first seed."""
    seeds: tuple[int, ...]
    """The numbers of the S seeds."""
    columns: Mapping[str, Float64]
    """(S, E) by the names `_LOG_NUMBERS`."""

    @property
    def accuracy(self) -> Float64:
        """Return (S, E) validation accuracies in percent; NaN where nothing was validated."""
        return 100 * self.columns["validation_accuracy"]

    @property
    def shares(self) -> Float64:
        """Return (S,) the share of exchanges in the time of training, in percent."""
        seconds, exchanged = self.columns["seconds"], self.columns["communication_seconds"]
        shares: Float64 = 100 * exchanged.sum(axis=1) / seconds.sum(axis=1)
        return shares

    @property
    def counted(self) -> bool:
        """Return whether the bytes sent were counted; a library or one process does not."""
        return bool(self.columns["sent_bytes"].any()) or self.learning.learners == 1

    @property
    def timed(self) -> bool:
        """Return whether exchanges took time; learners in one process have none."""
        return bool(self.columns["communication_seconds"].any()) or self.counted


@dataclass(frozen=True, kw_only=True)
class RunScores:
    """The probabilities of the validation clips, of all seeds of a run."""

    seeds: tuple[int, ...]
    """The numbers of the S seeds."""
    clips: Mapping[str, Any]
    """The same for all runs: the V `clips`, their `labels`, the C `classes` and `samples`."""
    probabilities: Float64
    """(S, V, C)."""


Logs = Mapping[RunKey, RunLogs]
Scores = Mapping[RunKey, RunScores]
Read = TypeVar("Read", RunLogs, RunScores)


class LoggedRuns(NamedTuple):
    """The input of a step on logs."""

    logs: Logs
    trained: str
    """How the runs were trained."""


def read_logged_runs(arguments: Flags, _: object) -> LoggedRuns:
    """Read the logs that the flags name, and how their runs were trained."""
    return LoggedRuns(read_run_logs(arguments.logs), training_of(arguments.scores))


ON_LOGS: dict[str, Any] = {"inputs": LOGS_AND_SCORES, "read": read_logged_runs, **SETTINGS}
"""Flags, reader and settings of a step on logs."""


def training_of(scores: Iterable[Path]) -> str:
    """Return how runs were trained, by the scores of the run with the most learners."""
    by_run = _by_run(scores, "scores.json")
    most = max(by_run, key=lambda key: Learning.of_name(key[0]).learners)
    content = read_classifier_scores(next(iter(by_run[most].values())))
    return str(content.get("trained", "classifiers of an earlier version"))


def read_run_logs(paths: Iterable[Path]) -> dict[RunKey, RunLogs]:
    """Read `…/{run}/{stream}/log.tsv` of any runs, in the order given, seeds in theirs.

    Raises:
        InputError: A path names no run, two are of one run, a file is not a log, or has
            another number of epochs than the first.
    """
    by_run = _by_run(paths, "log.tsv")
    return {
        key: RunLogs(
            learning=Learning.of_name(key[0]),
            seeds=tuple(by_run[key]),
            columns=dict(zip(_LOG_NUMBERS, columns, strict=True)),
        )
        for key, columns in read_logs(by_run, _LOG_NUMBERS, all_alike=True).items()
    }


def read_run_scores(paths: Iterable[Path]) -> dict[RunKey, RunScores]:
    """Read `…/{run}/{stream}/scores.json` of any runs, in the order given, seeds in theirs.

    Raises:
        InputError: A path names no run, two are of one run, a file does not hold such scores, or
            is of other clips, labels or classes than the first.
    """
    scores = {}
    first: tuple[Path, Mapping[str, Any]] | None = None
    for key, by_run in _by_run(paths, "scores.json").items():
        probabilities = []
        for path in by_run.values():
            content = read_classifier_scores(path)
            first = first or (path, content)
            for name in _ALIKE:
                if content[name] != first[1][name]:
                    raise InputError(
                        f"{path}: {name} differ from {first[0]}; only scores of the same "
                        "clips can be compared"
                    )
            probabilities.append(content["probabilities"])
        clips = {name: content[name] for name in _ALIKE}
        array = np.array(probabilities)
        scores[key] = RunScores(seeds=tuple(by_run), clips=clips, probabilities=array)
    return scores


def _by_run(paths: Iterable[Path], file: str) -> dict[RunKey, dict[int, Path]]:
    """Return the file of each seed of each run and stream."""
    runs = []
    for path in paths:
        folder = path.resolve().parent
        name, stream = folder.parent.name, folder.name
        try:
            learning = Learning.of_name(name if stream in STREAMS else "")
        except ValueError:
            raise InputError(
                f"{path}: its path names no run; the form is results/recognition/runs/"
                f"aavg3-k4-2-seed2/rgb/{file}"
            ) from None
        runs.append(((replace(learning, seed=1).name, stream), learning.seed, path))
    return by_seed(runs)


def by_way(runs: Mapping[RunKey, Read]) -> dict[RunKey, Read]:
    """Return runs by their way of joining learners and their stream, without how many there are.

    Raises:
        InputError: Two runs are of one way.
    """
    names: dict[RunKey, str] = {}
    for run, stream in runs:
        key = (Learning.of_name(run).way, stream)
        if key in names:
            raise InputError(f"{run} and {names[key]} are of one way, {key[0]}; give one of them")
        names[key] = run
    return {key: runs[run, key[1]] for key, run in names.items()}


def shared_seeds(runs: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return for the seeds of each run the places of those that all runs have."""
    common = set(runs[0]).intersection(*runs)
    return [[place for place, seed in enumerate(seeds) if seed in common] for seeds in runs]
