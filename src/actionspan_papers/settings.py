"""The sections of the configuration that the papers' experiments read."""

from collections.abc import Mapping
from typing import Any

from actionspan_papers.aavg.comparisons import ExperimentSettings
from actionspan_papers.partime.settings import SECTIONS as PARTIME
from actionspan_papers.sbp.settings import SECTIONS as SBP
from actionspan_papers.sbp.settings import MeasureSettings

SECTIONS: Mapping[str, tuple[type[Any], str]] = {
    "recognition.experiments": (
        ExperimentSettings,
        "paper 003's figures, tables and verdicts: snakemake recognition_figures",
    ),
    "finetune.measure": (
        MeasureSettings,
        "snakemake results/finetune/measurements.md: bytes and seconds of ways",
    ),
    **{f"papers.partime{name}": section for name, section in PARTIME.items()},
    **{f"papers.sbp{name}": section for name, section in SBP.items()},
}
"""The settings of each section, and the comment above it."""
