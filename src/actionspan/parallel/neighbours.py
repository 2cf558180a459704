"""Tensors that ranks of one machine read where they lie, instead of messages.

An MPI message between processes is copied, and added after that. Here a rank reads a block in its
left neighbour's memory and adds it as it reads. The only messages are empty ones, which mean that a
block is complete.
"""

import os
import secrets
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from actionspan.parallel.communicator import Communicator


class Shared(NamedTuple):
    """This rank's (M,) tensor, and its left neighbour's as it can be read here."""

    own: Tensor
    left: Tensor


def shared_zeros(length: int, dtype: torch.dtype, comm: Communicator) -> Shared | None:
    """Return (length,) zeros next to the left neighbour's; all ranks call it with the same length.

    None, on all ranks, where one cannot read its left neighbour's memory: on another machine or in
    another container, or where the system has no anonymous files. The memory has no name: it is
    gone with the last process.
    """
    rank = comm.Get_rank()
    name = f"actionspan-{secrets.token_hex(8)}"
    descriptor = _anonymous_file(name, length * dtype.itemsize)
    try:
        places = comm.allgather(f"/proc/{os.getpid()}/fd/{descriptor} {name}")
        own, left = (_mapped(places[each], length, dtype) for each in (rank, rank - 1))
        # also means that all ranks have mapped it, and the descriptor may be closed
        together = all(comm.allgather(own is not None and left is not None))
    finally:
        if descriptor >= 0:
            os.close(descriptor)
    return Shared(own, left) if together and own is not None and left is not None else None


def _anonymous_file(name: str, size: int) -> int:
    """Return the descriptor of a new file in memory; -1 where there cannot be one."""
    if not hasattr(os, "memfd_create"):
        return -1
    try:
        descriptor = os.memfd_create(name)
    except OSError:
        return -1
    os.ftruncate(descriptor, max(1, size))
    return descriptor


def _mapped(place: str, length: int, dtype: torch.dtype) -> Tensor | None:
    """Return the tensor in another rank's file; None where it is not to be seen from here."""
    path, name = place.split()
    try:
        # on another machine a process of this number has other files
        if not str(Path(path).readlink()).startswith(f"/memfd:{name} "):
            return None
        return torch.from_file(path, shared=True, size=length, dtype=dtype)
    except (OSError, RuntimeError):
        return None
