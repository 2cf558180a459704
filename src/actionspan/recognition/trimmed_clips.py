"""Trimmed clips into a clip store: each file is decoded once, in order, and its flow computed.

Frames are reduced to the stored height as the video stage reduces them, flow is estimated between
those, and both are then brought to the stored size.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import h5py

from actionspan.dataset.settings import LimitSettings
from actionspan.errors import naming
from actionspan.jobs.parts import map_videos
from actionspan.jobs.shards import ShardWork
from actionspan.recognition.clip_lists import ClipSettings, TrimmedClip
from actionspan.recognition.clip_store import write_clip
from actionspan.storage.writing import digest
from actionspan.video.jpegs import Position
from actionspan.video.optical_flow import compute_flow, prepare_flow
from actionspan.video.settings import FlowSettings, FrameSettings
from actionspan.video.snippets import snippets


def store_clips(
    clips: Sequence[TrimmedClip],
    out: Path,
    settings: ClipSettings,
    flow: FlowSettings,
    how: ShardWork | None = None,
    data: str = "clips without a name",
    *,
    limits: LimitSettings | None = None,
) -> dict[str, str]:
    """Write the clips of a shard into the store `out`; return why some are rejected, by id.

    A clip that cannot be decoded is left out. The name of the data set, `data`, is for captions.

    Raises:
        InputError: The flow algorithm cannot run here.
    """
    used = (settings.stack, settings.snippet_frames, settings.height, settings.width)
    common = digest("clip", used, settings.jpeg_quality, flow)
    digests = [digest(common, _facts(clip.path), *clip[1:]) for clip in clips]
    return map_videos(
        out,
        [clip.clip_id for clip in clips],
        clips,
        digests,
        partial(_work, settings, flow, limits or LimitSettings()),
        title="storing clips",
        prepare=partial(prepare_flow, flow),
        how=how,
        settings_digest=digest(common, digests),
        attributes={"data": data},
    )


def _facts(path: Path) -> tuple[int, int]:
    """Return size and time of a file, which change when it does."""
    try:
        facts = path.stat()
    except OSError:
        return 0, 0  # decoding will report the mistake
    return facts.st_size, facts.st_mtime_ns


def _work(
    settings: ClipSettings,
    flow: FlowSettings,
    limits: LimitSettings,
    clip: TrimmedClip,
    group: h5py.Group,
) -> None:
    kept = FrameSettings(
        snippet_frames=settings.snippet_frames,
        stack=settings.stack,
        short_side=settings.height,
        mover_side=0,
        still=False,
    )

    def positions() -> Iterator[Position]:
        for snippet in snippets(clip.path, kept, limits):
            with naming(clip.path):
                planes, _ = compute_flow(snippet.gray[None], flow)
            yield Position(snippet.rgb, planes[0], snippet.seconds)

    write_clip(group, positions(), settings, label=clip.label, subset=clip.subset, bound=flow.bound)
