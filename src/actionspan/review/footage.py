"""The features of the videos of a folder, each made once and kept in a file of its own."""

from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actionspan import __version__
from actionspan.arrays import Float32
from actionspan.dataset.tables import Video
from actionspan.dataset.video_facts import probe_video
from actionspan.errors import InputError
from actionspan.features.collect import MOTION, STREAMS
from actionspan.features.one_pass import encode_shard
from actionspan.features.settings import RescaleSettings, VideoSettings
from actionspan.features.steps import rescale
from actionspan.files.storage import create_h5, digest, open_h5, read_json, write_json
from actionspan.files.text import file_name
from actionspan.propose.results import source_of
from actionspan.running.shards import ShardWork
from actionspan.video.settings import CUTS

FACTS = (*MOTION, "time", CUTS)


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """A video and the file of its features."""

    video: Video
    shard: Path

    def read(self) -> tuple[dict[str, Float32], dict[str, NDArray[Any]]]:
        """Return the (T, C) features of each stream, and the facts of the T snippets."""
        with open_h5(self.shard) as file:
            group = file[self.video.video_id]
            raw = {name: group[name][:] for name in STREAMS if name in group}
            facts = {name: group[name][:] for name in FACTS if name in group}
        facts["time"] = facts["time"].astype(np.float64)
        return raw, facts

    def motion(self) -> Float32:
        """Return the magnitude of motion in each of 100 equal parts of the video."""
        _, facts = self.read()
        how, seconds = RescaleSettings(), self.video.duration_seconds
        given = facts["flow_magnitude"], facts["time"], seconds, how.steps, how.method
        return rescale(*given, motion=True)


def encode(
    path: Path,
    folder: Path,
    how: ShardWork | None = None,
    settings: VideoSettings | None = None,
) -> Encoded:
    """Encode a video, unless this version has done it; `video.error` says why it cannot be.

    Raises:
        JobError: The disk is full, or the encoders cannot be made here.
    """
    shard = folder / f"{file_name(path.stem)}.h5"
    note = shard.with_suffix(".json")
    settings = settings or VideoSettings()
    made_of: dict[str, Any] = {"by": digest(__version__, settings)}
    if path.exists():
        made_of |= source_of(path)
    with suppress(InputError, KeyError, TypeError):
        kept = read_json(note)
        if kept["made_of"] == made_of and shard.is_file():
            return Encoded(video=Video(**{**kept["video"], "path": path}), shard=shard)
    video = probe_video(path)
    if not video.error:
        reasons = encode_shard([video], shard, settings, how)
        video = replace(video, error=reasons.get(video.video_id, ""))
    if not video.error:  # else it may be the machine's fault, and is tried again
        write_json(note, {"made_of": made_of, "video": {**asdict(video), "path": str(path)}})
    return Encoded(video=video, shard=shard)


def stretch(one: Encoded, start: float, end: float, shard: Path) -> Encoded:
    """Return the time from start to end, in seconds, as a video of its own, in a new file.

    Raises:
        ValueError: No snippet is there.
    """
    raw, facts = one.read()
    inside = (facts["time"] >= start) & (facts["time"] < end)
    if not inside.any():
        raise ValueError(f"no snippet from {start} to {end} s")
    name = shard.stem
    cuts = facts.pop(CUTS)
    shown = cuts[(cuts[:, 0] > start) & (cuts[:, 0] < end)]
    with open_h5(one.shard) as whole, create_h5(shard, "") as file:
        file.attrs.update({key: whole.attrs[key] for key in ("description", "settings")})
        group = file.create_group(name)
        for key, values in {**raw, **facts}.items():
            group[key] = values[inside] - (start if key == "time" else 0)
        group[CUTS] = shown - [start, 0]
    video = replace(one.video, video_id=name, duration_seconds=end - start, sha256=name)
    return Encoded(video=video, shard=shard)
