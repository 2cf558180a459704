"""Videos as features alone: motion and appearance tell what happens, or nothing does."""

from pathlib import Path

import numpy as np

from actionspan.annotations.tables import Instance
from actionspan.features.settings import VideoSettings
from actionspan.review.footage import Encoded
from actionspan.settings import to_json
from actionspan.storage.writing import create_h5
from worlds.videos import video_of

SECONDS, STEP = 60.0, 0.5


def encoded(folder: Path, name: str, seed: int) -> tuple[Encoded, tuple[Instance, ...]]:
    """A minute in which appearance changes two or three times for some seconds."""
    random = np.random.default_rng(seed)
    times = np.arange(STEP / 2, SECONDS, STEP)
    starts = np.array([6.0, 26.0, 46.0])[: 2 + seed % 2] + random.uniform(0, 8, 2 + seed % 2)
    lengths = random.uniform(4, 7, len(starts))
    labels = ["wave", "jump"]
    instances = tuple(
        Instance(start=float(start), end=float(start + length), label=labels[place % 2])
        for place, (start, length) in enumerate(zip(starts, lengths, strict=True))
    )
    rgb = random.normal(size=(len(times), 12)).astype(np.float32)
    for place, one in enumerate(instances):
        inside = (times > one.start) & (times < one.end)
        rgb[inside, : 3 + place % 2] += 4
    shard = folder / f"{name}.h5"
    folder.mkdir(parents=True, exist_ok=True)
    with create_h5(shard, "") as file:
        group = file.create_group(name)
        group["rgb"], group["time"], group["cuts"] = rgb, times, np.zeros((0, 2))
        for curve in ("frame_difference", "flow_magnitude"):  # motion says nothing
            group[curve] = random.uniform(0.4, 0.6, len(times)).astype(np.float32)
        file.attrs.update(description="simulated", settings=to_json(**vars(VideoSettings())))
    return Encoded(video=video_of(name, SECONDS, sha256=f"{seed:064x}"), shard=shard), instances
