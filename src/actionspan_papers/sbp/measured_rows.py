"""A row of measurements for each way and ratio."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from actionspan.memory.counting import saved_bytes
from actionspan.memory.encoding import balanced
from actionspan.memory.probe import Probe, probe
from actionspan.memory.rehearsal import Choice, Rehearsal
from actionspan.memory.sampling import kept_count
from actionspan.running.apart import worker_pool
from actionspan.running.memory import forget_peak, peak_bytes, resident_bytes
from actionspan_papers.sbp.measured_cases import (
    FULL,
    Case,
    build,
    cases,
    kept_part,
    stepper,
)
from actionspan_papers.sbp.settings import MeasureSettings

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
        elif case.execution == "replay" or "checkpoint" in case.way:
            pieces = balanced(torch.arange(rows), self._settings.piece)
            return max(found.row_bytes * len(pieces[0]), found.head_bytes)
        return found.row_bytes * rows + found.head_bytes

    def expected(self, case: Case) -> int:
        """Return what a plan says that training adds to a process."""
        bank = self.probe.longest * self.probe.feature_bytes if case.way == "bank" else 0
        rehearsal = Rehearsal(
            *self._parts, self.probe, way=case.way, sampler="uniform_random", kept_bytes=bank
        )
        return rehearsal.expected_bytes(Choice(case.execution, case.ratio, self._settings.piece))

    def operations_part(self, case: Case) -> float | None:
        """Return the operations by those of full training, counted; None if they cannot be."""
        return None if self._full is None else self._operations(case) / self._full

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
    """Return the operations of the encoder by those of full training, backward as two forwards."""
    part = kept_part(case, count)
    if case.way == "frozen":
        return 1 / 3
    if case.way in ("frame_dropout", "bank"):
        return part
    if case.execution == "replay" or "checkpoint" in case.way:
        return (1 + 3 * part) / 3
    return (1 + 2 * part) / 3


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


COLUMNS = {
    "way": "way",
    "keep_ratio": "r",
    "saved_bytes": "saved bytes, counted",
    "saved_part": "of full",
    "saved_by_form": "closed form",
    "operations": "operations of full, counted",
    "operations_by_form": "closed form",
    "growth_bytes": "growth of memory",
    "growth_part": "of full",
    "expected_bytes": "expected by a plan",
    "step_seconds": "seconds a step",
    "seconds_part": "of full",
}
Row = Mapping[str, str]
ALIGN = "lr" + "r" * (len(COLUMNS) - 2)
_BYTES = ("saved_bytes", "saved_by_form", "growth_bytes", "expected_bytes")
_PANELS = {
    "saved_part": "saved bytes",
    "growth_part": "growth of memory",
    "seconds_part": "seconds a step",
}


def caption(settings: MeasureSettings) -> list[str]:
    """Return the lines above the table."""
    cpu = settings.device == "cpu"
    memory = "peak resident memory" if cpu else "memory allocated on the GPU"
    clock = "CPU seconds" if cpu else "seconds of the clock"
    return [
        f"Ways to train {settings.network} (untrained, norms folded) and a temporal network on "
        f"{settings.snippets} pictures of {settings.input_size} pixels; pieces of "
        f"{settings.piece}, one thread, MiB.",
        "- **saved**: counted by hooks of autograd, without numbers; closed form r·M_s + M_c, or "
        "max(m·a, M_c) where pieces of m are run again.",
        "- **operations**: PyTorch's counter, which does not know grouped convolutions (empty "
        "then); closed form of the encoder alone, with backward as two forwards.",
        f"- **growth**: of {memory} by building and three steps in a new process, and what a plan "
        "of memory expects.",
        f"- **seconds**: {clock} of {settings.repeats} steps of each way in turns in one process, "
        "medians; ratios are of neighbours in turn.",
    ]


def shown_rows(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Return the rows with bytes in MiB."""
    return [
        {name: _mebibytes(row[name]) if name in _BYTES else row[name] for name in COLUMNS}
        for row in rows
    ]


def _mebibytes(count: str) -> str:
    return f"{float(count) / 2**20:.1f}" if count else ""


def draw(figure: "Figure", rows: Sequence[Row]) -> None:
    """Draw what ways need of full training over the ratio of kept rows."""
    from actionspan.files.figures import COLOURS, QUIET

    panels = figure.subplots(1, len(_PANELS))
    ways = list(dict.fromkeys(row["way"] for row in rows if row["keep_ratio"]))
    for axes, (column, title) in zip(panels, _PANELS.items(), strict=True):
        for way, colour in zip(ways, COLOURS, strict=False):
            points = [
                (float(row["keep_ratio"]), float(row[column]))
                for row in rows
                if row["way"] == way and row[column]
            ]
            if points:
                ratios, parts = zip(*sorted(points), strict=True)
                axes.plot(ratios, parts, "o-", color=colour, label=way, markersize=3, linewidth=1.2)
        for way, look in (("full", "-"), ("checkpoint", "--"), ("frozen", ":")):
            (alone,) = [row[column] for row in rows if row["way"] == way]
            if alone:
                axes.axhline(float(alone), color=QUIET, linewidth=0.8, linestyle=look, label=way)
        axes.set(title=title, xlabel="part of rows kept, r", ylim=(0, None), xlim=(0, None))
    panels[0].set_ylabel("of full training")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=7)


"""The columns of the table and their titles."""


def measured_rows(settings: MeasureSettings) -> list[dict[str, str]]:
    """Return the rows, full training first; what is not known is empty."""
    chosen = cases(settings.ratios)
    counts = Counts(settings)
    saved = [counts.saved(case) for case in chosen]
    grown = [growth(case, settings) for case in chosen]
    times = seconds(chosen, settings)
    full = chosen.index(FULL)
    return [
        {
            "way": case.label,
            "keep_ratio": f"{case.ratio:g}" if _has_ratio(case) else "",
            "saved_bytes": str(own),
            "saved_part": f"{own / saved[full]:.4f}",
            "saved_by_form": f"{counts.saved_by_form(case):.0f}",
            "operations": _number(counts.operations_part(case)),
            "operations_by_form": f"{operations_by_form(case, settings.snippets):.4f}",
            "growth_bytes": str(more or ""),
            "growth_part": _number(more / whole if more and (whole := grown[full]) else None),
            "expected_bytes": str(counts.expected(case)),
            "step_seconds": f"{sorted(taken)[len(taken) // 2]:.4f}",
            "seconds_part": f"{against(taken, times[full]):.4f}",
        }
        for case, own, more, taken in zip(chosen, saved, grown, times, strict=True)
    ]


def _has_ratio(case: Case) -> bool:
    return case.way not in ("full", "checkpoint", "frozen")


def _number(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.4f}"
