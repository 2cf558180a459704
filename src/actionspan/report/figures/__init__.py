"""Figures of a run: recall curves, misses and reliability of methods, timelines of videos."""
