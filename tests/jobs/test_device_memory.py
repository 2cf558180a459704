"""Whose memory is watched: the process's on a CPU, PyTorch's on a GPU."""

from unittest.mock import MagicMock, call

import pytest
import torch

from actionspan.jobs import memory
from actionspan.jobs.memory import DeviceMemory, resident_bytes
from own_process import in_own_process


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


def hold_and_free() -> None:
    """Hold 200 MB and free them, in a process that has freed nothing before."""
    memory = DeviceMemory(torch.device("cpu"))
    before = memory.held()
    memory.forget_peak()
    held = torch.ones(50_000_000)
    assert memory.held() - before > 0.9 * held.nbytes
    del held
    assert memory.peak() - before > 190e6


@pytest.mark.skipif(not resident_bytes(), reason="this system does not tell a process's memory")
def test_on_a_cpu_it_is_the_processs(monkeypatch):
    in_own_process(hold_and_free)
    given_back = MagicMock()
    monkeypatch.setattr(memory, "give_back_freed_memory", given_back)
    DeviceMemory(torch.device("cpu")).give_back()
    given_back.assert_called_once_with()
