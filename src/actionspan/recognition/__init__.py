"""The recognition stage: two-stream action classifiers, trained on short clips."""
