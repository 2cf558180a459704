"""Facts of videos that no file has to have."""

from pathlib import Path
from typing import Any

from actionspan.annotations.tables import Video


def video_of(name: str, seconds: float = 10.0, fps: float = 25.0, **changed: Any) -> Video:
    """Return the facts of a video of a length and a frame rate."""
    facts = {"video_id": name, "path": Path(f"{name}.mp4"), "sha256": f"sha of {name}", "fps": fps}
    facts |= {"duration_seconds": seconds, "frames": round(seconds * fps)}
    return Video(**{**facts, "width": 128, "height": 64, **changed})
