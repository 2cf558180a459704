"""Blocks of torch code with results that depend only on inputs, seeds and thread count."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def deterministic(threads: int) -> Iterator[None]:
    """Run a block with `threads` threads and deterministic kernels.

    `set_deterministic_debug_mode` does the same as `use_deterministic_algorithms`, which imports a
    compiler that nothing here calls, for two seconds and 145 MB. On a GPU cuBLAS is repeatable
    with a workspace of fixed size, which it reads when it starts; without one some versions of
    torch refuse each matrix product.

    Afterwards the thread count, the mode and torch's global random state are restored.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.get_num_threads()
    mode = torch.get_deterministic_debug_mode()
    with torch.random.fork_rng(devices=[]):
        torch.set_num_threads(threads)
        torch.set_deterministic_debug_mode("error")
        try:
            yield
        finally:
            torch.set_deterministic_debug_mode(mode)
            torch.set_num_threads(before)


def seed_torch(*numbers: int, generator: torch.Generator | None = None) -> None:
    """Seed `generator`, or torch's global ones, by several numbers, e.g. seed, epoch and step."""
    seed = int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])
    # torch's own function keeps the stack of each call for a GPU that may be used later: 0.5 ms
    anywhere = torch if torch.accelerator.is_available() else torch.default_generator
    (generator or anywhere).manual_seed(seed)
