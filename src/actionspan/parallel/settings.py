"""The knobs of training on many ranks."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from actionspan.settings import option

ExchangeName = Literal[
    "none",
    "auto",
    "ring",
    "ps",
    "ps_worker",
    "ps_sharded",
    "ps_async",
    "mpi",
    "gloo",
    "nccl",
    "aavg",
    "periodic",
]
EXCHANGES: tuple[ExchangeName, ...] = get_args(ExchangeName)
ON_CPUS = tuple(
    name for name in EXCHANGES if name != "nccl"
)  # what the stages offer: they use CPUs
SERVED = ("ps", "ps_async")  # whose server has a rank of its own, beside the workers


@dataclass(frozen=True, kw_only=True)
class ParallelSettings:
    """How ranks exchange gradients or models."""

    bucket_kib: int = option(4096, "gradients that travel together", unit="KiB")
    overlap: bool = option(False, "exchange finished buckets while backward still runs")
    wire: Literal["float32", "float16", "bfloat16"] = option(
        "float32", "type in which gradients travel; sums are float32 whatever it is"
    )
    auto_kib: int = option(64, "auto: smaller buckets by MPI_Allreduce, others by the ring")
    staleness: int = option(4, "ps_async: most updates that a gradient may be behind; 0: none")
    averaging_steps: int = option(
        -1, "aavg, periodic: K, steps of each learner between two averages; -1: once an epoch"
    )
    average_state: bool = option(
        True, "aavg: average optimiser state and buffers too; false: parameters alone"
    )
    stall_seconds: float = option(
        300.0, "a rank that is missing from an exchange for so long ends the job", unit="seconds"
    )
    cuda_aware: bool = option(False, "the MPI takes GPU memory, so do not stage it")

    def __post_init__(self) -> None:
        if self.bucket_kib < 1:
            raise ValueError(f"bucket_kib {self.bucket_kib}: at least 1")
        for name in ("auto_kib", "staleness"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} {getattr(self, name)}: 0 at least")
        if self.averaging_steps != -1 and self.averaging_steps < 1:
            raise ValueError(
                f"averaging_steps {self.averaging_steps}: 1 at least, or -1 for once an epoch"
            )
        if not 0 < self.stall_seconds < math.inf:
            raise ValueError(f"stall_seconds {self.stall_seconds}: a number above 0")
        if self.wire not in ("float32", "float16", "bfloat16"):
            raise ValueError(f"wire {self.wire!r}: float32, float16 or bfloat16")


def processes(exchange: ExchangeName, workers: int) -> int:
    """Return how many processes an exchange over `workers` takes: one more where one serves.

    Raises:
        ValueError: A name that is none, no worker, or several without an exchange.
    """
    if exchange not in EXCHANGES:
        raise ValueError(f"exchange {exchange!r}: one of {', '.join(EXCHANGES)}")
    if workers < 1:
        raise ValueError(f"ranks {workers}: at least 1")
    if exchange == "none" and workers > 1:
        raise ValueError(f"exchange none with ranks {workers}: none is for 1 rank; choose another")
    return workers + (exchange in SERVED)
