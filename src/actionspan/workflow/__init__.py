"""What the Snakefile asks: the checked configuration, videos, runs, wanted files, step code."""
