"""What paper 003 compares: which runs stand in which of its figures, by which names."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from actionspan.papers.aavg.settings import ExperimentSettings
from actionspan.papers.runs import VARIANTS, Learning, Variant
from actionspan.parallel.settings import ExchangeName

STREAMS = ("rgb", "flow")
STREAM_NAMES = {"rgb": "RGB", "flow": "flow", "two-stream": "two-stream"}
RATE_METHODS = ("aavg1", "aavg3", "none")


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Ways of joining learners whose accuracy is drawn over epochs.

    Attributes:
        title: Of the figure.
        labels: How each method is called in it.
        numbers: Which figure of the paper shows this, by stream; a stream that is not in it is
            not drawn.
        every_interval: Whether the method is drawn for all K; else each as it is by default.
    """

    title: str
    labels: Mapping[str, str]
    numbers: Mapping[str, str] = field(default_factory=lambda: dict.fromkeys(STREAMS, ""))
    every_interval: bool = False

    def runs(self, settings: ExperimentSettings, learners: int) -> list[Learning]:
        """Return the runs of the first seed."""
        if not self.every_interval:
            return [run_of(method, learners) for method in self.labels]
        return [
            run_of(method, learners, interval)
            for method in self.labels
            for interval in (*settings.intervals, -1)
        ]

    def label(self, run: Learning) -> str | None:
        """Return how a run is called; None where it is not compared here."""
        name = self.labels.get(run.method)
        if name is None or not self.every_interval:
            return name
        return f"K = {run.interval}"


COMPARISONS: Mapping[str, Comparison] = {
    "interval": Comparison(
        title="Steps between two averages",
        labels={"aavg1": "AAVG1"},
        numbers={"rgb": "figure 2", "flow": "figure 3"},
        every_interval=True,
    ),
    "batch": Comparison(
        title="Constant and adaptive batch",
        labels={"aavg1": "constant", "aavg2": "adaptive"},
        numbers={"rgb": "figure 4", "flow": "figure 5"},
    ),
    "optimiser": Comparison(
        title="The optimiser's state averaged or not",
        labels={"aavg2": "parameters alone", "aavg3": "and state"},
        numbers={"rgb": "figure 6", "flow": "figure 7"},
    ),
    "transfer": Comparison(
        title="Transfer from the RGB network",
        labels={"aavg3": "without", "aavg4": "with transfer"},
        numbers={"flow": "figure 8"},
    ),
    "adam": Comparison(
        title="Averaged learners and one alone",
        labels={"aavg3": "AAVG3", "none": "one learner"},
        numbers={"rgb": "figure 9", "flow": "figure 9"},
    ),
    "peers": Comparison(
        title="AAVG and its peers",
        labels={
            "aavg3": "AAVG3",
            "ring": "gradients, ring",
            "periodic": "torch's averages",
            "ps_async": "async. server",
        },
    ),
}


def curve_figures() -> list[str]:
    """Return the names of the figures: interval_rgb, interval_flow and so on."""
    return [f"{name}_{stream}" for name, each in COMPARISONS.items() for stream in each.numbers]


def run_of(method: str, learners: int, interval: int | None = None) -> Learning:
    """Return a method's run of the first seed.

    Args:
        method: A variant of AAVG or the name of an exchange.
        learners: How many train together; `none` has one.
        interval: K; None: as the paper has it, an average an epoch, or each step where gradients
            are exchanged.
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


def compared_runs(settings: ExperimentSettings, learners: int) -> list[Learning]:
    """Return the runs of all comparisons, each once, of the first seed."""
    every = (run for each in COMPARISONS.values() for run in each.runs(settings, learners))
    return list(dict.fromkeys(every))


def rate_runs(settings: ExperimentSettings, learners: int, configured: float) -> list[Learning]:
    """Return the runs that sweep the learning rate, of the first seed.

    Args:
        settings: Which rates.
        learners: How many train together.
        configured: The rate of all other runs, which are this sweep's too.
    """
    return [
        replace(run_of(method, learners), learning_rate=None if float(rate) == configured else rate)
        for method in RATE_METHODS
        for rate in settings.rates()
    ]


def run_paths(runs: Iterable[Learning], streams: Sequence[str], seeds: int, file: str) -> list[str]:
    """Return the paths of a file of runs: of each stream and seed, each once.

    RGB of AAVG4 is that of AAVG3, so it is not trained for itself.
    """
    names = (
        (replace(run, seed=seed).trained_as(stream).name, stream)
        for run in runs
        for stream in streams
        for seed in range(1, seeds + 1)
    )
    paths = [f"results/recognition/runs/{name}/{stream}/{file}" for name, stream in names]
    return list(dict.fromkeys(paths))
