"""A row of measurements for each way and ratio."""

import math

from actionspan_papers.sbp.measure_settings import MeasureSettings
from actionspan_papers.sbp.measured_cases import FULL, Case, cases
from actionspan_papers.sbp.measured_counts import Counts, operations_by_form
from actionspan_papers.sbp.measured_runs import against, growth, seconds

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
