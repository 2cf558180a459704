"""How training time falls with ranks: tables of run times, time models and their figures."""

from actionspan.scaling.fit_timing import fit_times

__all__ = ["fit_times"]
