"""Annotated videos and result files, as scoring and its reports read them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from actionspan.annotations.tables import Annotation, Instance


def annotated(
    name: str,
    *segments: Any,
    subset: str = "validation",
    duration: float = 20.0,
    label: str = "wave",
) -> Annotation:
    """Return a video with an instance for each (start, end) or (start, end, label)."""
    instances = tuple(
        Instance(start=start, end=end, label=own[0] if own else label)
        for start, end, *own in segments
    )
    return Annotation(video_id=name, subset=subset, duration_seconds=duration, instances=instances)


def write_results(path: Path, results: Mapping[str, Sequence[Any]]) -> Path:
    """Write (start, end, score) or (start, end, score, label) of each video as a result file."""
    named = ("label",)
    rows = {
        video: [
            {"segment": [start, end], "score": score, **dict(zip(named, label, strict=False))}
            for start, end, score, *label in given
        ]
        for video, given in results.items()
    }
    path.write_text(json.dumps({"results": rows}))
    return path
