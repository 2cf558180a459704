"""The tests' own launcher: it reports failures and leaves no process behind."""

import time

import pytest

from mpi.conftest import MARK, job_processes

# in a single write, which no other rank's comes into
SLEEP = f"import os, time; os.write(1, os.environb[b'{MARK}'] + b'\\n'); time.sleep(600)"


def wait_for_none(job):
    deadline = time.monotonic() + 60
    while job_processes(job) and time.monotonic() < deadline:
        time.sleep(0.02)
    return job_processes(job)


@pytest.mark.full
def test_a_job_that_hangs_fails_in_time_and_leaves_no_rank(mpirun):
    begun = time.monotonic()
    with pytest.raises(pytest.fail.Exception, match="took more than 12 s") as failure:
        mpirun(2, ["-c", SLEEP], timeout=12)
    assert time.monotonic() - begun < 60
    job = str(failure.value).splitlines()[1]
    assert len(job) == 32
    assert not wait_for_none(job)


def test_a_rank_that_raises_ends_the_job_with_what_it_wrote(mpirun):
    program = (  # of a traceback, which comes in pieces, the abort may lose the end
        "import os\n"
        "from mpi4py import MPI\n"
        "if MPI.COMM_WORLD.rank:\n"
        "    os.write(2, b'it divides by zero\\n')\n"
        "    1 / 0\n"
        "MPI.COMM_WORLD.Barrier()"
    )
    done = mpirun(2, ["-c", program], check=False)
    assert done.returncode
    assert "it divides by zero" in done.stderr
    with pytest.raises(pytest.fail.Exception, match="it divides by zero"):
        mpirun(2, ["-c", program])


def test_arguments_and_environment_reach_the_ranks(mpirun):
    program = (  # one write a line: lines of `print` may come in pieces
        "import os, sys\n"
        "line = f'{sys.argv[1:]} {os.environ[chr(67)]}\\n'\n"
        "os.write(1, line.encode())"
    )
    done = mpirun(3, ["-c", program], "--size", 4, env={"C": "green"})
    assert done.stdout.splitlines() == ["['--size', '4'] green"] * 3


def test_each_rank_knows_its_place_on_this_machine_whatever_the_launcher_says(mpirun):
    program = (
        "import os\n"
        "from actionspan.parallel import launch\n"
        "from actionspan.jobs import launcher\n"
        "for name in launcher.LOCAL_RANK + launcher.LOCAL_RANKS: os.environ.pop(name, None)\n"
        "rank = launch.world().Get_rank()\n"
        "os.write(1, f'{rank} {launcher.local_rank()}\\n'.encode())"
    )
    done = mpirun(3, ["-c", program])
    assert sorted(done.stdout.splitlines()) == ["0 (0, 3)", "1 (1, 3)", "2 (2, 3)"]
