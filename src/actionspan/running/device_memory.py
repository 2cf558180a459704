"""The memory that work on a device takes: this process's in RAM, or that of PyTorch on a GPU."""

import torch

from actionspan.running.allocator import give_back_freed_memory
from actionspan.running.peak_memory import forget_peak, peak_bytes, resident_bytes


class DeviceMemory:
    """What this process holds where it computes, with what it freed and keeps for later."""

    def __init__(self, device: torch.device) -> None:
        self._gpu = device if device.type == "cuda" else None
        if self._gpu:
            torch.cuda.init()  # type: ignore[no-untyped-call]  # before it there are no statistics to forget

    def held(self) -> int:
        """Return the bytes held now; 0 where the system does not say."""
        return torch.cuda.memory_reserved(self._gpu) if self._gpu else resident_bytes()

    def peak(self) -> int:
        """Return the most since the start or the last `forget_peak`."""
        return torch.cuda.max_memory_reserved(self._gpu) if self._gpu else peak_bytes()

    def forget_peak(self) -> None:
        """Let the peak begin at what is held now."""
        if self._gpu:
            torch.cuda.reset_peak_memory_stats(self._gpu)
        else:
            forget_peak()

    def give_back(self) -> None:
        """Return what was freed and kept."""
        if self._gpu:
            torch.cuda.empty_cache()
        else:
            give_back_freed_memory()
