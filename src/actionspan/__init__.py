"""Temporal action proposals from raw, untrimmed video, in one reproducible pipeline."""

__version__ = "0.1.0"
