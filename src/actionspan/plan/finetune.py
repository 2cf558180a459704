"""Fine-tuning: its networks and weights, its ranks and memory."""

from collections.abc import Mapping
from typing import Any

from actionspan.finetune.flags import ENCODERS, WITHOUT_TEMPORAL
from actionspan.parallel.settings import processes
from actionspan.plan.features import weights_files
from actionspan.plan.flags import flags
from actionspan.plan.ranks import launch

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
