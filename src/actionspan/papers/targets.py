"""Which files of a run the papers' tables, claims and figures are made of."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from actionspan.papers.aavg.comparisons import (
    COMPARISONS,
    STREAMS,
    compared_runs,
    rate_runs,
    run_paths,
)
from actionspan.papers.aavg.settings import ExperimentSettings
from actionspan.papers.runs import with_seed
from actionspan.settings import from_mapping

ABLATION = ("origin", "se", "dense", "mtn")
"""The rows of paper 001's ablation, whichever models a plain run has."""
LOSS_MODELS = ("origin", "cnn2", "cnn4", "mtn")
"""The curves of paper 001's figure 10."""

Config = Mapping[str, Any]
"""The checked configuration."""


def table_scores(config: Config, table: str) -> list[str]:
    """Return the scores by video that a table of paper 001 is made of."""
    models = ABLATION if table == "table3" else config["temporal"]["models"]
    return _video_scores(config, [*models, *_baselines(config)])


def claim_scores(config: Config) -> list[str]:
    """Return the scores by video that paper 001's claims compare."""
    return _video_scores(config, [*ABLATION, *(set(_baselines(config)) & {"tag"})])


def loss_logs(config: Config) -> list[str]:
    """Return the logs of training that paper 001's figure 10 is made of."""
    section = config["temporal"]
    trained = f"{section['exchange']}-{section['ranks']}"
    names = seed_names(config, LOSS_MODELS)
    return [f"results/temporal/{name}/{trained}/log.tsv" for name in names]


def figure_logs(config: Config, figure: str) -> list[str]:
    """Return the logs of all seeds of the runs in a figure of accuracy over epochs."""
    settings, learners = _experiments(config)
    comparison, _, stream = figure.rpartition("_")
    runs = COMPARISONS[comparison].runs(settings, learners)
    return run_paths(runs, [stream], settings.seeds, "log.tsv")


def rate_logs(config: Config) -> list[str]:
    """Return the logs of the sweep of the learning rate."""
    settings, learners = _experiments(config)
    configured = config["recognition"]["training"]["learning_rate"]
    runs = rate_runs(settings, learners, configured)
    return run_paths(runs, STREAMS, settings.rate_seeds, "log.tsv")


def compared_files(config: Config, file: str) -> list[str]:
    """Return a file of all seeds and streams of all runs that paper 003 compares."""
    settings, learners = _experiments(config)
    return run_paths(compared_runs(settings, learners), STREAMS, settings.seeds, file)


def variant_scores(config: Config) -> list[str]:
    """Return the scores of AAVG1 to AAVG4, which average once an epoch."""
    settings, learners = _experiments(config)
    runs = [
        run
        for run in compared_runs(settings, learners)
        if run.exchange == "aavg" and run.interval == -1
    ]
    return run_paths(runs, STREAMS, settings.seeds, "scores.json")


def trained_as(logs: Sequence[str]) -> str:
    """Return the scores of the first of some runs that has the configured learning rate."""
    log = next((log for log in logs if "-lr" not in log), logs[0])
    return log.replace("log.tsv", "scores.json")


def seed_names(config: Config, methods: Iterable[str]) -> list[str]:
    """Return the names of all seeds of some methods; one without chance has one."""
    count = config["evaluation"]["seeds"]
    return [
        with_seed(method, seed)
        for method in methods
        for seed in range(1, 2 if method in ("sliding", "difference") else count + 1)
    ]


def _baselines(config: Config) -> Sequence[str]:
    """Return the configured baselines; external features have no frame differences."""
    left_out = "difference" if config["features"]["source"] == "external" else ""
    return [name for name in config["evaluation"]["baselines"] if name != left_out]


def _video_scores(config: Config, methods: Iterable[str]) -> list[str]:
    return [f"results/evaluation/videos/{name}.tsv" for name in seed_names(config, methods)]


def _experiments(config: Config) -> tuple[ExperimentSettings, int]:
    """Return the settings of paper 003's experiments, and how many learners train together."""
    section = config["recognition"]
    return from_mapping(ExperimentSettings, section["experiments"]), section["learners"]
