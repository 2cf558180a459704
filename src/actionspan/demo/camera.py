"""The camera of a demo video: how it moves over the scene, and how bright the picture is."""

import numpy as np

from actionspan.arrays import Float64
from actionspan.demo.poses import inside, ramp
from actionspan.demo.scenario import VideoPlan

PAN = 0.17
"""The farthest pan to either side, in picture widths."""


def camera_path(plan: VideoPlan, time: Float64, rng: np.random.Generator) -> Float64:
    """Return (F, 2, 3) affine maps from pixels about the scene's middle to the picture."""
    # Some cameras are on a tripod, others are held by hand.
    still = rng.random() < 0.4
    shake = (rng.uniform(0.05, 0.2) if still else rng.uniform(0.6, 2.4)) * plan.height / 240
    x, y, angle = (_tremor(time, rng) * shake for _ in range(3))
    angle, zoom = angle * 0.0025, np.ones_like(time)
    # Pans and zooms are in the plan.
    for event in plan.distractors:
        shape = inside(time, event.start, event.end, 0.4 * (event.end - event.start))
        if event.kind == "pan":
            far = rng.choice((-1, 1)) * rng.uniform(0.4, 1.0) * PAN * plan.width
            if rng.random() < 0.5:
                x += far * shape
            else:  # to one side, then to the other
                phase = np.clip((time - event.start) / (event.end - event.start), 0, 1)
                x += far * np.sin(2 * np.pi * phase) * np.sin(np.pi * phase)
        elif event.kind == "zoom":
            zoom += rng.uniform(-0.06, 0.12) * shape
    limit = (PAN + 0.03) * plan.width
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
    """Return (F,) factors on the picture: slow drift, changing lights, flickering lights."""
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
