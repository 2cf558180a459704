"""A block of torch code whose results depend on its inputs, seeds and thread count alone."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def deterministic(threads: int) -> Iterator[None]:
    """Run a block with `threads` threads and deterministic kernels; the caller's state returns.

    What it changes is set back after the block: the thread count, whether torch insists on
    deterministic kernels, and torch's global random numbers.
    """
    before = torch.get_num_threads()
    insisted = torch.are_deterministic_algorithms_enabled()
    with torch.random.fork_rng(devices=[]):
        torch.set_num_threads(threads)
        torch.use_deterministic_algorithms(True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(insisted)
            torch.set_num_threads(before)


def seed_torch(*numbers: int, generator: torch.Generator | None = None) -> None:
    """Seed torch's random numbers, or a generator, by several numbers together.

    Args:
        numbers: E.g. (seed, epoch, step).
        generator: Seeded in place of the global one.
    """
    seed = int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])
    if generator is None:
        torch.manual_seed(seed)
    else:
        generator.manual_seed(seed)
