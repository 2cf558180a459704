"""The knobs of training on many ranks."""

from dataclasses import dataclass
from typing import Literal, get_args

from actionspan.settings import Checked, option

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
class ParallelSettings(Checked):
    """How ranks exchange gradients or models."""

    bucket_kib: int = option(4096, "gradients that travel together", unit="KiB", least=1)
    overlap: bool = option(False, "exchange finished buckets while backward still runs")
    wire: Literal["float32", "float16", "bfloat16"] = option(
        "float32", "type in which gradients travel; sums are float32"
    )
    auto_kib: int = option(
        64, "auto: smaller buckets go by MPI_Allreduce, others by the ring", unit="KiB", least=0
    )
    staleness: int = option(
        4, "ps_async: most updates that a gradient may be behind; 0: none", least=0
    )
    averaging_steps: int = option(
        -1, "aavg, periodic: K, steps of each rank between averages; -1: an epoch", least=1, also=-1
    )
    average_state: bool = option(
        True, "aavg: average optimiser state and buffers too; false: parameters alone"
    )
    stall_seconds: float = option(
        300.0, "a rank missing from an exchange for this long ends the job", above=0
    )
    cuda_aware: bool = option(False, "the MPI takes GPU memory, so do not stage it")


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
