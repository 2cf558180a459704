"""Which files of a run paper 003's tables, claims and figures are made of."""

from collections.abc import Mapping, Sequence
from typing import Any

from actionspan.settings import from_mapping
from actionspan_papers.aavg.comparisons import (
    COMPARISONS,
    STREAMS,
    compared_runs,
    rate_runs,
    run_paths,
)
from actionspan_papers.aavg.settings import ExperimentSettings

Config = Mapping[str, Any]
"""The checked configuration."""


def figure_logs(config: Config, figure: str) -> list[str]:
    """Return the logs of all seeds of the runs in a figure of accuracy over epochs."""
    settings, learners = _experiments(config)
    comparison, _, stream = figure.rpartition("_")
    runs = COMPARISONS[comparison].runs(settings, learners)
    return run_paths(runs, [stream], settings.seeds, "log.tsv")


def rate_logs(config: Config) -> list[str]:
    """Return the logs of the sweep of the learning rate."""
    settings, learners = _experiments(config)
    runs = rate_runs(settings, learners, config["recognition"]["training"]["learning_rate"])
    return run_paths(runs, STREAMS, settings.rate_seeds, "log.tsv")


def compared_files(config: Config, file: str) -> list[str]:
    """Return a file of all seeds and streams of all runs that are compared."""
    settings, learners = _experiments(config)
    return run_paths(compared_runs(settings, learners), STREAMS, settings.seeds, file)


def variant_scores(config: Config) -> list[str]:
    """Return the scores of AAVG1 to AAVG4, which average once an epoch."""
    settings, learners = _experiments(config)
    every = compared_runs(settings, learners)
    runs = [run for run in every if run.exchange == "aavg" and run.interval == -1]
    return run_paths(runs, STREAMS, settings.seeds, "scores.json")


def trained_as(logs: Sequence[str]) -> str:
    """Return the scores of the first run that has the configured learning rate."""
    log = next((log for log in logs if "-lr" not in log), logs[0])
    return log.replace("log.tsv", "scores.json")


def _experiments(config: Config) -> tuple[ExperimentSettings, int]:
    """Return the settings of the experiments, and how many learners train together."""
    section = config["recognition"]
    return from_mapping(ExperimentSettings, section["experiments"]), section["learners"]
