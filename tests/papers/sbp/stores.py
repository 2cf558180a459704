"""A small store of snippets whose pictures are brighter during actions."""

from pathlib import Path

import numpy as np

from actionspan.annotations.tables import (
    VIDEO_COLUMNS,
    Annotation,
    Instance,
    Video,
    write_annotations,
    write_videos,
)
from actionspan.finetune.settings import StoreSettings
from actionspan.finetune.store import store_snippets
from actionspan.storage.writing import create_h5

SECONDS = 0.5  # of a snippet
_SETTINGS = StoreSettings(height=40, width=48)


def make_store(folder: Path, training: int, validation: int) -> tuple[Path, Path, Path]:
    """Write a store, annotations and videos.tsv; videos have 9, 10, 11 … snippets."""
    random = np.random.default_rng(3)
    annotated, videos = [], []
    inputs = [folder / f"{name}.h5" for name in ("frames", "flow")]
    with create_h5(inputs[0], "frames") as frames, create_h5(inputs[1], "flow") as flow:
        for number in range(training + validation):
            subset = "training" if number < training else "validation"
            name, count = f"{subset}_{number}", 9 + number
            seconds = count * SECONDS
            acting = slice(2 + number % 3, 6 + number % 3)
            pictures = random.integers(0, 120, (count, 40, 48, 3), np.uint8)
            pictures[acting] += 120
            frames.create_group(name)["rgb"] = pictures
            group = flow.create_group(name)
            group["flow"] = random.integers(120, 136, (count, 2, 40, 48), np.uint8)
            group["flow"].attrs["bound"] = 20.0
            group["time"] = (np.arange(count) + 0.5) * SECONDS
            for curve in ("frame_difference", "flow_magnitude"):
                group[curve] = np.ones(count, np.float32)
            group.attrs.update(fps=16.0, frame_count=8 * count, duration_seconds=seconds)
            group.attrs.update(snippet_frames=8, sha256=name)
            own = {"video_id": name, "subset": subset, "duration_seconds": seconds}
            start, end = acting.start * SECONDS, acting.stop * SECONDS
            instance = Instance(start=start, end=end, label="acts")
            annotated.append(Annotation(instances=(instance,), **own))
            shape = {"fps": 16.0, "frames": 8 * count, "width": 48, "height": 40}
            videos.append(Video(path=Path(f"{name}.mp4"), sha256=name, **shape, **own))
    store = folder / "store.h5"
    assert store_snippets(*inputs, store, _SETTINGS) == {}
    write_annotations(folder / "annotations.json", annotated)
    write_videos(folder / "videos.tsv", videos, VIDEO_COLUMNS)
    return store, folder / "annotations.json", folder / "videos.tsv"
