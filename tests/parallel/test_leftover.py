"""Shared memory of ranks that were killed goes before MPI starts again, and no other does."""

import mmap
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from actionspan.parallel.launch import remove_leftovers

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="Linux")  # noqa: PTH112
NAME = "mpich_shm_3e33c7c9_0"  # MPICH 5.0.2 gives it to step 0 of SLURM's job 20


@pytest.fixture
def left(tmp_path):
    path = tmp_path / NAME
    path.write_bytes(bytes(4096))
    an_hour_ago = time.time() - 3600
    os.utime(path, (an_hour_ago, an_hour_ago))
    return path


def test_what_killed_ranks_left_goes(left, tmp_path):
    other = tmp_path / "sem.mp-4f52a6ea"  # of another library
    other.touch()
    os.utime(other, (0, 0))
    remove_leftovers(tmp_path)
    assert not left.exists()
    assert other.exists()


def test_what_is_in_use_or_has_just_been_made_stays(left, tmp_path):
    with left.open("r+b") as file, mmap.mmap(file.fileno(), 0):
        remove_leftovers(tmp_path)
        assert left.exists()
    code = "import mmap, sys; file = open(sys.argv[1], 'r+b'); "
    code += "kept = mmap.mmap(file.fileno(), 0); file.close(); print(1, flush=True); input()"
    words = [sys.executable, "-c", code, str(left)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.read(1)
        remove_leftovers(tmp_path)
        assert left.exists()
        process.communicate(b"\n")
    remove_leftovers(tmp_path)
    assert not left.exists()
    left.touch()
    remove_leftovers(tmp_path)
    assert left.exists()


def test_a_rank_that_looks_later_keeps_the_new_file(left, tmp_path):
    def rank(_):
        remove_leftovers(tmp_path)
        with left.open("ab") as file:  # as MPI, which makes it where it is not there
            return os.fstat(file.fileno()).st_ino

    with ThreadPoolExecutor(8) as ranks:
        files = set(ranks.map(rank, range(64)))
    assert files == {left.stat().st_ino}
    assert left.stat().st_size == 0
