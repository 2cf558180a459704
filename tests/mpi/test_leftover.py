"""Shared memory of ranks that were killed is gone when others have started."""

import os
from pathlib import Path

START = "from actionspan.parallel.launch import world; comm = world(); "
KILLED = (
    "import os, re; maps = open('/proc/self/maps').read(); "
    "os.write(1, re.search(r'/dev/shm/mpich_shm\\S+', maps)[0].encode() + b'\\n'); "
    "comm.barrier(); os.kill(os.getpid(), 9)"
)


def test_the_next_start_removes_what_killed_ranks_left(mpirun):
    done = mpirun(2, ["-c", START + KILLED], check=False)
    (path,) = {Path(name) for name in done.stdout.split() if name.startswith("/dev/shm/")}
    path.touch()  # the start of a test beside this one may have removed it by now
    os.utime(path, (0, 0))
    mpirun(2, ["-c", START + "comm.barrier()"])
    assert not path.exists()
