"""Paper 002's (PARTIME) experiments: speed, gradients, learning from streams, memory, verdicts."""
