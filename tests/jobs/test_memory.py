"""How much memory work takes, whose it is, and how many workers it allows."""

import json
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import MagicMock, call

import pytest
import torch

from actionspan.jobs import memory
from actionspan.jobs.memory import DeviceMemory

GIB = 2**30
SIZE = 200_000_000
# the cache of a group is no use of its memory
GROUP_OF_12 = {"memory.max": 12 * GIB, "memory.stat": f"anon {2 * GIB}\nfile {9 * GIB}"}
CLEAR = Path("/proc/self/clear_refs")
# in a process of its own: one that has freed much before takes from that, and does not grow
HOLD_AND_FREE = f"""
import json
import numpy as np, torch
from actionspan.jobs.memory import DeviceMemory, forget_peak, peak_bytes, resident_bytes
memory = DeviceMemory(torch.device("cpu"))
memory.forget_peak()
before = resident_bytes()
numbers = np.ones({SIZE}, np.uint8)
held = resident_bytes()
assert abs(memory.held() - held) < {SIZE} / 50
del numbers
peak = peak_bytes()
assert memory.peak() == peak
forget_peak()
print(json.dumps([before, held, peak, peak_bytes()]))
"""


@pytest.mark.full
@pytest.mark.skipif(not CLEAR.exists(), reason=f"there is no {CLEAR} here")
def test_the_highest_value_is_of_what_was_freed_too_until_it_is_forgotten(monkeypatch):
    command = [sys.executable, "-c", HOLD_AND_FREE]
    figures = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    before, held, peak, forgotten = json.loads(figures)
    assert held - before == pytest.approx(SIZE, rel=0.1)
    assert peak >= 0.99 * held  # the kernel adds up now and then
    assert forgotten < held - SIZE / 2
    given_back = MagicMock()
    monkeypatch.setattr(memory, "give_back_freed_memory", given_back)
    DeviceMemory(torch.device("cpu")).give_back()
    given_back.assert_called_once_with()


def test_on_a_gpu_it_is_what_pytorch_holds_there(monkeypatch):
    cuda = MagicMock()
    cuda.memory_reserved.return_value, cuda.max_memory_reserved.return_value = 3, 7
    monkeypatch.setattr(torch, "cuda", cuda)
    gpu = torch.device("cuda", 1)
    watched = DeviceMemory(gpu)
    watched.forget_peak()
    assert (watched.held(), watched.peak()) == (3, 7)
    watched.give_back()
    # before it is started CUDA has no statistics to forget
    assert cuda.mock_calls == [
        call.init(),
        call.reset_peak_memory_stats(gpu),
        call.memory_reserved(gpu),
        call.max_memory_reserved(gpu),
        call.empty_cache(),
    ]


@pytest.mark.parametrize(
    ("cores", "items", "bytes_each", "files", "workers"),
    [
        *((cores, 100, GIB, {}, cores) for cores in (1, 2, 8, 16)),
        (16, 3, GIB, {}, 3),
        (16, 100, GIB, {"cpu.max": "800000 100000\n"}, 8),
        (16, 100, GIB, {"meminfo": f"MemAvailable: {10 * 2**20} kB\n"}, 7),
        (16, 100, GIB, GROUP_OF_12, 7),
        (16, 100, 1000 * GIB, {}, 1),
    ],
)
def test_cores_and_memory_limit_workers(
    tmp_path, monkeypatch, cores, items, bytes_each, files, workers
):
    """On a machine of 64 GiB."""
    files = {"meminfo": f"MemTotal: 1 kB\nMemAvailable: {64 * 2**20} kB\n"} | files
    for name, text in files.items():
        (tmp_path / name).write_text(f"{text}\n")
    monkeypatch.setattr(memory, "_MACHINE", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_GROUP", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)), raising=False)
    assert memory.workers_within(items, bytes_each) == workers
