"""How the processes of a training are started: the command, their number, their memory."""

from collections.abc import Mapping
from typing import Any

from actionspan.parallel.settings import processes
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
