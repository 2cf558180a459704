"""Drawing and encoding one demo video from its plan, as its camera sees it."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import av
import cv2
import numpy as np

from actionspan.arrays import Float64
from actionspan.demo import movers
from actionspan.demo.person import Clothes, Figure, Image, build_figure, draw_figure, random_clothes
from actionspan.demo.poses import Pose, inside, joints, person_pose, ramp
from actionspan.demo.scenario import Shot, VideoPlan
from actionspan.demo.scenes import PAINTERS
from actionspan.storage.writing import atomic_path

_PAN = 0.17
"""The farthest pan to either side, in image widths."""
_MARGIN_X, _MARGIN_Y = 2 * _PAN + 0.1, 0.24  # how much larger a scene is than the image
# One thread and no look-ahead (which reads memory nobody set): equal images, equal bytes.
_X264 = {"preset": "veryfast", "crf": "25", "threads": "1",
         "x264-params": "threads=1:mbtree=0:rc-lookahead=0"}  # fmt: skip
_MPEG4_BITS_PER_PIXEL = 0.2


class _Take(NamedTuple):
    """All that is needed to draw the frames of one shot."""

    frames: range
    background: Image
    middle: Float64  # (2,) of the scene, in its pixels
    figure: Figure
    moving: list[movers.Draw]  # behind the person
    passers: list[movers.Passer]
    stools: list[tuple[float, float, float]]  # x and y of the foot and size, in scene pixels


def render_video(path: Path, plan: VideoPlan) -> None:
    """Write the video of a plan; the file appears when it is complete."""
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        with atomic_path(path) as partial:
            _encode(partial, frames(plan), plan)
    finally:
        cv2.setNumThreads(threads)


def _encode(path: Path, pictures: Iterable[Image], plan: VideoPlan) -> None:
    """Encode RGB images with one thread and no date, so that equal images give equal bytes."""
    codec = plan.codec if plan.codec in av.codecs_available else "mpeg4"
    with av.open(str(path), "w", options={"fflags": "+bitexact"}) as container:
        # The encoder.
        stream: Any = container.add_stream(codec, rate=plan.fps)
        stream.width, stream.height, stream.pix_fmt = plan.width, plan.height, "yuv420p"
        stream.codec_context.thread_count = 1
        stream.codec_context.gop_size = 2 * round(plan.fps)
        if codec == "libx264":
            stream.options = _X264
        else:
            bits = _MPEG4_BITS_PER_PIXEL * plan.width * plan.height * float(plan.fps)
            stream.codec_context.bit_rate = round(bits)
            stream.options = {"threads": "1", "flags": "+bitexact"}
        # The frames.
        for count, picture in enumerate(pictures):
            planes: Any = cv2.cvtColor(picture, cv2.COLOR_RGB2YUV_I420)
            frame = av.VideoFrame.from_ndarray(planes, format="yuv420p")
            frame.pts, frame.time_base = count, 1 / plan.fps
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def frames(plan: VideoPlan) -> Iterator[Image]:
    """Draw the frames of a plan one after the other, RGB."""
    rng = np.random.default_rng([plan.seed, plan.index])
    time = np.arange(plan.frames) / float(plan.fps)
    clothes = random_clothes(rng)
    pose = person_pose(plan, time, rng, reach=0.72 if plan.width > plan.height else 0.42)
    camera = _camera_path(plan, time, rng)
    gain = brightness(plan, time, rng)
    starts = [round(shot.start * plan.fps) for shot in plan.shots] + [plan.frames]
    for shot, first, end in zip(plan.shots, starts, starts[1:], strict=False):
        take = _prepare(plan, shot, range(first, end), time, pose, clothes, camera, rng)
        for frame in take.frames:
            picture = _draw(take, frame, camera[frame], plan)
            yield cv2.convertScaleAbs(picture, alpha=gain[frame])


def _prepare(
    plan: VideoPlan, shot: Shot, chosen: range, time: Float64, pose: Pose, clothes: Clothes,
    camera: Float64, rng: np.random.Generator,
) -> _Take:  # fmt: skip
    """Paint the scene of one shot and place everything in it."""
    wide = plan.width + 2 * round(_MARGIN_X * plan.width / 2)
    tall = plan.height + 2 * round(_MARGIN_Y * plan.height / 2)
    scene = PAINTERS[shot.scene](rng, wide, tall)
    middle = np.array([wide / 2, tall / 2])
    # The person, with the origin `foot` on the ground.
    landscape = plan.width > plan.height
    size = plan.height * (rng.uniform(0.56, 0.68) if landscape else rng.uniform(0.46, 0.52))
    offset = np.array(
        [rng.uniform(-0.04, 0.04) * plan.width, rng.uniform(0.36, 0.42) * plan.height]
    )
    foot = middle + offset
    frames = slice(chosen.start, chosen.stop)
    part = {name: values[frames] for name, values in pose.items()}
    maps = camera[frames].copy()
    maps[:, :, 2] += maps[:, :, :2] @ offset
    maps[:, :, :2] *= size
    sizes = size * np.hypot(maps[:, 0, 0], maps[:, 0, 1]) / size**2 * size
    figure = build_figure(joints(part), part["turn"], sizes, maps, clothes)
    # A stool under each seated person, or perhaps one that nobody uses.
    hips = joints(pose)["hips"]
    middles = [(a.start + a.end) / 2 for a in plan.actions if a.kind == "sit"]
    seats = [hips[min(round(moment * plan.fps), plan.frames - 1)] for moment in middles]
    if not seats and rng.random() < 0.6:
        seats = [np.array([rng.uniform(-0.6, 0.6), -0.3])]
    stools = [(*(foot + size * seat), size) for seat in seats]
    # What passes through, across the image and its margins.
    half = 0.5 * (plan.width + _MARGIN_X * plan.width) + 0.3 * size
    span = (float(middle[0] - half), float(middle[0] + half))
    ground = (float(foot[1] - 3), float(foot[1] + 12))
    passers = []
    for event in plan.distractors:
        first = max(chosen.start, round(event.start * plan.fps))
        end = min(chosen.stop, round(event.end * plan.fps))
        if event.kind == "object" and end - first > 5:
            passer = movers.make_passer(
                rng, first, time[first:end], scene=shot.scene, size=size, ground=ground, span=span
            )
            passers.append(passer)
    # What moves by itself.
    now = time[frames]
    crowns = movers.leaves([m for m in scene.movers if m.kind == "leaves"], now, rng)
    screens = [movers.screen(m, now, rng) for m in scene.movers if m.kind == "television"]
    return _Take(chosen, scene.image, middle, figure, [*screens, crowns], passers, stools)


def _draw(take: _Take, frame: int, camera: Float64, plan: VideoPlan) -> Image:
    """Draw one frame from back to front."""
    to_picture = camera.copy()
    to_picture[:, 2] -= camera[:, :2] @ take.middle
    picture: Image = cv2.warpAffine(
        take.background, to_picture, (plan.width, plan.height), borderMode=cv2.BORDER_REFLECT_101
    )
    local = frame - take.frames.start
    for draw in take.moving:
        draw(picture, local, to_picture)
    for stool in take.stools:
        _draw_stool(picture, stool, to_picture)
    passing = [passer for passer in take.passers if frame in passer.frames]
    for passer in passing:
        if not passer.in_front:
            passer.draw(picture, frame, to_picture)
    draw_figure(picture, take.figure, local)
    for passer in passing:
        if passer.in_front:
            passer.draw(picture, frame, to_picture)
    return picture


def _draw_stool(image: Image, stool: tuple[float, float, float], to_picture: Float64) -> None:
    """Draw a wooden stool with its seat under the hips of the person who sits on it."""
    x, y, size = stool
    half, thick, tall = 0.11 * size, 0.04 * size, 0.24 * size
    top = y + 0.045 * size
    for at in (-0.85, -0.15, 0.75):
        leg = x + at * half
        corners = [[leg, top], [leg + 0.4 * thick, top], [leg + 0.5 * thick, top + tall]]
        corners.append([leg - 0.1 * thick, top + tall])
        movers.fill(image, np.array(corners), (84, 56, 34), to_picture)
    seat = [[x - half, top], [x + half, top], [x + half, top + thick], [x - half, top + thick]]
    movers.fill(image, np.array(seat), (146, 98, 58), to_picture)


def _camera_path(plan: VideoPlan, time: Float64, rng: np.random.Generator) -> Float64:
    """Return (F, 2, 3) affine maps from pixels about the scene's middle to the image."""
    # Some cameras are on a tripod, others are held by hand.
    still = rng.random() < 0.4
    shake = (rng.uniform(0.05, 0.2) if still else rng.uniform(0.6, 2.4)) * plan.height / 240
    x, y, angle = (_tremor(time, rng) * shake for _ in range(3))
    angle, zoom = angle * 0.0025, np.ones_like(time)
    # Pans and zooms are in the plan.
    for event in plan.distractors:
        shape = inside(time, event.start, event.end, 0.4 * (event.end - event.start))
        if event.kind == "pan":
            far = rng.choice((-1, 1)) * rng.uniform(0.4, 1.0) * _PAN * plan.width
            if rng.random() < 0.5:
                x += far * shape
            else:  # to one side, then to the other
                phase = np.clip((time - event.start) / (event.end - event.start), 0, 1)
                x += far * np.sin(2 * np.pi * phase) * np.sin(np.pi * phase)
        elif event.kind == "zoom":
            zoom += rng.uniform(-0.06, 0.12) * shape
    limit = (_PAN + 0.03) * plan.width
    x = np.clip(x, -limit, limit)
    maps = np.zeros((len(time), 2, 3))
    maps[:, 0, 0] = maps[:, 1, 1] = zoom * np.cos(angle)
    maps[:, 0, 1] = -zoom * np.sin(angle)
    maps[:, 1, 0] = zoom * np.sin(angle)
    maps[:, 0, 2], maps[:, 1, 2] = plan.width / 2 + x, plan.height / 2 + y
    return maps


def _tremor(time: Float64, rng: np.random.Generator) -> Float64:
    """Return (F,) the unsteadiness of a hand: slow drift and faster, smaller shaking."""
    total = np.zeros_like(time)
    for low, high, size in ((0.1, 0.3, 1.6), (0.3, 0.9, 1.0), (1.0, 2.5, 0.5), (3.0, 6.0, 0.2)):
        total += size * np.sin(2 * np.pi * (rng.uniform(low, high) * time + rng.uniform(0, 1)))
    return total


def brightness(plan: VideoPlan, time: Float64, rng: np.random.Generator) -> Float64:
    """Return (F,) factors on the image: slow drift, changing lights, flickering lights."""
    gain = rng.uniform(0.82, 1.02) + 0.05 * np.sin(time * rng.uniform(0.1, 0.4) + rng.uniform(0, 6))
    for event in plan.distractors:
        if event.kind == "flicker":
            steps = np.floor((time - event.start) * rng.uniform(6, 12)).astype(int)
            levels = rng.uniform(0.78, 1.1, 128)
            active = (time >= event.start) & (time < event.end)
            gain = np.where(active, gain * levels[steps % 128], gain)
        elif event.kind == "light":
            quick = rng.uniform(0.05, 0.8)
            level = rng.choice((rng.uniform(0.55, 0.75), rng.uniform(1.12, 1.22)))
            on = ramp(time, event.start, event.start + quick)
            off = ramp(time, event.end - quick, event.end)
            gain = gain * (1 + (level - 1) * (on - off))
    return gain
