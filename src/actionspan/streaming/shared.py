"""Memory that processes share and that has no name: it is gone with the last of them."""

import math
import mmap
import os
import tempfile
from multiprocessing import reduction
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn

_SHARED: WeakValueDictionary[int, Tensor] = WeakValueDictionary()  # in shared memory now, by id
_ALIGNED = 64  # bytes; kernels may give other low bits elsewhere


class SharedBlock:
    """A block of bytes that other processes map too: send it as an argument of a new process.

    Nothing appears under /dev/shm, so nothing stays behind whoever is killed.
    """

    def __init__(self, size: int) -> None:
        descriptor = _anonymous_file()
        os.ftruncate(descriptor, max(1, size))
        self._map(descriptor)

    def _map(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._memory = mmap.mmap(descriptor, os.fstat(descriptor).st_size)

    def tensor(
        self,
        offset: int,
        dtype: torch.dtype,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
    ) -> Tensor:
        """Return a tensor inside the block, its axes in order or with dense `strides`.

        It is no view of another tensor: autograd would take a change of one for a change of all.
        """
        count = math.prod(shape)
        if count == 0:
            return torch.empty(shape, dtype=dtype)
        flat = torch.frombuffer(self._memory, dtype=dtype, count=count, offset=offset)
        return flat.view(shape) if strides is None else flat.as_strided(shape, strides)

    def __getstate__(self) -> Any:
        return reduction.DupFd(self.descriptor)

    def __setstate__(self, handle: Any) -> None:
        self._map(handle.detach())

    @classmethod
    def of(cls, descriptor: int) -> "SharedBlock":
        """Return the block behind a descriptor that another process sent."""
        block = cls.__new__(cls)
        block._map(descriptor)
        return block

    def close(self) -> None:
        """Close the descriptor; tensors inside stay valid."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def dense_strides(tensor: Tensor) -> tuple[int, ...]:
    """Return the strides that a copy of a tensor has: kernels may round otherwise for others."""
    return torch.empty_like(tensor, device="meta").stride()


def offsets(tensors: list[Tensor] | tuple[Tensor, ...]) -> tuple[list[int], int]:
    """Return where each tensor goes in a block, and the size of the block."""
    places, end = [], 0
    for tensor in tensors:
        places.append(end)
        size = tensor.numel() * tensor.element_size()
        end += -(-size // _ALIGNED) * _ALIGNED
    return places, end


def module_tensors(module: Any) -> list[Tensor]:
    """Return the parameters and buffers of a module, each once."""
    if not isinstance(module, nn.Module):
        return []
    return [*module.parameters(), *module.buffers()]


def share(tensors: list[Tensor]) -> SharedBlock:
    """Move tensors into a block of shared memory; they stay the objects that they are.

    Raises:
        ValueError: Some are in such a block already.
    """
    if any(_SHARED.get(id(tensor)) is tensor for tensor in tensors):
        raise ValueError("a module of this pipeline runs in the processes of another one")
    places, size = offsets(tensors)
    block = SharedBlock(size)
    for tensor, place in zip(tensors, places, strict=True):
        view = block.tensor(place, tensor.dtype, tuple(tensor.shape), dense_strides(tensor))
        view.copy_(tensor.detach())
        tensor.data = view
        _SHARED[id(tensor)] = tensor
    return block


def unshare(tensors: list[Tensor]) -> None:
    """Move tensors back into memory of this process."""
    for tensor in tensors:
        tensor.data = tensor.detach().clone()
        _SHARED.pop(id(tensor), None)


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("actionspan", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
