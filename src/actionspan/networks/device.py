"""The device a network runs on."""

import os
import sys
from functools import cache

import torch

from actionspan.errors import InputError
from actionspan.running import launcher

# Set where SLURM gives each rank GPUs of its own, of which it then sees no others.
_BOUND = ("SLURM_GPUS_PER_TASK", "SLURM_GPU_BIND", "SLURM_TRES_PER_TASK")


def choose_device(wanted: str) -> torch.device:
    """Return the device of a setting: `auto` is a CUDA device where there is one.

    The ranks of a node are spread over its GPUs, and a rank's GPU becomes torch's current one.

    Raises:
        InputError: A CUDA device is wanted and there is none.
    """
    has_cuda = torch.cuda.is_available()
    if wanted == "cuda" and not has_cuda:
        raise InputError("device is cuda, but no CUDA device is visible; give auto or cpu")
    if not has_cuda or wanted == "cpu":
        return torch.device("cpu")
    rank, ranks = launcher.local_rank()
    if ranks == 1:
        return torch.device("cuda")
    gpus = torch.cuda.device_count()
    if ranks > gpus and rank == 0 and not any(name in os.environ for name in _BOUND):
        _say_crowded(ranks, gpus)
    device = torch.device("cuda", rank % gpus)
    torch.cuda.set_device(device)
    return device


@cache
def _say_crowded(ranks: int, gpus: int) -> None:
    """Say once that ranks share GPUs."""
    shared = "1 GPU" if gpus == 1 else f"{gpus} GPUs"
    line = f"{ranks} ranks share {shared} on this machine; more than a rank a GPU are no faster"
    print(line, file=sys.stderr, flush=True)
