"""Training steps that are really run: memory in a process of their own, seconds side by side."""

import time
from collections.abc import Sequence
from statistics import median

import torch
from torch import nn

from actionspan.running.apart import worker_pool
from actionspan.running.memory import forget_peak, peak_bytes, resident_bytes
from actionspan_papers.sbp.measure_settings import MeasureSettings
from actionspan_papers.sbp.measured_cases import Case, build, stepper

_STEPS = 3  # the optimiser's state is there from the second on


def growth(case: Case, settings: MeasureSettings) -> int | None:
    """Return the most bytes that building and training add to a new process.

    On a GPU it is what PyTorch allocated there. None where the system does not tell.
    """
    pool = worker_pool(1)
    try:
        return pool.submit(_growth, case, settings).result()
    finally:
        pool.shutdown()


def _growth(case: Case, settings: MeasureSettings) -> int | None:
    torch.set_num_threads(1)
    if torch.device(settings.device).type == "cuda":
        return _allocated(case, settings)
    _load_libraries(settings)
    before = resident_bytes()
    forget_peak()
    _steps(case, settings)
    return peak_bytes() - before if before else None


def _allocated(case: Case, settings: MeasureSettings) -> int:
    torch.cuda.init()  # type: ignore[no-untyped-call]  # before it there are no statistics to reset
    torch.cuda.reset_peak_memory_stats(settings.device)
    _steps(case, settings)
    return torch.cuda.max_memory_allocated(settings.device)


def _steps(case: Case, settings: MeasureSettings) -> None:
    step = stepper(case, build(settings, settings.device), settings.piece)
    for _ in range(_STEPS):
        step()


def _load_libraries(settings: MeasureSettings) -> None:
    """Import and run what is loaded at its first use, so that it is no growth."""
    build(settings, "meta")
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(16, 1))
    optimiser = torch.optim.Adam(network.parameters())
    torch.autograd.backward((network(torch.ones(2, 3, 4, 4)).sum(),))
    optimiser.step()


def seconds(chosen: Sequence[Case], settings: MeasureSettings) -> list[list[float]]:
    """Return the CPU seconds of `repeats` steps of each case, in turns, in this process.

    On a GPU they are seconds of the clock.
    """
    on_gpu = torch.device(settings.device).type == "cuda"
    clock = time.perf_counter if on_gpu else time.process_time
    found: list[list[float]] = [[] for _ in chosen]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        steps = [stepper(case, build(settings, settings.device), settings.piece) for case in chosen]
        for turn in range(settings.repeats + 1):
            for step, times in zip(steps, found, strict=True):
                begun = clock()
                step()
                if on_gpu:
                    torch.cuda.synchronize(settings.device)
                if turn:  # the first run of each is to warm up
                    times.append(clock() - begun)
    finally:
        torch.set_num_threads(threads)
    return found


def against(times: Sequence[float], full: Sequence[float]) -> float:
    """Return the median ratio of steps that were neighbours in turn."""
    return median(own / other for own, other in zip(times, full, strict=True))
