"""Bytes and operations of training steps: counted without arithmetic, and by closed forms."""

from collections.abc import Callable

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from actionspan.memory.counting import saved_bytes
from actionspan.memory.encoding import balanced
from actionspan.memory.probe import Probe, probe
from actionspan.memory.rehearsal import Choice, Rehearsal
from actionspan.memory.sampling import kept_count
from actionspan_papers.sbp.measure_settings import MeasureSettings
from actionspan_papers.sbp.measured_cases import (
    FULL,
    Case,
    build,
    kept_part,
    stepper,
)


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
