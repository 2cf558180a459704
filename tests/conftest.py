"""Fixtures that tests of several stages share."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings

# A busy machine is no failure; a failing example can be repeated from what is printed.
settings.register_profile("actionspan", deadline=None, print_blob=True)
settings.load_profile("actionspan")

# Minutes each, so they start first: with the light files last, no core waits for a heavy one.
HEAVIEST = (
    "workflow/test_workflow.py",
    "mpi/test_faults.py",
    "mpi/test_replica.py",
    "workflow/test_recognition.py",
    "slurm/test_slurm.py",
    "workflow/test_thumos14.py",
    "workflow/test_finetune.py",
    "workflow/test_storage.py",
    "mpi/test_allreduce.py",
    "papers/sbp/test_tables.py",
    "memory/test_promise.py",
    "live/test_command.py",
    "temporal/test_training.py",
    "mpi/test_recognition.py",
    "recognition/test_training.py",
    "mpi/test_model_averaging.py",
    "mpi/test_network_testbed.py",
    "streaming/test_faults.py",
    "benchmarks/test_campaigns.py",
    "dataset/formats/test_forms.py",
    "report/test_browser.py",
    "propose/test_propose.py",
    "running/test_one_fault.py",
)
TESTS = Path(__file__).parent
SHARED_DATA = TESTS.parents[1] / "shared" / "data"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the heaviest files first; `--dist loadfile --no-loadscope-reorder` keeps the order."""
    places = {TESTS / name: place for place, name in enumerate(HEAVIEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


@pytest.fixture(scope="session", autouse=True)
def _no_wait_for_the_disk() -> Iterator[None]:
    """Let files be written without waiting for the disk; no power is lost in these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Compare bits on one thread, whatever the machine has and an earlier test has set."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real videos, annotations and weights beside the project."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"the real data are not here: {SHARED_DATA} is missing")
    return SHARED_DATA


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)
