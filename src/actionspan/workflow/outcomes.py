"""The files of proposals and evaluation that a run makes, also for the folds of cross-validation.

In cross-validation over the training videos `mtn-fold2` is the model mtn trained without the videos
of the second fold; `mtn-folds` names the proposals of all folds, each video's from the fold that
held it out. A fold's data set, features and annotations, is under `folds/2/` of the stage's folder.
"""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from actionspan.errors import InputError
from actionspan.temporal.settings import MODELS, ON_SEQUENCES, SEQUENCES
from actionspan.workflow.features import FeaturesPlan
from actionspan.workflow.runs import POOLED, RunName, flags, one_of, seeded_flags

_SUMMARY = [f"results/evaluation/folds/summary.{suffix}" for suffix in ("json", "tsv", "md")]


class FoldsPlan:
    """The folds of a run; its methods take the wildcards of a job.

    Attributes:
        numbers: The folds, from 1; none where cross-validation is off.
        one: The pattern of the end of a name: empty, or a fold's.
        pooled: The pattern of the end of a name that means all folds.
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
            raise InputError(
                "evaluation.folds: cross-validation is off; give a number: "
                "--config evaluation='{folds: 5}'"
            )
        return _SUMMARY

    def evaluations(self, wildcards: Any) -> list[str]:
        """Return the records of a table: of the subset that is scored, or of all folds."""
        end = ""
        if wildcards.folds:
            self.targets(wildcards)
            end = f"-{POOLED}"
        return [f"results/evaluation/{method}{end}.json" for method in self._methods]

    def readers(self, wildcards: Any) -> list[str]:
        """Return the records of the reader's measures, of the same methods."""
        paths = map(Path, self.evaluations(wildcards))
        return [str(path.parent / "reader" / path.name) for path in paths]

    def proposals(self, wildcards: Any) -> list[str]:
        """Return each fold's proposals, or the events of each."""
        pooled, name = RunName.of(wildcards.pooled), f"{wildcards.listed}.json"
        folds = [replace(pooled, fold=str(number)) for number in self.numbers]
        return [f"results/proposals/{fold}/{name}" for fold in folds]

    def subset(self, wildcards: Any) -> str:
        """Return the scored subset: as configured, a fold's held-out videos, or all folds'."""
        subsets: dict[str, str] = {"": self._subset, POOLED: "training"}
        return subsets.get(_run(wildcards).fold, "testing")

    def scored(self, wildcards: Any) -> str:
        """Return the list of the scored subset's videos; a fold's are training videos."""
        subset = "training" if _run(wildcards).fold else self._subset
        return f"results/dataset/subsets/{subset}.tsv"

    def pooled_flag(self, wildcards: Any) -> str:
        """Return the flag of the number of folds that proposals are pooled from."""
        return f"--folds={len(self.numbers)}" if _run(wildcards).fold == POOLED else ""


def method_of(wildcards: Any) -> str:
    """Return the name of the job's model, baseline or method."""
    names = wildcards.keys()
    key = next(key for key in ("model", "baseline", "method") if key in names)
    return str(getattr(wildcards, key))


def _run(wildcards: Any) -> RunName:
    return RunName.of(method_of(wildcards))


def of_fold(path: str) -> Callable[[Any], str]:
    """Return a function of wildcards that gives `path`, or this file of the job's fold.

    For mtn-fold2, results/features/features.h5 is results/features/folds/2/features.h5.
    """

    def chosen(wildcards: Any) -> str:
        fold = _run(wildcards).fold
        folder, _, name = path.rpartition("/")
        return path if fold in ("", POOLED) else f"{folder}/folds/{fold}/{name}"

    return chosen


BROWSED = 1000  # videos: chapters are made for sets that a person can browse


class OutcomesPlan:
    """The methods of a run and the files that are made of their proposals."""

    def __init__(
        self,
        config: Mapping[str, Any],
        videos: list[str],
        features: FeaturesPlan,
        run: str,
    ) -> None:
        self._config, self._run = config, run
        evaluation = config["evaluation"]
        self.models: list[str] = list(config["temporal"]["models"])
        # the models with candidates that PEM evaluates
        self.evaluated = [model for model in self.models if model not in ON_SEQUENCES]
        # external features have no frames that could differ
        skipped = {"difference", "cuts"} if features.external else set()
        self.baselines = [name for name in evaluation["baselines"] if name not in skipped]
        self.methods = self.models + self.baselines  # in the order of the tables
        folders = [f"results/proposals/{model}" for model in self.models]
        # with external features a model cannot take videos
        self.bundle = [] if features.external else ["results/proposals/{model}/model.safetensors"]
        self.bundles = [path.format(model=model) for path in self.bundle for model in self.models]
        # the videos of one job that makes chapters: all, or in a large set one
        browsed = len(videos) <= BROWSED
        self.chaptered = videos if browsed else ["{video}"]
        chapters = [f"{folder}/chapters/{{}}.vtt" for folder in folders if browsed]
        self.chapters = [path.format(video) for path in chapters for video in videos]
        inner = "results/proposals/{{model}}/chapters/{}.vtt"
        self.chapters_of = [inner.format(video) for video in videos if browsed]
        # the model shown by figures and the page, and its events, if it has any
        self.shown: str = config["report"]["model"] or self.models[-1]
        events = f"results/proposals/{self.shown}/events.json"
        self.shown_events = [events] * (self.shown in ON_SEQUENCES)
        # a few timelines, evenly spread over the videos; all others can be asked for
        count = min(evaluation["timelines"], len(videos))
        drawn = [videos[index * len(videos) // count] for index in range(count)]
        folder = f"results/evaluation/timelines/{self.shown}"
        self.timelines = [f"{folder}/{video}.svg" for video in drawn]
        # copies for browsers that are there, and the page, if a plain run makes it
        self.made_copies = sorted(map(str, Path("results/report/videos").glob("*.mp4")))
        self.page = ["results/report/index.html"] if config["report"]["page"] else []

    def network_features(self, wildcards: Any) -> str:
        """Return the features that a model's network learns from."""
        name = SEQUENCES.get(_run(wildcards).base, "features")
        return of_fold(f"results/features/{name}.h5")(wildcards)

    def density_flags(self, wildcards: Any) -> str:
        """Return a density's settings and its list's; a stream's density sees soon after an end."""
        settings = self._config["proposals"]
        kept = seeded_flags(settings["density"], wildcards.model)
        kept += " " + flags(settings["events"], "events", "overlap")
        ahead = settings["online"]["ahead"]
        return f"{kept} --ahead {ahead}" if _run(wildcards).base == "stream" else kept

    def rest(self, wildcards: Any, input: Any, output: Any) -> str:
        """Return the steps after a model's proposals: chapters, and the bundle for `propose`."""
        settings, steps = self._config["proposals"], ""
        names, flag = ["candidates", "ranking", "suppression"], "evaluator"
        if _on_sequences(wildcards):
            names, flag = ["selection", "events"], "density"
        if _run(wildcards).base == "stream":
            names = [*names, "online"]
        if self.chapters_of:
            listed = output.events if _on_sequences(wildcards) else output.json
            # a flag each: an id may begin with a hyphen
            videos = shlex.join(f"--videos={video}" for video in self.chaptered)
            steps = f"--then proposals chapters --proposals {listed} {videos}"
            steps += f" {flags(settings['chapters'])} --out-folder {Path(listed).parent}/chapters"
        if self.bundle:
            kept = " ".join(flags(settings[name]) for name in names)
            steps += f" --then proposals bundle --features {input.network_features}"
            steps += f" --temporal {input.model} {kept} --{flag} {output.scorer}"
            steps += f" --classifier {input.classifier} --classifier-features {input.features}"
            steps += f" --out {output.bundle}"
        return steps

    def listed(self, wildcards: Any) -> str:
        """Return the list for a reader: distinct events, where a model has them."""
        name = "events" if _on_sequences(wildcards) else "proposals"
        return f"results/proposals/{wildcards.model}/{name}.json"

    def events(self, wildcards: Any) -> list[str]:
        """Return a method's distinct events, where it has them."""
        path = f"results/proposals/{method_of(wildcards)}/events.json"
        return [path] if _on_sequences(wildcards) else []

    def baseline_features(self, wildcards: Any) -> list[str]:
        """Return the features, for their frame differences or their cuts alone."""
        read = {"difference": "features", "cuts": "sequences"}.get(_run(wildcards).base)
        return [of_fold(f"results/features/{read}.h5")(wildcards)] if read else []

    def baseline_probabilities(self, wildcards: Any) -> list[str]:
        """Return probabilities: only TAG groups actionness, the base network's of the same seed."""
        model = wildcards.method.replace("tag", "origin", 1)
        path = f"results/temporal/{model}/{self._run}/probabilities.h5"
        return [path] if _run(wildcards).base == "tag" else []

    def timelines_flag(self, wildcards: Any) -> str:
        """Return where a model's timelines lie; a baseline and joined folds have none."""
        drawn = _run(wildcards).base in MODELS and _run(wildcards).fold != POOLED
        return f"--timelines results/evaluation/timelines/{wildcards.method}" if drawn else ""

    def baseline_flags(self, wildcards: Any) -> str:
        """Return the settings that this baseline reads, so that others do not re-run it."""
        name = wildcards.method
        read = {"random": ["seed"], "sliding": ["overlap", "shortest_window", "window_prior"]}
        read["tiles"] = ["tiles"]
        keys = read.get(_run(wildcards).base, [])
        chosen = seeded_flags(self._config["evaluation"]["baseline"], name, "proposals", *keys)
        if keys or _run(wildcards).base == "cuts":
            return chosen
        # baselines that group a signal have the models' Soft-NMS, but their own number of proposals
        suppression = dict(self._config["proposals"]["suppression"])
        del suppression["keep"]
        return f"{chosen} {flags(suppression)}"


def _on_sequences(wildcards: Any) -> bool:
    return _run(wildcards).base in ON_SEQUENCES
