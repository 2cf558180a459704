"""One engine for every training: run, resume, keep, log; it knows modules and replicas only."""
