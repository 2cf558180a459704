"""The proposals stage: candidates (PGM), their evaluation (PEM) and Soft-NMS."""
