"""How work runs: pools of processes, prefetching, progress, determinism, memory."""
