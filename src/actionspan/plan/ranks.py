"""How the processes of a training are started: by which command, how many, with how much memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from actionspan.parallel.settings import processes
from actionspan.plan.flags import flags


@dataclass(frozen=True)
class RanksPlan:
    """The processes of a temporal training, whose run is named like ring-4."""

    config: Mapping[str, Any]

    @property
    def run(self) -> str:
        """The name of the configured run."""
        return f"{self.config['temporal']['exchange']}-{self.config['temporal']['ranks']}"

    @property
    def scaling_runs(self) -> list[str]:
        """The names of the timed runs; one rank without an exchange is the reference."""
        scaling = self.config["scaling"]
        named = [f"{name}-{ranks}" for name in scaling["exchanges"] for ranks in scaling["ranks"]]
        return ["none-1", *named]

    @property
    def scaling_training(self) -> dict[str, Any]:
        """The training of timed runs: short, and the last epoch kept, so that all do equal work."""
        timed = {"epochs": self.config["scaling"]["epochs"], "keep": "last"}
        return {**self.config["temporal"]["training"], **timed}

    def processes(self, wildcards: Any) -> int:
        """Return how many processes train together: the ranks, and a server that has its own."""
        exchange, _, ranks = wildcards.run.rpartition("-")
        return processes(exchange, int(ranks))

    def threads(self, wildcards: Any) -> int:
        """Return the cores of all of them."""
        return self.processes(wildcards) * int(self.config["temporal"]["threads"])

    def memory(self, wildcards: Any) -> int:
        """Return MB."""
        return 1000 + 1000 * self.processes(wildcards)

    def launch(self, wildcards: Any) -> str:
        """Return what starts the ranks.

        It is a resource of the rule, so that another launcher re-runs nothing.
        """
        return launch(self.config, self.processes(wildcards))

    def flags(self, wildcards: Any) -> str:
        """Return the flags of the exchange."""
        exchange, _, ranks = wildcards.run.rpartition("-")
        if exchange == "none":
            return ""
        return f"--exchange={exchange} --ranks={ranks} {flags(self.config['temporal']['parallel'])}"


def launch(config: Mapping[str, Any], count: int) -> str:
    """Return what starts several processes; one is started like any other command."""
    return f"{config['mpi']['launcher']} -n {count}" if count > 1 else ""
