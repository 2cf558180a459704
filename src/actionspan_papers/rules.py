"""The registry of the papers' experiments: their outputs, inputs and commands.

`workflow/rules/papers.smk` makes a rule of each entry.
"""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from actionspan.workflow.dataset import DatasetPlan
from actionspan.workflow.runs import flags
from actionspan_papers.aavg import comparisons as aavg
from actionspan_papers.kinds import Config
from actionspan_papers.mtn import runs as mtn

PAPERS = {
    "ring": "Paper 000: ring",
    "mtn": "Paper 001: MTN",
    "partime": "Paper 002: PARTIME",
    "aavg": "Paper 003: AAVG",
    "sbp": "Paper 004: SBP",
}
"""The categories of their figures in Snakemake's report."""

_FOLDER = Path(__file__).parent

Inputs = Mapping[str, Any]
"""Paths, or functions of the wildcards, by the flags that take them."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A rule: the command of its step, the files it reads, and the files it writes."""

    command: str
    inputs: Inputs = field(default_factory=dict)
    settings: str = ""
    """More flags; `{wildcards.name}` and `{threads}` are filled in."""
    result: str = ""
    """The path of the TSV and the Markdown without their suffix; by default the command's."""
    outputs: Mapping[str, str] = field(default_factory=dict)
    """Other files by the flags that name them."""
    table: bool = True
    """Whether the TSV and the Markdown are written."""
    figure: str = ""
    """The caption of its figure in Snakemake's report, if there is one."""
    category: str = ""
    """Of the figure there; by default the paper."""
    wildcards: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The values of the wildcards of `result`."""
    minutes: int = 60
    mem_mb: int | None = None
    threads: int = 1

    @property
    def name(self) -> str:
        """The name of the rule."""
        return self.command.replace(" ", "_").replace("-", "_")

    @property
    def paper(self) -> str:
        """The paper, or the stage that the step is added to."""
        return self.command.split()[-2]

    @property
    def path(self) -> str:
        """The path of the TSV and the Markdown without their suffix."""
        return self.result or f"results/{self.command.replace(' ', '/').replace('-', '_')}"

    @property
    def shelf(self) -> str:
        """The category of the figure in Snakemake's report."""
        return self.category or PAPERS[self.paper]

    @property
    def own(self) -> str:
        """The path of the log and of the benchmark in their folders, without its suffix."""
        return "/".join([self.name, *(f"{{{name}}}" for name in self.wildcards)])

    @property
    def tables(self) -> dict[str, str]:
        """The files that the step writes, without figures, by their flags."""
        both = {"out-tsv": f"{self.path}.tsv", "out-markdown": f"{self.path}.md"}
        return {**(both if self.table else {}), **self.outputs}

    @property
    def texts(self) -> list[str]:
        """The tables that its step reads in addition to its code: published numbers, and claims."""
        if not self.command.endswith(" claims"):
            return [*map(str, (_FOLDER / self.paper).glob("published.tsv"))]
        return sorted(map(str, [*_FOLDER.glob("*.tsv"), *(_FOLDER / self.paper).glob("*.tsv")]))

    @property
    def files(self) -> list[str]:
        """The tables and figures for every value of the wildcards."""
        suffixes = ("tsv", "md", "svg", "png") if self.figure else ("tsv", "md")
        paths = [self.path] if self.table else []
        for name, values in self.wildcards.items():
            paths = [path.replace(f"{{{name}}}", value) for path in paths for value in values]
        return [f"{path}.{suffix}" for path in paths for suffix in suffixes]

    def knobs(self, wildcards: Any) -> str:
        """Return the settings of a job, for Snakemake: where they change, it runs again."""
        return self.settings

    def words(self, wildcards: Any, input: Any, output: Any, threads: int) -> str:
        """Return the command line of a job, for Snakemake."""
        settings = self.settings.replace("{threads}", str(threads))
        for name in self.wildcards:
            settings = settings.replace(f"{{wildcards.{name}}}", getattr(wildcards, name))
        words = [self.command, settings]
        figures = {"out-figures": None} if self.figure else {}
        named = [(flag, getattr(input, flag)) for flag in self.inputs]
        named += [(flag, getattr(output, under(flag))) for flag in [*self.tables, *figures]]
        for flag, paths in named:
            given = [paths] if isinstance(paths, str) else paths
            words += [f"--{flag}", *(shlex.quote(str(path)) for path in given)]
        return " ".join(word for word in words if word)


def under(flag: str) -> str:
    """Return the name of a flag's files in a rule."""
    return flag.replace("-", "_")


def experiments(config: Config, dataset: DatasetPlan) -> list[Experiment]:
    """Return all experiments of the papers."""
    return [
        *_ring(),
        *_mtn(config),
        *_aavg(config),
        *_partime(config, dataset),
        *_sbp(config, dataset.shards),
    ]


def files_of(every: Iterable[Experiment], *papers: str) -> list[str]:
    """Return the tables and figures of some papers."""
    return [path for each in every if each.paper in papers for path in each.files]


def _step(paper: str, step: str, settings: str = "", **how: Any) -> Experiment:
    return Experiment(command=f"papers {paper} {step}", settings=settings, **how)


def _ring() -> list[Experiment]:
    times = {"times": "results/scaling/times.tsv"}
    # of benchmarks/network/run.py, which needs root and so is not a rule; else the included one
    links = "results/scaling/network.tsv"
    emulated = {"links": links} if Path(links).exists() else {}
    return [
        _step("ring", "fits", inputs=times),
        _step("ring", "claims", inputs={**times, **emulated}),
    ]


def _mtn(config: Config) -> list[Experiment]:
    interval = flags(config["evaluation"]["protocol"], "resamples", "confidence", "seed")
    measured = f"{flags(config['evaluation'], 'subset')} {interval}"
    features = {"features": "results/features/features.h5"}
    logs = {"logs": mtn.loss_logs(config), **features}
    return [
        _step(
            "mtn",
            "table",
            f"--table {{wildcards.table}} {measured}",
            inputs={"videos": lambda own: mtn.table_scores(config, own.table), **features},
            result="results/papers/mtn/{table}",
            wildcards={"table": ("table1", "table2", "table3")},
        ),
        _step("mtn", "claims", measured, inputs={"videos": mtn.claim_scores(config), **logs}),
        _step("mtn", "loss-curves", interval, inputs=logs, figure="mtn_loss_curves"),
    ]


def _aavg(config: Config) -> list[Experiment]:
    experiment = partial(_step, "aavg")
    interval = flags(config["recognition"]["experiments"], "confidence", "resamples")
    logs, scores = (aavg.compared_files(config, file) for file in ("log.tsv", "scores.json"))
    sweep = aavg.rate_logs(config)

    def of_figure(own: Any) -> list[str]:
        return aavg.figure_logs(config, own.figure)

    return [
        experiment(
            "curves",
            f"--figure {{wildcards.figure}} {interval}",
            inputs={"logs": of_figure, "scores": lambda own: aavg.trained_as(of_figure(own))},
            result="results/papers/aavg/{figure}",
            wildcards={"figure": tuple(aavg.curve_figures())},
            figure="aavg_curves",
        ),
        experiment(
            "rates",
            interval,
            inputs={"logs": sweep, "scores": aavg.trained_as(sweep)},
            result="results/papers/aavg/learning_rates",
            figure="aavg_learning_rates",
        ),
        experiment(
            "table",
            interval,
            inputs={"scores": aavg.variant_scores(config)},
            result="results/papers/aavg/table1",
        ),
        experiment("traffic", interval, inputs={"logs": logs, "scores": scores[0]}),
        experiment("times", interval, inputs={"logs": logs, "scores": scores[0]}),
        experiment("claims", interval, inputs={"logs": logs, "scores": scores}),
    ]


def _partime(config: Config, dataset: DatasetPlan) -> list[Experiment]:
    experiment = partial(_step, "partime")
    own = config["papers"]["partime"]
    seeds = flags(own, "seeds", "stages", "confidence")
    speed = own["speed"]
    networks = flags(speed, *(set(speed) - {"pairs", "measured_seconds"}))
    frames = {"frames": "results/papers/partime/frames.h5"}
    fetched = dataset.first_fetched(own["frames"]["most_videos"])
    labelled = {
        "features": "results/features/features.h5",
        "annotations": "results/dataset/annotations.json",
    }
    learning = f"{flags(config['evaluation'], 'subset')} {seeds} {flags(own['classification'])}"

    def drawn(step: str, settings: str, **how: Any) -> Experiment:
        return experiment(step, settings, figure=f"partime_{step}", **how)

    tables = [
        # both cores, so that nothing else of the run disturbs the clock
        drawn("speedup", f"--cores {{threads}} {flags(speed)}", threads=2),
        drawn("balance", networks, threads=2),
        drawn("timeline", networks, threads=2),
        drawn("baselines", flags(speed, "depths")),
        drawn("classification", learning, inputs=labelled),
        drawn("flow", f"{seeds} {flags(own['flow'])}", inputs=frames),
        drawn("memory", networks),
        drawn("gradients", f"{seeds} {flags(own['gradients'])}", inputs=frames),
        experiment("messages", networks),
    ]
    return [
        experiment(
            "frames",
            flags(own["frames"]),
            inputs={"videos": "results/dataset/videos.tsv", "files": fetched},
            table=False,
            outputs={"out": frames["frames"]},
        ),
        *tables,
        experiment(
            "claims", f"{seeds} {flags(own['gradients'], 'good_cosine')}", inputs=_tsv(tables)
        ),
    ]


def _sbp(config: Config, shards: Iterable[str]) -> list[Experiment]:
    experiment = partial(_step, "sbp")
    own = config["papers"]["sbp"]
    seeds = flags(own, "seeds", "confidence", "resamples")
    transformer = own["transformer"]
    networks = {"networks": "results/papers/sbp/transformers.pt"}
    snippets = {
        "snippets": [f"results/finetune/snippets/{shard}.h5" for shard in shards],
        "annotations": "results/dataset/annotations.json",
    }
    videos = {**snippets, "videos": "results/dataset/videos.tsv"}
    measurements = "results/finetune/measurements"

    def trained(step: str, *keys: str, inputs: Inputs = snippets, **how: Any) -> Experiment:
        settings = f"{seeds} {flags(own['tuning'])} {flags(own['detection'], *keys)}"
        return experiment(step, settings, inputs=inputs, minutes=720, mem_mb=4000, **how)

    tables = [
        experiment("table1", inputs={"table3": "results/papers/sbp/table3.tsv"}),
        experiment("table2"),
        experiment(
            "table3",
            f"{seeds} {flags(transformer)}",
            outputs={"out-networks": networks["networks"]},
            minutes=120,
        ),
        trained("table4", "online_ratios"),
        trained("table5", "ratios", "importance_ratio", inputs=videos),
        experiment("figure1", inputs=networks, figure="sbp_figure1"),
        experiment("figure4", inputs=networks, figure="sbp_figure4"),
        trained("figure6", "shares", "figure_ratio", figure="sbp_figure6"),
        experiment(
            "gradients",
            f"{seeds} {flags(own['gradients'])}",
            inputs=snippets,
            figure="sbp_gradients",
            minutes=120,
            mem_mb=4000,
        ),
    ]
    judged = {**_tsv(tables), "measurements": f"{measurements}.tsv"}
    return [
        *tables,
        experiment("claims", f"{seeds} {flags(transformer, 'margin')}", inputs=judged),
        Experiment(
            command="finetune measure",
            settings=flags(config["finetune"]["measure"]),
            result=measurements,
            figure="finetune_measurements",
            category="Training",
            mem_mb=8000,
        ),
    ]


def _tsv(tables: Iterable[Experiment]) -> dict[str, str]:
    """Return the TSV of each table by its step, as claims read it."""
    return {each.command.split()[-1]: f"{each.path}.tsv" for each in tables}
