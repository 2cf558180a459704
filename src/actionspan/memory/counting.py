"""Count the bytes that autograd saves for backward, and the bytes of all living tensors.

The count is exact and the same in every run, and on the `meta` device it needs neither memory nor
arithmetic: storages are known by their objects, as all addresses there are 0.
"""

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode


class _SavedBytes:
    """The bytes saved inside a block of `saved_bytes`.

    Attributes:
        total: The most bytes that were saved at one time.
        live: The bytes that are saved now.
    """

    def __init__(self, *modules: nn.Module) -> None:
        self.total = self.live = 0
        self._holders: dict[int, int] = {}  # saved tensors of a storage, by its identity
        tensors = [t for module in modules for t in (*module.parameters(), *module.buffers())]
        self._excluded = {identity(tensor) for tensor in tensors}

    def hold(self, tensor: Tensor) -> Callable[[], None]:
        """Count the storage of a kept tensor; call the returned function once it is released."""
        key, size = identity(tensor), tensor.untyped_storage().nbytes()
        if key in self._excluded:
            return lambda: None
        self._holders[key] = self._holders.get(key, 0) + 1
        if self._holders[key] == 1:
            self.live += size
            self.total = max(self.total, self.live)

        def release() -> None:
            self._holders[key] -= 1
            if not self._holders[key]:
                del self._holders[key]
                self.live -= size

        return release


class _Saved:
    """A saved tensor in autograd's graph; when the graph lets go of it, it no longer counts."""

    def __init__(self, tensor: Tensor, release: Callable[[], None]) -> None:
        # Detached: a tensor that knows its graph would keep the graph, which keeps the tensor.
        self.tensor = tensor.detach()
        self._release = release

    def __del__(self) -> None:
        self._release()


@contextmanager
def saved_bytes(*modules: nn.Module) -> Iterator[_SavedBytes]:
    """Count the bytes saved for backward by the code in the block.

    Each storage counts once, whole, from its first saved tensor to the end of its last: views of
    one storage are not counted twice. Bytes saved during backward, where something is run again,
    count too if `backward` is called in the block.

    Args:
        modules: Their parameters and buffers do not count: they are there anyway.

    Yields:
        The count: `counted.total` is the most bytes saved at one time.
    """
    counted = _SavedBytes(*modules)
    counts = _counts_here()

    def pack(tensor: Tensor) -> _Saved:  # the innermost block's, which counts for all around it
        return _Saved(tensor, _hold(counts[:], tensor))

    with _patched(counted):
        counts.append(counted)
        try:
            with _CountingHooks(pack, lambda saved: saved.tensor):
                yield counted
        finally:
            counts.remove(counted)


class _CountingHooks(saved_tensors_hooks):
    """Hooks that count by themselves."""


def _counts_here() -> list[_SavedBytes]:
    """Return the counts of the blocks that this thread is in, the outermost first."""
    counts: list[_SavedBytes] = _here.__dict__.setdefault("counts", [])
    return counts


def _hold(counts: list[_SavedBytes], tensor: Tensor) -> Callable[[], None]:
    """Count a kept tensor in several blocks; call the returned function once it is released."""
    releases = [counted.hold(tensor) for counted in counts]

    def release() -> None:
        for each in releases:
            each()

    return release


@contextmanager
def _patched(counted: _SavedBytes) -> Iterator[None]:
    """Count the tensors that other hooks keep in a block, as only the innermost hooks are called.

    `torch.utils.checkpoint` drops the tensors of the forward pass by such hooks, and keeps the
    tensors of the second run. The first block of all threads changes the class, the last one
    restores it; in threads without a block the hooks are unchanged.
    """
    with _lock:
        _open.append(counted)
        if len(_open) == 1:
            saved_tensors_hooks.__enter__ = _enter_counted  # type: ignore[method-assign]
    try:
        yield
    finally:
        with _lock:
            _open.remove(counted)
            if not _open:
                saved_tensors_hooks.__enter__ = _enter  # type: ignore[method-assign]


_enter = saved_tensors_hooks.__enter__
_lock = threading.Lock()
_open: list[_SavedBytes] = []  # of all threads
_here = threading.local()


def _enter_counted(hooks: saved_tensors_hooks) -> None:
    counts = _counts_here()[:]
    if isinstance(threading.current_thread(), threading._DummyThread):
        counts = _open[:]  # a thread of autograd, in which backward runs on a GPU
    if not counts or isinstance(hooks, _CountingHooks):
        _enter(hooks)
        return
    original = hooks.pack_hook

    def pack(tensor: Tensor) -> Any:
        try:
            packed = original(tensor)
        except BaseException:  # checkpoint stops its second run so, at the last tensor it keeps
            _hold_while_alive(counts, tensor)
            raise
        for kept in pytree.tree_leaves(packed):
            if isinstance(kept, Tensor):
                _hold_while_alive(counts, kept)
        return packed

    hooks.pack_hook = pack
    try:
        _enter(hooks)
    finally:
        hooks.pack_hook = original


def _hold_while_alive(counts: list[_SavedBytes], tensor: Tensor) -> None:
    """Count a tensor until its storage is freed, since its keeper does not report the release."""
    weakref.finalize(tensor.untyped_storage(), _hold(counts, tensor)).atexit = False


def identity(tensor: Tensor) -> int:
    """Return a number that two living tensors share if and only if they share their storage."""
    return int(tensor.untyped_storage()._cdata)


# These hand out the tensor they are given as a new one: Python made it outside the dispatcher.
_NEW = (torch.ops.aten.lift_fresh.default, torch.ops.aten.lift.default)

_CONVOLUTIONS = (torch.ops.aten.convolution.default, torch.ops.aten.convolution_backward.default)


class AllocatedBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of all tensors made in a block (`with`) while they are alive.

    `saved_bytes` counts the tensors that autograd keeps; this counts all that a step needs:
    gradients, results that live for one layer only, copies. It sees every tensor that PyTorch's
    dispatcher hands out, also on `meta`, but not the memory inside a kernel.

    Each storage counts once and whole; views and writes in place add nothing. The backward pass is
    seen if it is called in the block.

    Attributes:
        peak: The most bytes that were alive at one time.
        live: The bytes that are alive now.
        largest: The most bytes that one call of an operator read and made.
        peak_with_copies: The peak if each convolution also holds a copy of all it reads and makes.
            Libraries for CPUs compute in a layout of their own, and the dispatcher sees no copies.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.peak = self.live = self.largest = self.peak_with_copies = 0
        self._sizes: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
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


def _storages(tree: Any) -> dict[int, torch.UntypedStorage]:
    """Return the storages of the tensors in nested containers by their identity."""
    tensors = [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]
    strided = [tensor for tensor in tensors if tensor.layout == torch.strided]
    return {identity(tensor): tensor.untyped_storage() for tensor in strided}
