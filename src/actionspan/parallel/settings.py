"""Settings of training on many ranks."""

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
# the choice of the stages: they use CPUs
ON_CPUS = tuple(name for name in EXCHANGES if name != "nccl")
SERVED = ("ps", "ps_async")  # the server has its own rank, in addition to the workers


@dataclass(frozen=True, kw_only=True)
class ParallelSettings(Checked):
    """How ranks exchange gradients or models."""

    bucket_kib: int = option(4096, "gradients that travel together", unit="KiB", least=1)
    overlap: bool = option(False, "exchange finished buckets while backward still runs")
    wire: Literal["float32", "float16", "bfloat16"] = option(
        "float32", "type in which gradients travel; sums are float32"
    )
    auto_kib: int = option(
        -1,
        "auto: smaller buckets go by MPI_Allreduce, others by the ring; -1: as measured",
        unit="KiB",
        least=-1,
    )
    staleness: int = option(
        4, "ps_async: most updates that a gradient may lag behind; 0: none", least=0
    )
    averaging_steps: int = option(
        -1, "aavg, periodic: K, steps of each rank between averages; -1: an epoch", least=1, also=-1
    )
    average_state: bool = option(
        True, "aavg: average optimiser state and buffers too; false: parameters only"
    )
    stall_seconds: float = option(
        300.0, "a rank missing from an exchange for this long ends the job", above=0
    )
    cuda_aware: bool = option(False, "MPI is CUDA-aware: hand it GPU memory without staging")


def processes(exchange: ExchangeName, workers: int) -> int:
    """Return the number of processes of an exchange: `workers`, plus a dedicated server's.

    Raises:
        ValueError: Unknown exchange, no worker, or several workers without an exchange.
    """
    if exchange not in EXCHANGES:
        raise ValueError(f"exchange {exchange!r}: one of {', '.join(EXCHANGES)}")
    if workers < 1:
        raise ValueError(f"ranks {workers}: at least 1")
    if exchange == "none" and workers > 1:
        raise ValueError(f"exchange none with ranks {workers}: none is for 1 rank; choose another")
    return workers + (exchange in SERVED)
