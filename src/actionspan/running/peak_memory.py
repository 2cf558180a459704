"""How much memory this process has held, as the operating system counts it."""

import contextlib
import sys
from pathlib import Path

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def resident_bytes() -> int:
    """Return the memory of this process that is in RAM; 0 where the system does not say."""
    return _field("VmRSS")


def peak_bytes() -> int:
    """Return the most since the start or the last `forget_peak`; 0 where it is not known."""
    return _field("VmHWM")


def forget_peak() -> None:
    """Let the peak begin at what is held now, where the system can do that."""
    # where it cannot, the peak stays that since the start: more, never less
    with contextlib.suppress(OSError):
        _RESET.write_text("5", encoding="ascii")


def _field(name: str) -> int:
    if sys.platform != "linux":
        return 0
    for line in _STATUS.read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0
