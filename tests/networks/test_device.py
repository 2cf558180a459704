"""Which device ranks compute on, where torch sees GPUs."""

import os

import pytest
import torch

from actionspan.errors import InputError
from actionspan.jobs import launcher
from actionspan.networks import runtime
from actionspan.networks.runtime import choose_device


# What each launcher tells rank 6 of 8, the third of four on its machine.
def told(names: str, *values: str) -> dict[str, str]:
    return dict(zip(names.split(), values or ("8", "6", "2", "4"), strict=True))


MPICH = "PMI_SIZE PMI_RANK MPI_LOCALRANKID MPI_LOCALNRANKS"
OPEN_MPI = [f"OMPI_COMM_WORLD_{word}" for word in ("SIZE", "RANK", "LOCAL_RANK", "LOCAL_SIZE")]
TORCHRUN = told("WORLD_SIZE RANK LOCAL_RANK LOCAL_WORLD_SIZE") | {"TORCHELASTIC_RUN_ID": "none"}
ONE_TASK = told("SLURM_LOCALID SLURM_NTASKS_PER_NODE", "0", "1")
LAUNCHERS = {
    "MPICH": told(MPICH),
    "Open MPI": told(" ".join(OPEN_MPI)),
    "PALS": told("PALS_SIZE PALS_RANKID PALS_LOCAL_RANKID PALS_LOCAL_SIZE"),
    "SLURM": told("PMI_SIZE PMI_RANK SLURM_LOCALID SLURM_NTASKS_PER_NODE"),
    "MPICH in a job of SLURM": told(MPICH) | ONE_TASK,
    "torchrun": TORCHRUN,
    "torchrun in a job of SLURM": TORCHRUN | ONE_TASK,
}


@pytest.fixture
def machine(monkeypatch):
    """Return a function that gives this process GPUs and an environment; the GPUs made current."""
    current: list[torch.device] = []
    prefixes = ("SLURM_", "PMI", "OMPI_", "PALS_", "MPI_", "LOCAL_", "TORCHELASTIC_")
    for name in [each for each in os.environ if each.startswith(prefixes)]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(launcher, "from_mpi", None)
    monkeypatch.setattr(torch.cuda, "set_device", current.append)
    runtime._say_crowded.cache_clear()

    def made(gpus, environment):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        current.clear()
        return current

    return made


@pytest.mark.parametrize("environment", LAUNCHERS.values(), ids=LAUNCHERS)
def test_the_ranks_of_a_machine_are_spread_over_its_gpus(machine, environment):
    for gpus, expected in ((8, 2), (4, 2), (3, 2), (2, 0), (1, 0)):
        for wanted in ("auto", "cuda"):
            current = machine(gpus, environment)
            assert choose_device(wanted) == torch.device("cuda", expected)
            assert current == [torch.device("cuda", expected)]


def test_mpi_counts_more_than_the_environment(machine, monkeypatch):
    """An mpiexec that says nothing, in a batch job, whose own place SLURM gives to all ranks."""
    machine(4, ONE_TASK | {"PMIX_RANK": "3"})
    monkeypatch.setattr(launcher, "from_mpi", (3, 4))
    assert choose_device("auto") == torch.device("cuda", 3)


ALONE = {
    "alone": {},
    "in a batch job": ONE_TASK | {"SLURM_NTASKS_PER_NODE": "4"},
    "a rank alone": told(MPICH, "1", "0", "0", "1"),
    "alone on its machine": told(MPICH, "2", "1", "0", "1"),
}


@pytest.mark.parametrize("environment", ALONE.values(), ids=ALONE)
def test_a_process_that_is_alone_takes_the_current_gpu(machine, capsys, environment):
    current = machine(4, environment)
    assert choose_device("auto") == torch.device("cuda")
    assert (current, capsys.readouterr().err) == ([], "")


@pytest.mark.parametrize(
    ("gpus", "rank", "more", "said"),
    [(2, "0", {}, True), (1, "0", {}, True), (4, "0", {}, False), (2, "1", {}, False)]
    # with GPUs of its own a rank sees no others
    + [(1, "0", {"SLURM_GPUS_PER_TASK": "1"}, False), (1, "0", {"SLURM_GPU_BIND": "x"}, False)],
)
def test_ranks_that_share_gpus_are_reported_once(machine, capsys, gpus, rank, more, said):
    machine(gpus, told(MPICH) | {"MPI_LOCALRANKID": rank} | more)
    for _ in range(2):
        choose_device("auto")
    lines = [line.partition(" GPU")[0] for line in capsys.readouterr().err.splitlines()]
    assert lines == [f"4 ranks share {gpus}"] * said


def test_without_a_gpu_ranks_compute_on_cpus(machine):
    current = machine(0, told(MPICH))
    assert choose_device("auto") == choose_device("cpu") == torch.device("cpu")
    with pytest.raises(InputError, match="device is cuda, but no CUDA device is visible"):
        choose_device("cuda")
    assert current == []
