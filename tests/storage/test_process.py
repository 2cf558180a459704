"""One process at a time holds a file, however the one before ended."""

import errno
import fcntl
import os
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from actionspan.storage.process import hold_file

HOLDING = """
import sys, time
from pathlib import Path
from actionspan.storage.process import hold_file
kept = hold_file(Path(sys.argv[1]), "the first")
print("held", flush=True)
time.sleep(600)
"""


def locking(file: int, _: int, size: int) -> None:
    """Lock bytes from the place in the file on, as Windows' C library does."""
    place = os.lseek(file, 0, os.SEEK_CUR)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise PermissionError(errno.EACCES, "Permission denied") from None
    assert (place, size) == (200, 1)


@pytest.fixture(params=["flock", "msvcrt"])
def system(request, monkeypatch):
    if request.param == "msvcrt":
        windows = SimpleNamespace(locking=locking, LK_NBLCK=2)
        monkeypatch.setitem(sys.modules, "msvcrt", windows)
        monkeypatch.setitem(sys.modules, "fcntl", None)
        monkeypatch.setattr(sys, "platform", "win32")


@pytest.mark.usefixtures("system")
def test_the_second_reads_who_holds_it_until_that_is_over(tmp_path):
    first = hold_file(tmp_path / "lock", "the first, with a longer name")
    with pytest.raises(BlockingIOError, match="^the first, with a longer name$"):
        hold_file(tmp_path / "lock", "the second")
    first.close()
    with hold_file(tmp_path / "lock", "the second"), pytest.raises(BlockingIOError) as raised:
        hold_file(tmp_path / "lock", "the third")
    assert str(raised.value) == "the second"


def test_a_kill_lets_go_of_it(tmp_path):
    path = tmp_path / "lock"
    command = [sys.executable, "-c", HOLDING, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout.readline() == "held\n"
        with pytest.raises(BlockingIOError, match="the first"):
            hold_file(path, "the second")
        first.kill()
    hold_file(path, "the second").close()


def test_a_file_system_without_locks_is_no_error(tmp_path, monkeypatch):
    unknown = OSError(errno.ENOTSUP, "Operation not supported")
    monkeypatch.setattr(fcntl, "flock", Mock(side_effect=unknown))
    hold_file(tmp_path / "lock", "the first").close()
