"""What ways to train need: an untrained encoder and a temporal network above it, measured."""

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median, median_high
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from actionspan.jobs.apart import worker_pool
from actionspan.jobs.memory import forget_peak, peak_bytes, resident_bytes
from actionspan.memory.counting import saved_bytes
from actionspan.memory.encoding import balanced
from actionspan.memory.probe import Probe, probe
from actionspan.memory.rehearsal import Choice, Rehearsal
from actionspan.memory.sampling import kept_count
from actionspan.memory.ways import Execution, Way, make_way
from actionspan.networks.architecture import Architecture, Inputs, architecture
from actionspan.networks.weights import fold_batch_norms
from actionspan.temporal.mtn import MTN
from actionspan_papers.experiments import Row
from actionspan_papers.sbp.settings import MeasureSettings

_LENGTH = 100  # steps of the temporal network
_RATE = 1e-5
_KEY = "video"
_STEPS = 3  # the optimiser's state is there from the second on


class Case(NamedTuple):
    """A way to train, and the part of the snippets that is kept."""

    way: Way
    execution: Execution = "split"
    ratio: float = 1.0

    @property
    def label(self) -> str:
        """The way, and the execution where it has two."""
        return f"{self.way} {self.execution}" if self.way == "sbp" else self.way

    @property
    def reruns(self) -> bool:
        """Whether rows are run again in pieces."""
        return self.execution == "replay" or "checkpoint" in self.way


FULL = Case("full")
_WHOLE = (FULL, Case("checkpoint"), Case("frozen"))
_SAMPLED = (
    Case("sbp"),
    Case("sbp", "replay"),
    Case("sbp_checkpoint"),
    Case("frame_dropout"),
    Case("bank"),
)


def cases(ratios: Sequence[float]) -> list[Case]:
    """Return all ways, each at each ratio if it has one; full training first."""
    return [*_WHOLE, *(case._replace(ratio=ratio) for case in _SAMPLED for ratio in ratios)]


class Pictures:
    """A video of 8-bit images, read as the numbers that a network takes."""

    def __init__(self, network: Architecture, count: int, size: int, device: str) -> None:
        self._pictures = torch.zeros((count, size, size, 3), dtype=torch.uint8, device=device)
        if device != "meta":
            seeded = torch.Generator().manual_seed(0)
            self._pictures.random_(256, generator=seeded if device == "cpu" else None)
        self._inputs = Inputs(network, 3, torch.device(device))
        self.nbytes = self._pictures.nbytes

    def __len__(self) -> int:
        return len(self._pictures)

    def __getitem__(self, rows: Tensor, /) -> Tensor:
        """Return rows (n,) as (n, 3, size, size)."""
        numbers: Tensor = self._inputs(self._pictures[rows.to(self._pictures.device)])
        return numbers


class _TemporalLoss(nn.Module):
    """MTN over the features of a video, resampled to 100 steps, and the mean square of its output.

    Which loss it is changes neither bytes nor seconds.
    """

    resampling: Tensor

    def __init__(self, channels: int, count: int) -> None:
        super().__init__()
        matrix = functional.interpolate(
            torch.eye(count)[None], size=_LENGTH, mode="linear", align_corners=True
        )
        self.register_buffer("resampling", matrix[0].T.contiguous())  # (100, T)
        self.network = MTN(channels)

    def forward(self, features: Tensor) -> Tensor:
        """Return the loss of features (T, C)."""
        probabilities: Tensor = self.network((self.resampling @ features)[None])
        return probabilities.square().mean()


class Parts(NamedTuple):
    """The parts of a step."""

    encoder: nn.Module
    head: _TemporalLoss
    frames: Pictures


def build(settings: MeasureSettings, device: str) -> Parts:
    """Return the encoder, the head and the video on a device; on `meta` nothing takes memory."""
    kind = architecture(settings.network)
    encoder = kind.build(3, 1)
    channels = getattr(encoder, kind.last).in_features
    setattr(encoder, kind.last, nn.Identity())
    fold_batch_norms(encoder.eval())
    return Parts(
        encoder.requires_grad_(True).to(device),
        _TemporalLoss(channels, settings.snippets).to(device),
        Pictures(kind, settings.snippets, settings.input_size, device),
    )


def stepper(case: Case, parts: Parts, piece: int, *, learning: bool = True) -> Callable[[], None]:
    """Return a training step of a way, with Adam unless it only shall have gradients."""
    frozen = case.way == "frozen"
    module = make_way(case.way, parts.encoder, case.ratio, execution=case.execution, piece=piece)
    trained = [*parts.head.parameters(), *([] if frozen else parts.encoder.parameters())]
    optimiser = torch.optim.Adam(trained, lr=_RATE) if learning else None
    generator = torch.Generator().manual_seed(0)

    def step() -> None:
        loss = parts.head(module(parts.frames, generator=generator, key=_KEY))
        torch.autograd.backward((loss,))
        if optimiser is not None:
            optimiser.step()
        for parameter in trained:
            parameter.grad = None

    return step


class Counts:
    """Counts of one network and video; each is the same in every run."""

    def __init__(self, settings: MeasureSettings) -> None:
        self._settings = settings
        self._parts = build(settings, "meta")
        self.probe: Probe = probe(*self._parts)
        grouped = any(
            isinstance(part, nn.Conv2d) and part.groups > 1
            for part in self._parts.encoder.modules()
        )
        # Its backward of a grouped convolution leaves the groups out.
        self._full = None if grouped else self._operations(FULL)

    def saved(self, case: Case) -> int:
        """Return the bytes saved for backward, counted."""
        step = self._stepper(case)
        with saved_bytes(self._parts.encoder, self._parts.head) as counted:
            step()
        return counted.total

    def saved_by_form(self, case: Case) -> float:
        """Return r M_s + M_c, or max(m a, M_c) where rows are run again in pieces of m."""
        found = self.probe
        rows = kept_count(found.longest, case.ratio)
        if case.way == "frozen":
            rows = 0
        elif case.reruns:
            pieces = balanced(torch.arange(rows), self._settings.piece)
            return max(found.row_bytes * len(pieces[0]), found.head_bytes)
        return found.row_bytes * rows + found.head_bytes

    def expected(self, case: Case) -> int:
        """Return the memory that training adds to a process by a plan."""
        bank = self.probe.longest * self.probe.feature_bytes if case.way == "bank" else 0
        rehearsal = Rehearsal(
            *self._parts, self.probe, way=case.way, sampler="uniform_random", kept_bytes=bank
        )
        return rehearsal.expected_bytes(Choice(case.execution, case.ratio, self._settings.piece))

    def operations_part(self, case: Case) -> float:
        """Return the operations by full training's, counted; NaN if they cannot be."""
        return math.nan if self._full is None else self._operations(case) / self._full

    def _operations(self, case: Case) -> int:
        step = self._stepper(case)
        with FlopCounterMode(display=False) as counter:
            step()
        return int(counter.get_total_flops())

    def _stepper(self, case: Case) -> Callable[[], None]:
        """Return a step of which only gradients are wanted."""
        step = stepper(case, self._parts, self._settings.piece, learning=False)
        if case.way == "bank":
            step()  # the first step of a video fills the bank
        return step


def operations_by_form(case: Case, count: int) -> float:
    """Return the operations of the encoder by full training's, backward as two forwards."""
    part = kept_count(count, case.ratio) / count
    if case.way == "frozen":
        return 1 / 3
    if case.way in ("frame_dropout", "bank"):
        return part
    return (1 + (3 if case.reruns else 2) * part) / 3


def growth(case: Case, settings: MeasureSettings) -> int | None:
    """Return the most bytes that building and training add to a new process.

    On a GPU it is the memory that PyTorch allocated there. None where the system reports none.
    """
    pool = worker_pool(1)
    try:
        return pool.submit(_growth, case, settings).result()
    finally:
        pool.shutdown()


def _growth(case: Case, settings: MeasureSettings) -> int | None:
    torch.set_num_threads(1)
    if torch.device(settings.device).type == "cuda":
        return allocated(partial(_steps, case, settings), settings.device)
    _load_libraries(settings)
    before = resident_bytes()
    forget_peak()
    _steps(case, settings)
    return peak_bytes() - before if before else None


def allocated(run: Callable[[], object], device: str) -> int:
    """Return the most bytes that PyTorch allocates on a GPU while this runs."""
    torch.cuda.init()  # type: ignore[no-untyped-call]  # before it statistics do not exist
    torch.cuda.reset_peak_memory_stats(device)
    run()
    return torch.cuda.max_memory_allocated(device)


def _steps(case: Case, settings: MeasureSettings) -> None:
    step = stepper(case, build(settings, settings.device), settings.piece)
    for _ in range(_STEPS):
        step()


def _load_libraries(settings: MeasureSettings) -> None:
    """Import and run the code that loads at its first use, so that it does not count as growth."""
    build(settings, "meta")
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(16, 1))
    optimiser = torch.optim.Adam(network.parameters())
    torch.autograd.backward((network(torch.ones(2, 3, 4, 4)).sum(),))
    optimiser.step()


def seconds(chosen: Sequence[Case], settings: MeasureSettings) -> list[list[float]]:
    """Return the seconds of `repeats` steps of each case, as `in_turns`."""
    steps = [stepper(case, build(settings, settings.device), settings.piece) for case in chosen]
    return in_turns(steps, settings.repeats, settings.device)


def in_turns(steps: Sequence[Callable[[], object]], repeats: int, device: str) -> list[list[float]]:
    """Return the CPU seconds of `repeats` calls of each step, in turns, in this process.

    On a GPU they are seconds of the clock.
    """
    on_gpu = torch.device(device).type == "cuda"
    clock = time.perf_counter if on_gpu else time.process_time
    found: list[list[float]] = [[] for _ in steps]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for turn in range(repeats + 1):
            for step, times in zip(steps, found, strict=True):
                begun = clock()
                step()
                if on_gpu:
                    torch.cuda.synchronize(device)
                if turn:  # the first run of each is to warm up
                    times.append(clock() - begun)
    finally:
        torch.set_num_threads(threads)
    return found


def against(times: Sequence[float], full: Sequence[float]) -> float:
    """Return the median ratio of steps that were neighbours in turn."""
    return median(own / other for own, other in zip(times, full, strict=True))


def measured_rows(settings: MeasureSettings) -> list[Row]:
    """Return the rows, full training first."""
    chosen = cases(settings.ratios)
    counts = Counts(settings)
    saved = [counts.saved(case) for case in chosen]
    grown = [growth(case, settings) or math.nan for case in chosen]
    times = seconds(chosen, settings)
    return [
        {
            "way": case.label,
            "keep_ratio": math.nan if case in _WHOLE else case.ratio,
            "saved_bytes": own,
            "saved_part": own / saved[0],
            "saved_by_form": counts.saved_by_form(case),
            "operations": counts.operations_part(case),
            "operations_by_form": operations_by_form(case, settings.snippets),
            "growth_bytes": more,
            "growth_part": more / grown[0],
            "expected_bytes": counts.expected(case),
            "step_seconds": median_high(taken),
            "seconds_part": against(taken, times[0]),
        }
        for case, own, more, taken in zip(chosen, saved, grown, times, strict=True)
    ]
