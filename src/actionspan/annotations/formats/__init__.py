"""Formats of annotations, a file each: `sniff`, `read` and `write`."""
