"""How many workers cores and memory allow."""

import os
from pathlib import Path

import pytest

from actionspan.jobs import memory

GIB = 2**30


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 16 cores and 64 GiB without limits."""
    (tmp_path / "meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable: {64 * 2**20} kB\n")
    monkeypatch.setattr(memory, "_MACHINE", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_GROUP", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)
    return tmp_path


@pytest.mark.parametrize("cores", [1, 2, 8, 16])
def test_each_allowed_core_gets_a_worker(
    cores: int, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)), raising=False)
    assert memory.workers_within(100, GIB) == cores


def test_no_more_workers_than_items(machine: Path) -> None:
    assert memory.workers_within(3, GIB) == 3


def test_a_quota_of_cores_limits_workers(machine: Path) -> None:
    (machine / "cpu.max").write_text("800000 100000\n")
    assert memory.workers_within(100, GIB) == 8


def test_free_memory_limits_workers(machine: Path) -> None:
    (machine / "meminfo").write_text(f"MemAvailable: {10 * 2**20} kB\n")
    assert memory.workers_within(100, GIB) == 7


def test_the_groups_memory_limits_workers_and_its_cache_does_not(machine: Path) -> None:
    (machine / "memory.max").write_text(f"{12 * GIB}\n")
    (machine / "memory.stat").write_text(f"anon {2 * GIB}\nfile {9 * GIB}\n")
    assert memory.workers_within(100, GIB) == 7


def test_one_worker_where_memory_is_short(machine: Path) -> None:
    assert memory.workers_within(100, 1000 * GIB) == 1
