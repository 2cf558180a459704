"""The memory of this process: held, at its peak, and freed but kept.

Without torch until a `DeviceMemory` is made.
"""

import contextlib
import ctypes
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # names and numbers of glibc's mallopt(3)
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_MACHINE, _GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
_SHARE = 0.7  # of the available memory: others need some, and videos differ


def keep_freed_memory() -> None:
    """Make glibc reuse large blocks; do nothing with another C library.

    A network on the CPU frees and allocates the same tens of megabytes at every layer. By default
    glibc maps and unmaps each: page faults took a third of the encoders' CPU time and a fifth of
    a training step's.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
        if mallopt is not None:
            mallopt(_M_MMAP_MAX, 0)
            mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


def give_back_freed_memory() -> None:
    """Make glibc return all empty pages, also the gaps that `keep_freed_memory` keeps."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def resident_bytes() -> int:
    """Return the memory of this process that is in RAM; 0 where the system does not report it."""
    return _field("VmRSS")


def peak_bytes() -> int:
    """Return the most since the start or the last `forget_peak`; 0 where it is not known."""
    return _field("VmHWM")


def forget_peak() -> None:
    """Reset the peak to the memory held now, where the system can do that."""
    # where it cannot, the peak stays that since the start: more, never less
    with contextlib.suppress(OSError):
        _RESET.write_text("5", encoding="ascii")


def _field(name: str) -> int:
    if sys.platform != "linux":
        return 0
    for line in _STATUS.read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0


def workers_within(items: int, worker_bytes: int) -> int:
    """Return how many workers the cores and the available memory allow, 1 to `items`.

    Cores are those that this process may use, by its affinity and its control group.
    """
    room = _available_bytes()
    by_memory = items if room is None else int(room * _SHARE) // worker_bytes
    return max(1, min(items, _allowed_cores(), by_memory))


def _allowed_cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    quota, _, period = _group_value("cpu.max").partition(" ")
    return min(cores, max(1, int(quota) // int(period))) if quota.isdigit() else cores


def _available_bytes() -> int | None:
    """Return the memory that is free for use; None where the system does not report it."""
    found = []
    with contextlib.suppress(OSError):
        lines = _MACHINE.read_text(encoding="ascii").splitlines()
        found = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    if (most := _group_value("memory.max")).isdigit():  # else "max": no limit
        held = dict(line.split() for line in _group_value("memory.stat").splitlines())
        found.append(int(most) - int(held.get("anon", 0)))  # the page cache is given back
    return min(found, default=None)


def _group_value(name: str) -> str:
    with contextlib.suppress(OSError):
        return (_GROUP / name).read_text(encoding="ascii").strip()
    return ""


class DeviceMemory:
    """The memory of a device that this process holds, including freed memory that it keeps."""

    def __init__(self, device: "torch.device") -> None:
        import torch

        self._cuda = torch.cuda
        self._gpu = device if device.type == "cuda" else None
        if self._gpu:
            self._cuda.init()  # type: ignore[no-untyped-call]  # before it statistics do not exist

    def held(self) -> int:
        """Return the bytes held now; 0 where the system does not report them."""
        return self._cuda.memory_reserved(self._gpu) if self._gpu else resident_bytes()

    def peak(self) -> int:
        """Return the most since the start or the last `forget_peak`."""
        return self._cuda.max_memory_reserved(self._gpu) if self._gpu else peak_bytes()

    def forget_peak(self) -> None:
        """Reset the peak to the memory held now."""
        if self._gpu:
            self._cuda.reset_peak_memory_stats(self._gpu)
        else:
            forget_peak()

    def give_back(self) -> None:
        """Give freed memory back to the system."""
        if self._gpu:
            self._cuda.empty_cache()
        else:
            give_back_freed_memory()
