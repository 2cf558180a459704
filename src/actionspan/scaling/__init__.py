"""How training time falls with ranks: tables of run times, time models and their figures."""

from actionspan.scaling.record import fit_times

__all__ = ["fit_times"]
