"""What paper 003 compares: the runs of its figures, tables and claims."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import cast

from actionspan.parallel.settings import ExchangeName
from actionspan.settings import Checked, from_mapping, option
from actionspan.workflow.runs import VARIANTS, Learning, Variant
from actionspan_papers.kinds import Config

STREAMS = ("rgb", "flow")
STREAM_NAMES = {"rgb": "RGB", "flow": "flow", "two-stream": "two-stream"}
_RATE_METHODS = ("aavg1", "aavg3", "none")


@dataclass(frozen=True, kw_only=True)
class ExperimentSettings(Checked):
    """The comparisons of the figures, tables and verdicts of paper 003."""

    seeds: int = option(3, "trainings of each way of joining learners", least=1, most=1_000)
    intervals: tuple[int, ...] = option(
        (1, 2, 4, 8),
        "values of K to compare, in addition to one average an epoch",
        least=1,
        fewest=1,
        rising=True,
    )
    learning_rates: tuple[float, ...] = option(
        (0.0003, 0.001, 0.003),
        "rates to try for AAVG and for one learner alone",
        above=0,
        fewest=1,
        rising=True,
    )
    rate_seeds: int = option(1, "trainings with each of these rates", least=1, most=1_000)
    confidence: float = option(0.95, "level of the confidence intervals", above=0, below=1)
    resamples: int = option(
        1000, "bootstrap resamples of the validation clips", least=1, most=1_000_000
    )

    def rates(self) -> list[str]:
        """Return the learning rates as they are in the names of runs."""
        return [f"{Decimal(repr(rate)):f}" for rate in self.learning_rates]


@dataclass(frozen=True)
class Comparison:
    """Ways of joining learners that are drawn, by their accuracy over epochs."""

    title: str
    labels: Mapping[str, str]
    """The name of each method in the figure."""
    numbers: Mapping[str, str] = field(default_factory=lambda: dict.fromkeys(STREAMS, ""))
    """The paper's figure of each stream; a stream that is not in it is not drawn."""
    every_interval: bool = False
    """Whether the method is drawn for all K, not at its default alone."""

    def runs(self, settings: ExperimentSettings, learners: int) -> list[Learning]:
        """Return the runs of the first seed."""
        intervals = (*settings.intervals, -1) if self.every_interval else (None,)
        return [run_of(method, learners, k) for method in self.labels for k in intervals]

    def label(self, run: Learning) -> str | None:
        """Return the label of a run; None where it is not compared here."""
        if self.every_interval and run.method in self.labels:
            return f"K = {run.interval}"
        return self.labels.get(run.method)


def _figures(rgb: int, flow: int) -> dict[str, str]:
    return {"rgb": f"figure {rgb}", "flow": f"figure {flow}"}


_STEPS, _STATE = "Steps between two averages", "The optimiser's state averaged or not"
_BATCHES = {"aavg1": "constant", "aavg2": "adaptive"}
_STATES = {"aavg2": "parameters alone", "aavg3": "and state"}
_TRANSFER = {"aavg3": "without", "aavg4": "with transfer"}
_ALONE = {"aavg3": "AAVG3", "none": "one learner"}
_PEERS = {"ring": "gradients, ring", "periodic": "torch's averages", "ps_async": "async. server"}

COMPARISONS: Mapping[str, Comparison] = {
    "interval": Comparison(_STEPS, {"aavg1": "AAVG1"}, _figures(2, 3), every_interval=True),
    "batch": Comparison("Constant and adaptive batch", _BATCHES, _figures(4, 5)),
    "optimiser": Comparison(_STATE, _STATES, _figures(6, 7)),
    "transfer": Comparison("Transfer from the RGB network", _TRANSFER, {"flow": "figure 8"}),
    "adam": Comparison("Averaged learners and one alone", _ALONE, _figures(9, 9)),
    "peers": Comparison("AAVG and its peers", {"aavg3": "AAVG3", **_PEERS}),
}


def curve_figures() -> list[str]:
    """Return the names of the figures: interval_rgb, interval_flow and so on."""
    return [f"{name}_{stream}" for name, each in COMPARISONS.items() for stream in each.numbers]


def run_of(method: str, learners: int, interval: int | None = None) -> Learning:
    """Return the first seed's run of a variant of AAVG or an exchange; `none` has one learner.

    Without an `interval` it is the paper's: an average an epoch, or every step for gradients.
    """
    averages = method in VARIANTS
    if interval is None:
        interval = -1 if averages or method == "periodic" else 1
    return Learning(
        exchange=cast(ExchangeName, "aavg" if averages else method),
        interval=interval,
        learners=1 if method == "none" else learners,
        variant=cast(Variant, method) if averages else "aavg1",
    )


def rate_runs(settings: ExperimentSettings, learners: int, configured: float) -> list[Learning]:
    """Return the first seed's runs that sweep the learning rate.

    The runs of the other comparisons have the `configured` rate.
    """
    return [
        replace(run_of(method, learners), learning_rate=None if float(rate) == configured else rate)
        for method in _RATE_METHODS
        for rate in settings.rates()
    ]


def _run_paths(
    runs: Iterable[Learning], streams: Sequence[str], seeds: int, file: str
) -> list[str]:
    """Return the paths of a file of runs: of each stream and seed, each once.

    AAVG4 takes RGB from AAVG3, so it is not trained for itself.
    """
    folders = (
        f"{replace(run, seed=seed).trained_as(stream).name}/{stream}"
        for run in runs
        for stream in streams
        for seed in range(1, seeds + 1)
    )
    return [f"results/recognition/runs/{folder}/{file}" for folder in dict.fromkeys(folders)]


def figure_logs(config: Config, figure: str) -> list[str]:
    """Return the logs of all seeds of the runs in a figure of accuracy over epochs."""
    settings, learners = _experiments(config)
    comparison, _, stream = figure.rpartition("_")
    runs = COMPARISONS[comparison].runs(settings, learners)
    return _run_paths(runs, [stream], settings.seeds, "log.tsv")


def rate_logs(config: Config) -> list[str]:
    """Return the logs of the sweep of the learning rate."""
    settings, learners = _experiments(config)
    runs = rate_runs(settings, learners, config["recognition"]["training"]["learning_rate"])
    return _run_paths(runs, STREAMS, settings.rate_seeds, "log.tsv")


def compared_files(config: Config, file: str) -> list[str]:
    """Return the paths of a file, of all seeds and streams of all runs that are compared."""
    settings, learners = _experiments(config)
    runs = [run for each in COMPARISONS.values() for run in each.runs(settings, learners)]
    return _run_paths(runs, STREAMS, settings.seeds, file)


def variant_scores(config: Config) -> list[str]:
    """Return the scores of AAVG1 to AAVG4, which average once an epoch."""
    settings, learners = _experiments(config)
    runs = [run_of(variant, learners) for variant in VARIANTS]
    return _run_paths(runs, STREAMS, settings.seeds, "scores.json")


def trained_as(logs: Sequence[str]) -> str:
    """Return the scores of the first run that has the configured learning rate."""
    log = next((log for log in logs if "-lr" not in log), logs[0])
    return log.replace("log.tsv", "scores.json")


def _experiments(config: Config) -> tuple[ExperimentSettings, int]:
    """Return the settings of the experiments, and how many learners train together."""
    section = config["recognition"]
    return from_mapping(ExperimentSettings, section["experiments"]), section["learners"]
