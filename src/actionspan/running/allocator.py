"""Keep freed memory in the process instead of faulting its pages in again; or give it back."""

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4  # names and numbers of glibc's mallopt(3)


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
    """Make glibc return all pages that hold nothing, also those between others that do.

    Blocks of many sizes leave gaps, which `keep_freed_memory` keeps.
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
