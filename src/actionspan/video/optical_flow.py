"""Optical flow of a snippet's grey frames, coded in 8 bits as two-stream networks expect.

A displacement of v pixels (right and down are positive, as seen from one frame to the next) has
the code 128 + 127 · v / bound, rounded and clamped to 1 … 255: no motion is exactly 128, +bound is
255, −bound is 1, and a step of one code is bound / 127 pixels.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import cv2
import h5py
import numpy as np

from actionspan.arrays import Float32, UInt8
from actionspan.errors import InputError
from actionspan.jobs.apart import still_working
from actionspan.jobs.parts import map_videos
from actionspan.jobs.shards import ShardWork
from actionspan.networks.names import NO_MOTION
from actionspan.settings import to_json
from actionspan.storage.writing import digest, open_h5
from actionspan.video.earlier import FEATURES, read_made
from actionspan.video.settings import BOUTS, CUTS, FlowSettings
from actionspan.video.stillness import STILL, own_rows
from actionspan.video.zones import SHARE, ZONE_MOTION

Estimator = Callable[[UInt8], Float32]  # (L + 1, h, w) grey frames → (L, h, w, 2) flow in pixels

CODES = 127  # codes from no motion to the bound, each way
_BLOCK = 16  # snippets read and written at once
_SMALLEST = 32  # pixels: with a shorter side OpenCV's DIS may read outside its arrays and crash


def quantise(flow: Float32, bound: float) -> UInt8:
    """Code displacements in pixels as bytes; those beyond ±bound get the outermost codes."""
    codes = flow * np.float32(CODES / bound)
    np.clip(codes, -CODES, CODES, out=codes)
    np.rint(codes, out=codes)
    codes += NO_MOTION
    return codes.astype(np.uint8)


def compute_flow(gray: UInt8, settings: FlowSettings, share: float = 1.0) -> tuple[UInt8, Float32]:
    """Estimate the flow between consecutive grey frames of snippets, (n, L + 1, h, w).

    Returns:
        (n, 2L, h, w) bytes, x and y in turn, and (n,) the mean magnitude in pixels before coding,
        over the `share` of the pixels that are inside zones: nothing moves elsewhere.

    Raises:
        InputError: The algorithm is not in this OpenCV, or the frames are too small.
    """
    count, frames, height, width = gray.shape
    if min(height, width) < _SMALLEST:
        raise InputError(f"frames of {width}×{height} pixels are too small for optical flow")
    estimate = estimator(settings)
    coded = np.empty((count, 2 * (frames - 1), height, width), np.uint8)
    magnitude = np.empty(count, np.float32)
    for snippet in range(count):
        flow = estimate(gray[snippet])  # (L, h, w, 2)
        # the last bit of cv2.magnitude depends on where its arrays lie in memory
        lengths = [np.sqrt(x * x + y * y).mean() for x, y in np.moveaxis(flow, 3, 1)]
        magnitude[snippet] = np.mean(lengths) / share
        planes = quantise(flow, settings.bound).transpose(0, 3, 1, 2)  # (L, 2, h, w)
        coded[snippet] = planes.reshape(coded.shape[1:])
        still_working()
    return coded, magnitude


@lru_cache(maxsize=1)
def estimator(settings: FlowSettings) -> Estimator:
    """Return the algorithm; OpenCV's objects are made once per process."""
    pair_flow = _pair_flow(settings)
    return lambda gray: np.stack([pair_flow(first, second) for first, second in pairwise(gray)])


def _pair_flow(settings: FlowSettings) -> Callable[[UInt8, UInt8], Any]:
    """Return OpenCV's function of two frames."""
    if settings.algorithm == "farneback":
        return lambda first, second: cv2.calcOpticalFlowFarneback(
            first, second, None, pyr_scale=0.5, levels=5, winsize=15, iterations=3, poly_n=5,
            poly_sigma=1.2, flags=0,
        )  # fmt: skip
    if settings.algorithm == "dis":
        preset = getattr(cv2, f"DISOPTICAL_FLOW_PRESET_{settings.preset.upper()}")
        create: Callable[[], Any] = partial(cv2.DISOpticalFlow.create, preset)
    elif hasattr(cv2, "optflow"):
        create = cv2.optflow.DualTVL1OpticalFlow.create
    else:
        raise InputError(
            "algorithm: tvl1 is not in this OpenCV; install the wheel that has it: "
            "pip uninstall opencv-python-headless && pip install opencv-contrib-python-headless"
        )

    # for a small image DIS lowers its finest scale, for all that it sees later
    solver = lru_cache(maxsize=4)(lambda size: create())
    return lambda first, second: solver(first.shape).calc(first, second, None)


def write_flow(source: h5py.Group, group: h5py.Group, settings: FlowSettings) -> None:
    """Compute the flow of one video's snippets, a block at a time.

    Args:
        source: The group that `write_frames` filled.
        group: Gets `flow` (T, 2L, h, w) with the attribute `bound`, `flow_magnitude` (T,) in
            pixels, and copies of `time`, `frame_difference`, `still`, `cuts` and the attributes.
        settings: The algorithm and the bound.

    Raises:
        InputError: The algorithm is not in this OpenCV, or the frames are too small.
    """
    gray = source["gray"]
    count, frames, height, width = gray.shape
    row = (2 * (frames - 1), height, width)
    planes = group.create_dataset("flow", shape=(count, *row), dtype=np.uint8, chunks=(1, *row))
    planes.attrs["bound"] = settings.bound
    magnitude = group.create_dataset("flow_magnitude", shape=(count,), dtype=np.float32)
    still = source[STILL][:] if STILL in source else np.zeros(count, bool)
    last = np.zeros((1, *row), np.uint8), np.zeros(1, np.float32)  # of the snippet before
    for start in range(0, count, _BLOCK):
        block = slice(start, start + _BLOCK)
        made = compute_flow(gray[block][~still[block]], settings, source.attrs.get(SHARE, 1.0))
        rows = own_rows(still[block]) + 1
        codes, lengths = (
            np.concatenate([before[-1:], own])[rows] for before, own in zip(last, made, strict=True)
        )
        planes[block], magnitude[block] = last = codes, lengths
    for name in ("time", "frame_difference", STILL, CUTS, BOUTS, ZONE_MOTION):
        if name in source:
            group[name] = source[name][:]
    group.attrs.update(source.attrs)


def flow_of_shard(
    frames: Path, out: Path, settings: FlowSettings, how: ShardWork | None = None
) -> dict[str, str]:
    """Compute the flow of every video of a shard from the HDF5 file of its frames.

    Where features replace a video's frames, they are copied to `out`.

    Returns:
        The reasons of the rejected videos by video id.

    Raises:
        InputError: The frames are missing, or the algorithm cannot run here.
    """
    made = read_made(frames)
    (made_of,), names = made.digests, list(made.hashes)
    digests = [digest("video flow", settings, each) for each in made.hashes.values()]
    return map_videos(
        out,
        names,
        [(frames, name, settings) for name in names],
        [digest(made_of, each) for each in digests],
        _work,
        title="optical flow",
        how=how,
        prepare=partial(prepare_flow, settings),
        before=made.rejected,
        settings_digest=digest(made_of, digests),
        attributes={"settings": to_json(made.settings, flow=settings), **made.recipe},
    )


def prepare_flow(settings: FlowSettings) -> None:
    """Make the algorithm, once in a process: what this OpenCV lacks is not a video's fault."""
    cv2.setNumThreads(1)
    estimator(settings)


def _work(source: tuple[Path, str, FlowSettings], group: h5py.Group) -> None:
    frames, name, settings = source
    with open_h5(frames) as file:
        if FEATURES in file[name]:
            file[name].copy(FEATURES, group)
            group.attrs.update(file[name].attrs)
        else:
            write_flow(file[name], group, settings)
