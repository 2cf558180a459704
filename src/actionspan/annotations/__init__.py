"""Annotations in any known format, and the canonical tables of a data set."""
