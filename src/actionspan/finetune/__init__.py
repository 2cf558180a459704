"""Encoders tuned end to end within a memory budget (paper 004, SBP)."""
