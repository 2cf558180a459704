"""What ranks of a machine know and leave."""

import os
from pathlib import Path

import pytest

PLACE = (  # one write a line: lines of `print` may come in pieces
    "import os, sys\n"
    "from actionspan.parallel import launch\n"
    "from actionspan.jobs import launcher\n"
    "for name in launcher.LOCAL_RANK + launcher.LOCAL_RANKS: os.environ.pop(name, None)\n"
    "rank = launch.world().Get_rank()\n"
    "line = f'{rank} {launcher.local_rank()} {sys.argv[1:]} {os.environ[chr(67)]}\\n'\n"
    "os.write(1, line.encode())"
)
START = "from actionspan.parallel.launch import world; comm = world(); "
KILLED = (
    "import os, re; maps = open('/proc/self/maps').read(); "
    "os.write(1, re.search(r'/dev/shm/mpich_shm\\S+', maps)[0].encode() + b'\\n'); "
    "comm.barrier(); os.kill(os.getpid(), 9)"
)


def test_arguments_and_environment_reach_the_ranks_and_each_knows_its_place(mpirun):
    """On this machine, whatever the launcher says."""
    done = mpirun(3, ["-c", PLACE], "--size", 4, env={"C": "green"})
    expected = [f"{rank} ({rank}, 3) ['--size', '4'] green" for rank in range(3)]
    assert sorted(done.stdout.splitlines()) == expected


@pytest.mark.full
def test_the_next_start_removes_shared_memory_of_killed_ranks(mpirun):
    done = mpirun(2, ["-c", START + KILLED], check=False)
    (path,) = {Path(name) for name in done.stdout.split() if name.startswith("/dev/shm/")}
    path.touch()  # the start of a test beside this one may have removed it by now
    os.utime(path, (0, 0))
    mpirun(2, ["-c", START + "comm.barrier()"])
    assert not path.exists()
