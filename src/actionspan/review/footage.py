"""The features of the videos of a folder, each made once and kept in a file of its own."""

from collections.abc import Generator, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, replace
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
from actionspan.features.one_pass import encode_each
from actionspan.features.settings import RescaleSettings, VideoSettings
from actionspan.features.steps import rescale
from actionspan.files.storage import create_h5, digest, open_h5, read_json, write_json
from actionspan.files.text import file_name
from actionspan.propose.results import source_of
from actionspan.running.shards import ShardWork
from actionspan.video.settings import BOUTS, CUTS

FACTS = (*MOTION, "time", CUTS, BOUTS)


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """A video and the file of its features."""

    video: Video
    shard: Path
    source: Mapping[str, int] = field(default_factory=dict)  # size and time of the video's file

    @property
    def fingerprint(self) -> str:
        """The size and SHA-256 of the video's file, as `files.checksums` writes them."""
        return f"{self.source.get('bytes', 0)} {self.video.sha256}"

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


def encode_all(
    paths: Iterable[Path],
    folder: Path,
    how: ShardWork | None = None,
    settings: VideoSettings | None = None,
) -> Generator[Encoded, None, None]:
    """Encode videos, those that this version has not done; `video.error` says why one cannot be.

    Each path is taken when the video before it is done.

    Raises:
        JobError: The disk is full, or the encoders cannot be made here.
    """
    settings = settings or VideoSettings()
    given: list[tuple[Video, Path]] = []
    reasons = encode_each(iter(given.pop, None), settings, how or ShardWork())
    with closing(reasons):
        for path in paths:
            shard = folder / f"{file_name(path.stem)}.h5"
            note = shard.with_suffix(".json")
            source = source_if_there(path)
            made_of = {"by": digest(__version__, settings), **source}
            done = None
            with suppress(InputError, KeyError, TypeError):
                kept = read_json(note)
                if kept["made_of"] == made_of and shard.is_file():
                    done = Video(**{**kept["video"], "path": path})
            if done:
                yield Encoded(video=done, shard=shard, source=source)
                continue
            video = probe_video(path)
            if not video.error:
                given.append((video, shard))
                video = replace(video, error=next(reasons))
            if not video.error:  # else it may be the machine's fault, and is tried again
                known = {**asdict(video), "path": str(path)}
                write_json(note, {"made_of": made_of, "video": known})
            yield Encoded(video=video, shard=shard, source=source)


def source_if_there(path: Path) -> dict[str, int]:
    """Return the size and time of a file, nothing if it cannot be read."""
    with suppress(InputError):
        return source_of(path)
    return {}


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
    cuts, _ = facts.pop(CUTS), facts.pop(BOUTS, None)
    shown = cuts[(cuts[:, 0] > start) & (cuts[:, 0] < end)]
    with open_h5(one.shard) as whole, create_h5(shard, "") as file:
        file.attrs.update({key: whole.attrs[key] for key in ("description", "settings")})
        group = file.create_group(name)
        for key, values in {**raw, **facts}.items():
            group[key] = values[inside] - (start if key == "time" else 0)
        group[CUTS] = shown - [start, 0]
    video = replace(one.video, video_id=name, duration_seconds=end - start, sha256=name)
    return Encoded(video=video, shard=shard)
