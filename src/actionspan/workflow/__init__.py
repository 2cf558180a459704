"""Answers for the Snakefile: the checked configuration, videos, runs, wanted files, step code."""
