"""From a video file to the features of its snippets in one pass, with nothing written between.

Snippets go from the decoder to the flow and on to the encoders, a batch at a time: memory does not
grow with the video, unless its colours have more than 8 bits, and no file is made. The features are
to the bit the result of `video frames`, `video flow` and `features extract`.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from actionspan.annotations.tables import Video
from actionspan.arrays import Float32
from actionspan.dataset.settings import LimitSettings
from actionspan.errors import InputError, printable
from actionspan.features import extraction
from actionspan.features.clips import ClipStream
from actionspan.features.hub_encoders import pinned
from actionspan.features.settings import VideoSettings
from actionspan.jobs.apart import work_apart
from actionspan.jobs.memory import keep_freed_memory
from actionspan.jobs.parts import map_videos, take_over
from actionspan.jobs.prefetch import prefetched
from actionspan.jobs.shards import ShardWork
from actionspan.settings import to_json
from actionspan.storage.writing import create_h5, digest
from actionspan.video.clips import ClipSampler
from actionspan.video.cuts import CutFinder
from actionspan.video.decode import Frame, read_frames
from actionspan.video.earlier import earlier_features, recipe_attribute, recipe_digest
from actionspan.video.optical_flow import prepare_flow
from actionspan.video.settings import BOUTS, CUTS
from actionspan.video.snippets import snippet_batches
from actionspan.video.stillness import STILL, own_rows
from actionspan.video.zones import (
    WHOLE,
    ZONE_MOTION,
    Cameras,
    Zones,
    digests_of,
    only_inside,
    zones_attributes,
    zones_of,
)


class EncodedVideo(NamedTuple):
    """What feature shards have of a video, and how many frames were decoded."""

    streams: dict[str, Float32]  # (T, C) each
    facts: dict[str, NDArray[Any]]  # (T,) each: time, motion and stillness; and cuts (K, 2)
    frame_count: int


class VideoEncoder:
    """The networks of all streams, loaded once and called for each video.

    `weights` are parameters by stream, instead of the files that the settings name.

    Raises:
        InputError: The encoders cannot be built.
    """

    def __init__(
        self, settings: VideoSettings, weights: Mapping[str, Mapping[str, Tensor]] | None = None
    ) -> None:
        if settings.encoders.mover:  # else squares only decide which snippets are still
            frames = replace(settings.frames, mover_side=settings.encoders.input_size)
            settings = replace(settings, frames=frames)
        self.settings = settings
        self.streams = extraction.TwoStream(settings.encoders, 2 * settings.frames.stack, weights)

    def __call__(
        self,
        path: Path,
        limits: LimitSettings | None = None,
        on_progress: Callable[[float], None] | None = None,
        frames: Iterable[Frame] | None = None,
        zones: Zones = (),
    ) -> EncodedVideo:
        """Encode a video file; report to `on_progress`, in a thread, the seconds done.

        `frames` are all its frames, where a caller decodes them already. Only the area inside the
        `zones` counts, if there are any.

        Raises:
            InputError: It is not a video, it is beyond the limits, its decoding breaks off, or its
                flow or features cannot be computed.
        """
        chosen, flow, count = self.settings.frames, self.settings.flow, 0
        cuts = CutFinder(zones)
        clips = ClipStream(self.streams.clip) if self.streams.clip else None
        sampler = ClipSampler(chosen, clips.take) if clips else None

        def counted() -> Iterator[Frame]:
            nonlocal count
            decoded = read_frames(path, limits=limits) if frames is None else frames
            for frame in cuts.watch(only_inside(decoded, zones)):
                count += 1
                if sampler:
                    sampler.add(frame)
                yield frame

        keys = (*extraction.COPIED, *[ZONE_MOTION] * (len(zones) > 1))
        facts: dict[str, list[NDArray[Any]]] = {key: [] for key in keys}

        def images() -> Iterator[extraction.Images]:
            size = self.settings.encoders.batch_size
            for batch in snippet_batches(counted(), chosen, flow, size, zones):
                yield batch.pictures, batch.flow, batch.movers
                for key, parts in facts.items():
                    parts.append(getattr(batch, key))
                if on_progress:
                    on_progress(float(batch.time[-1]))
            if count == 0:
                raise InputError(f"{path}: no frame can be decoded")

        # decoding and flow run in a thread while the networks run: both release the lock
        with closing(prefetched(images(), ahead=1)) as batches:
            streams = self.streams(batches, flow.bound)
        known = {key: np.concatenate(parts) for key, parts in facts.items()}
        rows = own_rows(known[STILL])
        streams = {key: vectors[rows] for key, vectors in streams.items()}
        if clips and sampler:
            sampler.close()
            streams["clip"] = clips.finish(chosen.clip_rate, known["time"])
        extraction.check_finite(streams)
        return EncodedVideo(streams, known | {CUTS: cuts.found(), BOUTS: cuts.bouts.found()}, count)


def encode_video(
    path: Path | str, settings: VideoSettings | None = None
) -> dict[str, NDArray[Any]]:
    """Return the features of a video file: a pure function, for Ray Data and whatever maps files.

    The networks are loaded at the first call in a process and kept for calls with the same
    settings. The threads are torch's and OpenCV's in the process.

    Args:
        path: The file.
        settings: Of frames, flow and encoders; by default as in config.yaml.

    Returns:
        For the T snippets of the video: `rgb`, `flow` and, where they are asked for, `mover` and
        `clip`, (T, C) float32 features of each stream; `time` (T,) float64, their centres in
        seconds; `frame_difference` (T,) float32 in 0 … 1 and `flow_magnitude` (T,) float32 in
        pixels; `still` (T,), those that have the features of the one before; `cuts` (K, 2), see
        `CutFinder.found`, and `bouts` (N, 3), see `BoutFinder.found`.

    Raises:
        InputError: The file is not a video, or a network cannot be built.
    """
    streams, facts, _ = _encoder(settings or VideoSettings())(Path(path))
    return {**streams, **facts}


def encode_shard(
    videos: list[Video],
    out: Path,
    settings: VideoSettings,
    how: ShardWork | None = None,
    limits: LimitSettings | None = None,
    recipe: Path | None = None,
    cameras: Cameras = WHOLE,
) -> dict[str, str]:
    """Write the features of a shard's probed videos, except rows with an error.

    Features that an earlier run made by the same `recipe` are taken over. The zones of a video are
    found by its name among `cameras`. Returns the reasons of the rejected videos by video id.

    Raises:
        InputError: The flow or the encoders cannot be made here, or `how.faults` asks to stop.
    """
    how = how or ShardWork()
    settings = replace(settings, encoders=pinned(settings.encoders))
    good = [video for video in videos if not video.error]
    made_by, earlier = recipe_digest(recipe), earlier_features(good, recipe, cameras)
    pictures = digest(settings.frames, settings.flow)
    common = extraction.encoders_digest(settings.encoders, "features encode", pictures, made_by)
    digests = [digest(common, video.sha256, *digests_of(cameras, video.video_id)) for video in good]
    return map_videos(
        out,
        [video.video_id for video in good],
        [(video, earlier.get(video.video_id)) for video in good],
        digests,
        partial(_work, settings, limits, cameras),
        title="encoding",
        how=how,
        prepare=partial(_prepare, settings, how.threads),
        settings_digest=digest(common, digests),
        attributes={**_attributes(settings), **recipe_attribute(made_by)},
    )


def encode_each(
    jobs: Iterable[tuple[Video, Path]],
    settings: VideoSettings,
    how: ShardWork,
    cameras: Cameras = WHOLE,
) -> Generator[tuple[int, str], None, None]:
    """Write the features of probed videos, each into its file; yield each index and its error.

    The error is empty where the features were written. `how.processes` encode at once; one is
    replaced only if it dies. A job is taken when a process is free.

    Raises:
        JobError: The disk is full, or the flow or the encoders cannot be made here.
    """
    settings = replace(settings, encoders=pinned(settings.encoders))
    outcomes = work_apart(
        partial(_alone, settings, cameras),
        jobs,
        prepare=partial(_prepare, settings, how.threads),
        processes=how.processes,
        stall_seconds=how.faults.stall_seconds,
    )
    with closing(outcomes):
        for index, outcome in outcomes:
            yield index, printable(outcome.reason)


def _alone(settings: VideoSettings, cameras: Cameras, job: tuple[Video, Path]) -> None:
    video, out = job
    with create_h5(out, "") as file:
        file.attrs.update(_attributes(settings))
        _work(settings, None, cameras, (video, None), file.create_group(video.video_id))


def _attributes(settings: VideoSettings) -> dict[str, str]:
    described = settings.encoders.described(settings.flow.algorithm)
    return {"description": described, "settings": to_json(**vars(settings))}


_encoder = lru_cache(maxsize=1)(VideoEncoder)  # loaded once in a process


def _prepare(settings: VideoSettings, threads: int) -> None:
    """Load flow and encoders, once in a process: a missing part is not a video's fault."""
    keep_freed_memory()
    prepare_flow(settings.flow)
    torch.set_num_threads(threads)
    _encoder(settings)


def _work(
    settings: VideoSettings,
    limits: LimitSettings | None,
    cameras: Cameras,
    source: tuple[Video, Path | None],  # and a file that has the video's features
    group: h5py.Group,
) -> None:
    video, earlier = source
    if earlier and take_over(earlier, video.video_id, group.parent, video.video_id):
        return
    encode, zones = _encoder(settings), zones_of(cameras, video.video_id)
    streams, facts, frames = encode(video.path, limits, zones=zones)
    extraction.write_streams(group, streams, encode.streams)
    for name, values in facts.items():
        group[name] = values
    group.attrs.update(video.attributes | zones_attributes(zones))
    group.attrs.update(frame_count=frames, snippet_frames=settings.frames.snippet_frames)
