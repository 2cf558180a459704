"""Cross-validation over the training videos: the names, files and subsets of its folds.

`mtn-fold2` is the model mtn trained without the videos of the second fold; `mtn-folds` stands for
the proposals of all folds, each video's from the fold that held it out. A fold's data set, features
and annotations, is under `folds/2/` of the stage's folder.
"""

from collections.abc import Callable, Mapping
from typing import Any

from actionspan.errors import InputError
from actionspan.plan.runs import POOLED, one_of, split_fold

_SUMMARY = [f"results/evaluation/folds/summary.{suffix}" for suffix in ("json", "tsv", "md")]


class FoldsPlan:
    """The folds of a run; its methods take the wildcards of a job.

    Attributes:
        numbers: The folds, from 1; none where cross-validation is off.
        one: The pattern of the end of a name: empty, or that of a fold.
        pooled: The pattern of the end of a name that stands for all folds.
        folder: The pattern of the folder of a fold's data set, empty for the run's own.
        summary: The tables of all methods, a part of a plain run where cross-validation is on.
    """

    def __init__(self, config: Mapping[str, Any], methods: list[str]) -> None:
        self._subset, self._methods = config["evaluation"]["subset"], methods
        count = config["evaluation"]["folds"]
        self.numbers = range(1, count + 1) if count > 1 else range(0)
        number = one_of(map(str, self.numbers))
        self.one = f"(?:-fold(?:{number}))?"
        self.pooled = f"-{POOLED}" if self.numbers else "(?!)"
        self.folder = f"(folds/({number})/)?"
        self.summary = _SUMMARY if self.numbers else []

    def targets(self, _: Any) -> list[str]:
        """Return the tables of all methods over all folds.

        Raises:
            InputError: Cross-validation is off.
        """
        if not self.numbers:
            raise InputError("evaluation.folds: cross-validation is off; give a number, e.g. 5")
        return _SUMMARY

    def evaluations(self, wildcards: Any) -> list[str]:
        """Return the records of a table: of the subset that is scored, or of all folds."""
        end = ""
        if wildcards.summary.startswith("folds/"):
            self.targets(wildcards)
            end = f"-{POOLED}"
        return [f"results/evaluation/{method}{end}.json" for method in self._methods]

    def proposals(self, wildcards: Any) -> list[str]:
        """Return each fold's proposals, or the events of each."""
        method, _ = split_fold(wildcards.pooled)
        name = f"{wildcards.listed}.json"
        return [f"results/proposals/{method}-fold{n}/{name}" for n in self.numbers]

    def subset(self, wildcards: Any) -> str:
        """Return whose videos are scored: as configured, a fold's held-out ones, or all folds'."""
        _, fold = split_fold(method_of(wildcards))
        subsets: dict[str, str] = {"": self._subset, POOLED: "training"}
        return subsets.get(fold, "testing")

    def scored(self, wildcards: Any) -> str:
        """Return the list of the scored subset's videos; a fold's are training videos."""
        subset = self.subset(wildcards)
        _, fold = split_fold(method_of(wildcards))
        return f"results/dataset/subsets/{'training' if fold else subset}.tsv"

    def pooled_flag(self, wildcards: Any) -> str:
        """Return the flag that says of how many folds proposals are."""
        _, fold = split_fold(method_of(wildcards))
        return f"--folds={len(self.numbers)}" if fold == POOLED else ""


def method_of(wildcards: Any) -> str:
    """Return the name of the job's model, baseline or method."""
    names = wildcards.keys()
    key = next(key for key in ("model", "baseline", "method") if key in names)
    return str(getattr(wildcards, key))


def of_fold(path: str) -> Callable[[Any], str]:
    """Return a function of wildcards: `path`, or the file of that name of the job's fold.

    For mtn-fold2, results/features/features.h5 is results/features/folds/2/features.h5.
    """

    def chosen(wildcards: Any) -> str:
        _, fold = split_fold(method_of(wildcards))
        folder, _, name = path.rpartition("/")
        return path if fold in ("", POOLED) else f"{folder}/folds/{fold}/{name}"

    return chosen
