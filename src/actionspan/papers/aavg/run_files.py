"""The logs and the scores of runs, read for all seeds of each way of joining learners."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from actionspan.errors import InputError
from actionspan.evaluation.resampling import Floats, Integers
from actionspan.files.storage import read_json, read_tsv
from actionspan.papers.aavg.comparisons import STREAMS
from actionspan.papers.aavg.learnings import Learning

LOG_NUMBERS = (
    "learning_rate",
    "samples",
    "validation_accuracy",
    "averages",
    "sent_bytes",
    "seconds",
    "communication_seconds",
)

Of = tuple[str, str]
"""The name of a run of the first seed, and a stream."""


@dataclass(frozen=True, kw_only=True)
class RunLogs:
    """What was logged of all seeds of a run.

    Attributes:
        learning: The run of the first seed.
        stream: rgb or flow.
        seeds: The numbers of the S seeds.
        columns: (S, E) by the names `LOG_NUMBERS`.
    """

    learning: Learning
    stream: str
    seeds: tuple[int, ...]
    columns: Mapping[str, Floats]

    @property
    def accuracy(self) -> Floats:
        """Return (S, E) validation accuracies in percent; NaN where nothing was validated."""
        return 100 * self.columns["validation_accuracy"]


@dataclass(frozen=True, kw_only=True)
class RunScores:
    """The probabilities of the validation clips, of all seeds of a run.

    Attributes:
        seeds: The numbers of the S seeds.
        samples: Positions of a clip.
        classes: C names.
        clips: V ids.
        labels: (V,) places in `classes`.
        probabilities: (S, V, C).
    """

    seeds: tuple[int, ...]
    samples: int
    classes: tuple[str, ...]
    clips: tuple[str, ...]
    labels: Integers
    probabilities: Floats


Read = TypeVar("Read", RunLogs, RunScores)


def read_logs(paths: Iterable[Path]) -> dict[Of, RunLogs]:
    """Read `…/{run}/{stream}/log.tsv` of any runs, in the order given, seeds in theirs.

    Raises:
        InputError: A path names no run, two are of one run, a file is no log, or has another
            number of epochs than the first.
    """
    logs = {}
    first: tuple[Path, int] | None = None
    for of, files in _by_run(paths, "log.tsv").items():
        tables = []
        for path in files.values():
            table = _log(path)
            first = first or (path, len(table))
            if len(table) != first[1]:
                raise InputError(f"{path}: {len(table)} epochs, {first[0]} has {first[1]}")
            tables.append(table)
        columns = np.array(tables).transpose(2, 0, 1)  # (columns, S, E)
        logs[of] = RunLogs(
            learning=Learning.of_name(of[0]),
            stream=of[1],
            seeds=tuple(files),
            columns=dict(zip(LOG_NUMBERS, columns, strict=True)),
        )
    return logs


def _log(path: Path) -> list[list[float]]:
    table = []
    for number, row in enumerate(read_tsv(path), start=2):
        for column in LOG_NUMBERS:
            try:
                float(row[column])
            except (KeyError, ValueError):
                raise InputError(f"{path}: row {number}: no number {column!r}") from None
        table.append([float(row[column]) for column in LOG_NUMBERS])
    if not table:
        raise InputError(f"{path}: no epoch")
    return table


def read_scores(paths: Iterable[Path]) -> dict[Of, RunScores]:
    """Read `…/{run}/{stream}/scores.json` of any runs, in the order given, seeds in theirs.

    Raises:
        InputError: A path names no run, two are of one run, a file is no such scores, or is of
            other clips, labels or classes than the first.
    """
    scores = {}
    first: tuple[Path, Mapping[str, Any]] | None = None
    for of, files in _by_run(paths, "scores.json").items():
        planes = []
        for path in files.values():
            content = read_classifier_scores(path)
            first = first or (path, content)
            for key in ("classes", "clips", "labels", "samples"):
                if content[key] != first[1][key]:
                    raise InputError(
                        f"{path}: {key} are not those of {first[0]}; only scores of the same "
                        "clips can be compared"
                    )
            planes.append(content["probabilities"])
        scores[of] = RunScores(
            seeds=tuple(files),
            samples=content["samples"],
            classes=tuple(content["classes"]),
            clips=tuple(content["clips"]),
            labels=np.array(content["labels"], np.int64),
            probabilities=np.array(planes),
        )
    return scores


def read_classifier_scores(path: Path) -> dict[str, Any]:
    """Read one scores.json, with `probabilities` as a (clips, classes) array.

    Raises:
        InputError: The file is missing or is no such scores.
    """
    content = read_json(path)
    try:
        clips, classes = len(content["clips"]), len(content["classes"])
        labels = np.array(content["labels"], np.int64)
        probabilities = np.array(content["probabilities"], np.float64).reshape(clips, classes)
        whole = labels.shape == (clips,) and np.isfinite(probabilities).all()
        if not (whole and ((labels >= 0) & (labels < classes)).all()):
            raise ValueError
        return {**content, "samples": int(content["samples"]), "probabilities": probabilities}
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{path}: not the scores of a classifier's validation clips") from None


def _by_run(paths: Iterable[Path], file: str) -> dict[Of, dict[int, Path]]:
    """Return the file of each seed of each run and stream."""
    found: dict[Of, dict[int, Path]] = {}
    for path in paths:
        folder = path.resolve().parent
        try:
            run = Learning.of_name(folder.parent.name)
            if folder.name not in STREAMS:
                raise ValueError
        except ValueError:
            raise InputError(
                f"{path}: its path names no run; the form is results/recognition/runs/"
                f"aavg3-k4-2-seed2/rgb/{file}"
            ) from None
        seeds = found.setdefault((replace(run, seed=1).name, folder.name), {})
        if run.seed in seeds:
            raise InputError(f"{path}: {run.name} is in {seeds[run.seed]} already")
        seeds[run.seed] = path
    return {of: dict(sorted(seeds.items())) for of, seeds in found.items()}


def by_way(runs: Mapping[Of, Read]) -> dict[Of, Read]:
    """Return runs by their way of joining learners and their stream, without how many there are.

    Raises:
        InputError: Two runs are of one way.
    """
    found: dict[Of, Read] = {}
    names: dict[Of, str] = {}
    for (run, stream), content in runs.items():
        key = (Learning.of_name(run).way, stream)
        if key in found:
            raise InputError(f"{run} and {names[key]} are of one way, {key[0]}; give one of them")
        found[key], names[key] = content, run
    return found


def shared_seeds(runs: Sequence[RunLogs | RunScores]) -> list[list[int]]:
    """Return for each run the places of the seeds that all of them have."""
    common = set.intersection(*(set(run.seeds) for run in runs))
    return [[place for place, seed in enumerate(run.seeds) if seed in common] for run in runs]
