"""Drawing and encoding one demo video from its plan."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np

from actionspan.demo.camera import PAN, brightness, camera_path
from actionspan.demo.movers import (
    Disc,
    Screen,
    draw_discs,
    draw_screen,
    fill,
    leaves,
    screen,
)
from actionspan.demo.passers import Passer, draw_passer, make_passer
from actionspan.demo.person import (
    Clothes,
    Figure,
    Image,
    build_figure,
    draw_figure,
    draw_shadow,
    random_clothes,
)
from actionspan.demo.poses import Floats, Pose, joints, person_pose
from actionspan.demo.scenario import VideoPlan
from actionspan.demo.scenes import PAINTERS
from actionspan.files.storage import atomic_path

MARGIN_X, MARGIN_Y = 2 * PAN + 0.1, 0.24
"""How much larger a scene is than the picture."""
X264 = {
    "preset": "veryfast",
    "crf": "25",
    "threads": "1",
    "x264-params": "threads=1:mbtree=0:rc-lookahead=0",
}
"""One thread and no look-ahead (which reads memory nobody set): equal pictures, equal bytes."""
MPEG4_BITS_PER_PIXEL = 0.2


@dataclass(frozen=True, kw_only=True)
class Take:
    """All that is needed to draw the frames of one shot."""

    frames: range
    background: Image
    to_scene: Floats
    """(2,) the scene's middle, in its pixels."""
    figure: Figure
    discs: list[Disc]
    screens: list[Screen]
    passers: list[Passer]
    stools: list[tuple[float, float, float]]
    """x and y of the foot and the size of each stool, in scene pixels."""


def render_video(path: Path, plan: VideoPlan) -> None:
    """Write the video of a plan; the file appears when it is whole."""
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        with atomic_path(path) as partial:
            encode(partial, frames(plan), plan)
    finally:
        cv2.setNumThreads(threads)


def encode(path: Path, pictures: Iterator[Image], plan: VideoPlan) -> None:
    """Encode RGB pictures with one thread and no date, so that equal pictures give equal bytes."""
    codec = plan.codec if plan.codec in av.codecs_available else "mpeg4"
    with av.open(str(path), "w", options={"fflags": "+bitexact"}) as container:
        stream: Any = container.add_stream(codec, rate=plan.fps)
        stream.width, stream.height, stream.pix_fmt = plan.width, plan.height, "yuv420p"
        stream.codec_context.thread_count = 1
        stream.codec_context.gop_size = 2 * round(plan.fps)
        if codec == "libx264":
            stream.options = X264
        else:
            bits = MPEG4_BITS_PER_PIXEL * plan.width * plan.height * float(plan.fps)
            stream.codec_context.bit_rate = round(bits)
            stream.options = {"threads": "1", "flags": "+bitexact"}
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
    reach = 0.72 if plan.width > plan.height else 0.42
    clothes = random_clothes(rng)
    pose = person_pose(plan, time, rng, reach)
    camera = camera_path(plan, time, rng)
    gain = brightness(plan, time, rng)
    starts = [round(shot.start * plan.fps) for shot in plan.shots] + [plan.frames]
    for shot, first, end in zip(plan.shots, starts, starts[1:], strict=False):
        chosen = range(first, end)
        take = _prepare(plan, shot.scene, chosen, time, pose, clothes, camera, rng)
        for frame in chosen:
            picture = _draw(take, frame, camera[frame], plan)
            yield cv2.convertScaleAbs(picture, alpha=gain[frame])


def _prepare(
    plan: VideoPlan,
    scene_name: str,
    chosen: range,
    time: Floats,
    pose: Pose,
    clothes: Clothes,
    camera: Floats,
    rng: np.random.Generator,
) -> Take:
    """Paint the scene of one shot and place everything in it."""
    wide = plan.width + 2 * round(MARGIN_X * plan.width / 2)
    tall = plan.height + 2 * round(MARGIN_Y * plan.height / 2)
    scene = PAINTERS[scene_name](rng, wide, tall)
    landscape = plan.width > plan.height
    size = plan.height * (rng.uniform(0.56, 0.68) if landscape else rng.uniform(0.46, 0.52))
    middle = np.array([wide / 2, tall / 2])
    # The person's origin on the ground, in scene pixels about the scene's middle.
    foot = np.array([rng.uniform(-0.04, 0.04) * plan.width, rng.uniform(0.36, 0.42) * plan.height])
    now = time[chosen.start : chosen.stop]
    part = {name: values[chosen.start : chosen.stop] for name, values in pose.items()}
    at = joints(part)
    maps = camera[chosen.start : chosen.stop].copy()
    maps[:, :, 2] += maps[:, :, :2] @ foot
    maps[:, :, :2] *= size
    sizes = np.full(len(now), size) * np.hypot(maps[:, 0, 0], maps[:, 0, 1]) / size**2 * size
    figure = build_figure(at, part["turn"], sizes, maps, clothes)
    stools = []
    seats = joints(pose)["hips"]
    for action in plan.actions:
        if action.kind == "sit":
            x, y = seats[min(round((action.start + action.end) / 2 * plan.fps), plan.frames - 1)]
            stools.append((*(middle + foot + size * np.array([x, y])), size))
    if not stools and rng.random() < 0.6:
        place = size * np.array([rng.uniform(-0.6, 0.6), -0.3])
        stools.append((*(middle + foot + place), size))
    passers = []
    half = 0.5 * (plan.width + MARGIN_X * plan.width) + 0.3 * size
    for event in plan.distractors:
        if event.kind == "object":
            first = max(chosen.start, round(event.start * plan.fps))
            end = min(chosen.stop, round(event.end * plan.fps))
            if end - first > 5:
                passers.append(
                    make_passer(
                        rng,
                        first,
                        time[first:end],
                        scene=scene_name,
                        size=size,
                        ground=(float(middle[1] + foot[1] - 3), float(middle[1] + foot[1] + 12)),
                        span=(float(middle[0] - half), float(middle[0] + half)),
                    )
                )
    movers = scene.movers
    return Take(
        frames=chosen,
        background=scene.image,
        to_scene=middle,
        figure=figure,
        discs=[disc for m in movers if m.kind == "leaves" for disc in leaves(m, now, rng)],
        screens=[screen(m, now, rng) for m in movers if m.kind == "television"],
        passers=passers,
        stools=stools,
    )


def _draw(take: Take, frame: int, camera: Floats, plan: VideoPlan) -> Image:
    """Draw one frame from back to front."""
    to_picture = camera.copy()
    to_picture[:, 2] -= camera[:, :2] @ take.to_scene
    picture: Image = cv2.warpAffine(
        take.background,
        to_picture,
        (plan.width, plan.height),
        flags=cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_REFLECT_101,
    )
    local = frame - take.frames.start
    for shown in take.screens:
        draw_screen(picture, shown, local, to_picture)
    if take.discs:
        draw_discs(picture, take.discs, local, to_picture)
    for stool in take.stools:
        _draw_stool(picture, stool, to_picture)
    passing = [p for p in take.passers if p.first <= frame < p.first + len(p.centres)]
    for passer in passing:
        if not passer.in_front:
            draw_passer(picture, passer, frame, to_picture)
    draw_shadow(picture, *take.figure.shadows[local].tolist())
    draw_figure(picture, take.figure, local)
    for passer in passing:
        if passer.in_front:
            draw_passer(picture, passer, frame, to_picture)
    return picture


def _draw_stool(image: Image, stool: tuple[float, float, float], to_picture: Floats) -> None:
    """Draw a wooden stool whose seat is under the hips of who sits on it."""
    x, y, size = stool
    half, thick, tall = 0.11 * size, 0.04 * size, 0.24 * size
    top = y + 0.045 * size
    for at in (-0.85, -0.15, 0.75):
        leg = x + at * half
        corners = [[leg, top], [leg + 0.4 * thick, top], [leg + 0.5 * thick, top + tall]]
        corners.append([leg - 0.1 * thick, top + tall])
        fill(image, np.array(corners), (84, 56, 34), to_picture)
    seat = [[x - half, top], [x + half, top], [x + half, top + thick], [x - half, top + thick]]
    fill(image, np.array(seat), (146, 98, 58), to_picture)
