"""A limit on the size of files, which stands for a full disk."""

import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let this process write no file of more bytes.

    No bytecode is written: Python would leave it cut off, and every later import would fail.
    """
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    signals = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        with mock.patch.object(sys, "dont_write_bytecode", True):
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, signals)
