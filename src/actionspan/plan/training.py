"""The processes of trainings: the command that starts them, their number, memory and flags."""

from collections.abc import Mapping
from typing import Any

from actionspan.finetune.flags import ENCODERS, WITHOUT_TEMPORAL
from actionspan.parallel.settings import processes
from actionspan.plan.features import weights_files
from actionspan.plan.flags import flags


class RanksPlan:
    """The processes of a temporal training, whose run has a name like ring-4.

    Attributes:
        run: The name of the configured run.
        scaling_runs: The names of the timed runs; one rank without an exchange is the reference.
        scaling_training: The training of timed runs: short, and the last epoch kept, so that all
            do equal work.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config, temporal, scaling = config, config["temporal"], config["scaling"]
        self.run = f"{temporal['exchange']}-{temporal['ranks']}"
        named = [f"{name}-{ranks}" for name in scaling["exchanges"] for ranks in scaling["ranks"]]
        self.scaling_runs = ["none-1", *named]
        timed = {"epochs": scaling["epochs"], "keep": "last"}
        self.scaling_training = {**temporal["training"], **timed}

    def processes(self, wildcards: Any) -> int:
        """Return how many processes train together: the ranks, and a server that has its own."""
        exchange, _, ranks = wildcards.run.rpartition("-")
        return processes(exchange, int(ranks))

    def threads(self, wildcards: Any) -> int:
        """Return the cores of all processes."""
        return self.processes(wildcards) * int(self._config["temporal"]["threads"])

    def memory(self, wildcards: Any) -> int:
        """Return MB."""
        return 1000 + 1000 * self.processes(wildcards)

    def launch(self, wildcards: Any) -> str:
        """Return what starts the ranks: a resource, so that another launcher re-runs nothing."""
        return launch(self._config, self.processes(wildcards))

    def flags(self, wildcards: Any) -> str:
        """Return the flags of the exchange."""
        exchange, _, ranks = wildcards.run.rpartition("-")
        parallel = flags(self._config["temporal"]["parallel"])
        return "" if exchange == "none" else f"--exchange={exchange} --ranks={ranks} {parallel}"


def launch(config: Mapping[str, Any], count: int) -> str:
    """Return what starts several processes; a single process needs nothing.

    Their number stands where the launcher has `{ranks}`, or follows it as `-n N`.
    """
    launcher: str = config["mpi"]["launcher"]
    if count == 1:
        return ""
    if "{ranks}" in launcher:
        return launcher.replace("{ranks}", str(count))
    return f"{launcher} -n {count}"


LIBRARIES_MB = 1000
_STAGE = ("exchange", "ranks", "threads", "store", "measure")  # keys that are no FinetuneSettings


class FinetunePlan:
    """The tuning of encoders.

    Attributes:
        weights: The checkpoints that encoders start from, where they are files.
        settings: The flags of a tuning.
        joined: The flags of the exchange.
        processes: How many processes tune together.
        threads: The cores of all of them.
        launch: What starts them.
        memory: MB: the libraries and the budget of each process.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        finetune, features = config["finetune"], config["features"]
        encoders = {key: features["encoders"][key] for key in ENCODERS}
        if "flow" not in finetune["streams"]:  # what is not tuned re-runs nothing
            encoders = {key: value for key, value in encoders.items() if "flow" not in key}
        self.weights = weights_files(encoders.get("rgb_weights"), encoders.get("flow_weights"))
        own = {key: value for key, value in finetune.items() if key not in _STAGE}
        training = {
            key: value
            for key, value in config["temporal"]["training"].items()
            if key not in WITHOUT_TEMPORAL
        }
        sections = (own, encoders, features["rescale"], training)
        self.settings = " ".join(flags(section) for section in sections)
        exchange, ranks = finetune["exchange"], finetune["ranks"]
        self.processes = processes(exchange, ranks)
        self.threads = self.processes * int(finetune["threads"])
        self.launch = launch(config, self.processes)
        self.memory = (LIBRARIES_MB + int(finetune["memory_budget_mb"])) * self.processes
        parallel = flags(config["temporal"]["parallel"])
        joined = f"--exchange={exchange} --ranks={ranks} {parallel}"
        self.joined = "" if exchange == "none" else joined
