"""Count the bytes of the tensors that are alive at one time, temporaries of backward included.

Where `counting` asks what autograd keeps, this asks what a step needs in all: gradients, results
that live for one layer only, copies. It sees every tensor that PyTorch's dispatcher hands out, also
on `meta`, where nothing is computed; it does not see what a kernel allocates inside itself.
"""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from actionspan.memory.counting import identity

# These hand out the tensor they are given as a new one: Python made it outside the dispatcher.
_NEW = (torch.ops.aten.lift_fresh.default, torch.ops.aten.lift.default)

_CONVOLUTIONS = (
    torch.ops.aten.convolution.default,
    torch.ops.aten.convolution_backward.default,
)


class AllocatedBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The bytes of the tensors made in a block of `allocated_bytes`.

    Attributes:
        peak: The most bytes that were alive at one time.
        live: The bytes that are alive now.
        largest: The most bytes that one call of an operator read and made.
        peak_with_copies: The peak if each convolution also holds a copy of all it reads and makes.
            Libraries for CPUs compute in a layout of their own, and the dispatcher sees no copies.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.peak = 0
        self.live = 0
        self.largest = 0
        self.peak_with_copies = 0
        self._sizes: dict[int, int] = {}

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run an operator and note the storages that it made."""
        result = func(*args, **(kwargs or {}))
        given = {} if func in _NEW else _storages((args, kwargs))
        made = _storages(result)
        for key, storage in made.items():
            if key in given or key in self._sizes:  # a view, or written in place
                continue
            self._sizes[key] = storage.nbytes()
            self.live += storage.nbytes()
            weakref.finalize(storage, self._freed, key).atexit = False
        self.peak = max(self.peak, self.live)
        call = sum(storage.nbytes() for storage in (given | made).values())
        self.largest = max(self.largest, call)
        copies = call if func in _CONVOLUTIONS else 0
        self.peak_with_copies = max(self.peak_with_copies, self.live + copies)
        return result

    def _freed(self, key: int) -> None:
        self.live -= self._sizes.pop(key)


@contextmanager
def allocated_bytes() -> Iterator[AllocatedBytes]:
    """Count the bytes of all tensors made in the block while they are alive.

    Each storage counts once and whole; views and writes in place add nothing. The backward pass is
    seen if it is called in the block.

    Yields:
        The count: `counted.peak` is the most bytes alive at one time.
    """
    with AllocatedBytes() as counted:
        yield counted


def _storages(tree: Any) -> dict[int, torch.UntypedStorage]:
    """Return the storages of the tensors in nested containers by their identity."""
    tensors = [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]
    strided = [tensor for tensor in tensors if tensor.layout == torch.strided]
    return {identity(tensor): tensor.untyped_storage() for tensor in strided}
