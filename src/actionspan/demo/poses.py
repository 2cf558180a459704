"""How the person of a demo video moves: joint angles over time, and the joints they give.

A pose maps the names in `_NAMES` to arrays over the frames of a video. Angles are in radians,
lengths (`lift`, `shift`, `place`) in body heights. Every action starts from the idle pose and
returns to it, so that its motion begins in its first frame and ends in its last.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from actionspan.arrays import Float64
from actionspan.demo.scenario import VideoPlan

Pose = dict[str, Float64]

SIDES = ("left", "right")
_LIMBS = ("arm", "arm_out", "elbow", "elbow_out", "leg", "leg_out", "knee")
_BODY = ("bend", "lean", "nod", "turn", "topple", "lift", "shift", "place")
_NAMES = (*(f"{side}_{name}" for side in SIDES for name in _LIMBS), *_BODY)

_WALKING_SPEED = 0.62  # body heights a second
_SEAT_BEHIND = 0.22  # body heights from the feet of a seated person to the hips
_ELEVATION = 0.16  # how far the camera looks down, in radians
BEARING = ("head", "shoulder", "hip", "knee", "ankle", "toe")  # the joints that the ground carries


def ramp(time: Float64, start: float, end: float) -> Float64:
    """Rise smoothly from 0 before `start` to 1 after `end`."""
    u = np.clip((time - start) / max(end - start, 1e-6), 0, 1)
    return u * u * (3 - 2 * u)


def inside(time: Float64, start: float, end: float, rise: float = 0.35) -> Float64:
    """Rise smoothly from 0 at `start` to 1, and fall again to 0 at `end`."""
    rise = min(rise, (end - start) / 3)
    return ramp(time, start, start + rise) - ramp(time, end - rise, end)


def _idle_pose(time: Float64, rng: np.random.Generator) -> Pose:
    """Stand: breathe, sway, turn a little, and now and then lift a hand or shift the weight."""
    pose = {name: np.zeros_like(time) for name in _NAMES}
    # Standing, with small motions.
    for side in SIDES:
        pose[f"{side}_arm_out"] += 0.13 + 0.02 * np.sin(time * rng.uniform(1.2, 1.8))
        pose[f"{side}_elbow"] += 0.2
        pose[f"{side}_leg_out"] += 0.07
        pose[f"{side}_arm"] += 0.05 * np.sin(time * rng.uniform(0.5, 1.1) + rng.uniform(0, 6))
    pose["lean"] += 0.025 * np.sin(time * rng.uniform(0.6, 1.0) + rng.uniform(0, 6))
    pose["bend"] += 0.03 + 0.012 * np.sin(time * rng.uniform(1.4, 1.9))
    pose["nod"] += 0.1 * np.sin(time * rng.uniform(0.3, 0.6) + rng.uniform(0, 6))
    pose["turn"] += rng.uniform(-0.5, 0.5) + 0.2 * np.sin(time * 0.3 + rng.uniform(0, 6))
    # Now and then more.
    moment = rng.uniform(1, 6)
    while moment < time[-1]:
        length = rng.uniform(1.5, 4.0)
        shape = inside(time, moment, moment + length, 0.9)
        side = SIDES[rng.integers(2)]
        if rng.random() < 0.5:  # a hand to the hip
            pose[f"{side}_arm_out"] += 0.5 * shape
            pose[f"{side}_elbow_out"] -= 1.2 * shape
        else:  # the weight on one leg
            pose[f"{side}_leg_out"] += 0.1 * shape
            pose[f"{side}_knee"] += 0.25 * shape
            pose[f"{side}_leg"] += 0.12 * shape
        moment += length + rng.uniform(3, 9)
    return pose


def _wave(pose: Pose, time: Float64, start: float, end: float, rng: np.random.Generator) -> None:
    """Raise one arm or both and wave."""
    weight = inside(time, start, end)
    both = rng.random() < 0.35
    swing = np.sin(2 * np.pi * rng.uniform(1.3, 2.1) * (time - start))
    raised, forearm = rng.uniform(1.8, 2.3), rng.uniform(0.35, 0.6)
    target: dict[str, Float64 | float] = {"arm": 0.15, "elbow": 0.1}
    target |= {"arm_out": raised + 0.12 * swing, "elbow_out": 0.55 + forearm * swing}
    first = SIDES[rng.integers(2)]
    for side in SIDES if both else (first,):
        for name, value in target.items():
            pose[f"{side}_{name}"] += weight * (value - pose[f"{side}_{name}"])
    pose["lean"] += 0.05 * weight * swing


def _jump(pose: Pose, time: Float64, start: float, end: float, rng: np.random.Generator) -> None:
    """Jump again and again: crouch, fly, land; some people jump with arms and legs apart."""
    # When the person crouches and flies.
    jumps = max(1, round((end - start) / rng.uniform(0.8, 1.1)))
    phase = np.clip((time - start) / (end - start), 0, 1 - 1e-9) * jumps % 1
    active = ((time > start) & (time < end)).astype(np.float64)
    crouch = active * (inside(phase, 0.0, 0.4, 0.18) + 0.7 * inside(phase, 0.72, 1.0, 0.12))
    flight = np.clip((phase - 0.33) / 0.42, 0, 1)
    # What that does to the body.
    pose["lift"] += active * rng.uniform(0.13, 0.2) * 4 * flight * (1 - flight)
    pose["bend"] += 0.45 * crouch
    apart = rng.random() < 0.5
    air = active * inside(phase, 0.25, 0.85, 0.25)
    for side in SIDES:
        pose[f"{side}_leg"] += 0.75 * crouch
        pose[f"{side}_knee"] += 1.45 * crouch
        if apart:
            pose[f"{side}_arm_out"] += 2.2 * air
            pose[f"{side}_leg_out"] += 0.3 * air
        else:
            pose[f"{side}_arm"] += 2.4 * air - 0.7 * crouch


def _sit(pose: Pose, time: Float64, start: float, end: float, rng: np.random.Generator) -> None:
    """Sit down on a stool, stay, and stand up again."""
    # When the person is seated, and when on the way down or up.
    down, up = (min(longest, 0.4 * (end - start)) for longest in (1.1, 1.0))
    seated = ramp(time, start, start + down) - ramp(time, end - up, end)
    moving = inside(time, start, start + 1.3 * down, down / 2)
    moving += inside(time, end - 1.3 * up, end, up / 2)
    # What that does to the body.
    pose["shift"] -= _SEAT_BEHIND * seated
    pose["bend"] += 0.1 * seated + 0.5 * moving
    for side in SIDES:
        pose[f"{side}_leg"] += seated * (1.45 - pose[f"{side}_leg"])
        pose[f"{side}_knee"] += seated * (1.45 - pose[f"{side}_knee"])
        pose[f"{side}_arm"] += 0.45 * seated + 0.4 * moving
        pose[f"{side}_elbow"] += 0.7 * seated
    aside = rng.choice((-1, 1)) * rng.uniform(0.7, 1.2)
    turned = ramp(time, start, start + 0.5 * down) * (1 - ramp(time, end - 0.5 * up, end))
    pose["turn"] += turned * (aside - pose["turn"])


def _fall(pose: Pose, time: Float64, start: float, end: float, rng: np.random.Generator) -> None:
    """Lose balance, topple, lie on the ground, and get up by way of a crouch."""
    # When the person falls, lies and rises.
    length = end - start
    down, up = min(rng.uniform(0.7, 1.0), 0.4 * length), min(rng.uniform(1.2, 1.7), 0.45 * length)
    fallen = np.clip((time - start) / down, 0, 1) ** 2.2
    risen = ramp(time, end - up, end)
    lying = ramp(time, start + 0.4 * down, start + down) * (1 - risen)
    # Towards the middle of the scene.
    middle = float(np.interp(start, time, pose["place"]))
    side = -np.sign(middle) if abs(middle) > 0.15 else rng.choice((-1, 1))
    pose["topple"] += side * 1.5 * fallen * (1 - ramp(time, end - up, end - 0.3 * up))
    flail = inside(time, start, start + down * 1.3, 0.3 * down)
    crouch = inside(time, end - up, end, 0.45 * up)
    # Arms and legs flail, sprawl and crouch.
    sprawl = rng.uniform(0.2, 0.8, 2)
    lower = 0 if side > 0 else 1  # the arm that is under the body on the ground
    for place, name in enumerate(SIDES):
        pose[f"{name}_arm_out"] += 1.3 * flail * (1 - lying)
        pose[f"{name}_arm_out"] += (-0.1 if place == lower else sprawl[place]) * lying
        pose[f"{name}_arm"] += 0.7 * flail + 0.6 * crouch + (0.9 if place == lower else 0.2) * lying
        pose[f"{name}_leg"] += 0.3 * flail + 0.5 * sprawl[place] * lying + 1.2 * crouch
        pose[f"{name}_knee"] += 0.6 * flail + sprawl[place] * lying + 2.0 * crouch
    pose["bend"] += 0.7 * crouch + 0.15 * lying


def _walk(
    pose: Pose, time: Float64, start: float, end: float, rng: np.random.Generator, reach: float
) -> None:
    """Walk to and fro; the person stays where the walk ends."""
    # The distance walked.
    step = float(time[1] - time[0]) if len(time) > 1 else 1.0
    speed = _WALKING_SPEED * rng.uniform(0.85, 1.2) * inside(time, start, end, 0.3)
    walked = np.cumsum(speed) * step
    origin = float(pose["place"][-1])
    heading = -np.sign(origin) if abs(origin) > 0.3 * reach else rng.choice((-1.0, 1.0))
    # Folding it into [-reach, reach] makes the turns.
    wave = (origin * heading + walked + reach) % (4 * reach)
    place = heading * (np.where(wave < 2 * reach, wave, 4 * reach - wave) - reach)
    direction = heading * np.where(wave < 2 * reach, 1.0, -1.0)
    # Turning round takes 0.4 seconds.
    width = max(1, round(0.4 / step))
    direction = np.convolve(np.pad(direction, width, mode="edge"), np.ones(width) / width, "same")
    direction = direction[width:-width]
    weight = inside(time, start, end, 0.4)
    pose["place"] += np.where(time < start, 0, place - origin)
    pose["turn"] += weight * (1.3 * direction - pose["turn"])
    # Legs and arms swing in turn.
    phase = 2 * np.pi * walked / 0.62
    for sign, side in ((1, "left"), (-1, "right")):
        swing = sign * np.sin(phase)
        pose[f"{side}_leg"] += weight * 0.5 * swing
        pose[f"{side}_knee"] += weight * (0.15 + 0.75 * np.clip(sign * np.cos(phase), 0, 1))
        pose[f"{side}_arm"] -= weight * 0.55 * swing
        pose[f"{side}_elbow"] += weight * 0.35
    pose["bend"] += 0.06 * weight


def person_pose(plan: VideoPlan, time: Float64, rng: np.random.Generator, reach: float) -> Pose:
    """Return the pose of the person in all frames of a video: idle, and the actions of its plan.

    `time` holds the (F,) times of the frames in seconds; `reach` is how far the person goes to
    either side of the middle, in body heights.
    """
    pose = _idle_pose(time, rng)
    pose["place"] += rng.uniform(-0.6, 0.6) * reach
    add: dict[str, Callable[..., None]]
    add = {"wave": _wave, "jump": _jump, "sit": _sit, "fall": _fall}
    add["walk"] = partial(_walk, reach=reach)
    for action in plan.actions:
        add[action.kind](pose, time, action.start, action.end, rng)
    return pose


def _limb(flex: Float64, out: Float64, side: int) -> Float64:
    """Return (F, 3) the direction of a limb that hangs down at 0, swung forward and outward."""
    x, y, z = side * np.sin(out), -np.cos(out) * np.cos(flex), np.cos(out) * np.sin(flex)
    return np.stack([x, y, z], axis=1)


def joints(pose: Pose) -> dict[str, Float64]:
    """Return where the joints are on the image, (F, 2) each: x right, y down, in body heights.

    The origin is on the ground at `place` 0. An orthographic camera looks down by `_ELEVATION`.
    The lowest of the `BEARING` joints touches the ground, except for `lift`.
    """
    # The trunk.
    bend, lean = pose["bend"], pose["lean"]
    zero = np.zeros_like(bend)
    up = np.stack([np.sin(lean), np.cos(lean) * np.cos(bend), np.cos(lean) * np.sin(bend)], axis=1)
    across = np.stack([np.cos(lean), -np.sin(lean), zero], axis=1)
    hips = np.stack([zero, zero, pose["shift"]], axis=1)
    neck = hips + 0.31 * up
    at = {"hips": hips, "neck": neck}
    at["head"] = neck + 0.105 * up + np.stack([0.03 * pose["nod"], zero, zero + 0.012], axis=1)
    # Arms and legs.
    for sign, side in ((1, "left"), (-1, "right")):
        arm, arm_out = pose[f"{side}_arm"], pose[f"{side}_arm_out"]
        shoulder = neck - 0.035 * up + sign * 0.099 * across
        elbow = shoulder + 0.165 * _limb(arm, arm_out, sign)
        bent = _limb(arm + pose[f"{side}_elbow"], arm_out + pose[f"{side}_elbow_out"], sign)
        at |= {f"{side}_shoulder": shoulder, f"{side}_elbow": elbow}
        at |= {f"{side}_wrist": elbow + 0.15 * bent, f"{side}_hand": elbow + 0.18 * bent}
        leg, leg_out = pose[f"{side}_leg"], pose[f"{side}_leg_out"]
        hip = hips + sign * 0.06 * across
        knee = hip + 0.25 * _limb(leg, leg_out, sign)
        ankle = knee + 0.235 * _limb(leg - pose[f"{side}_knee"], 0.5 * leg_out, sign)
        toe = ankle + np.array([0.02 * sign, -0.025, 0.085])
        at |= {f"{side}_hip": hip, f"{side}_knee": knee, f"{side}_ankle": ankle, f"{side}_toe": toe}
    # Turn the body, put it on the ground and project it.
    xyz = np.stack(list(at.values()), axis=1)  # (F, J, 3)
    xyz = _rotate(_rotate(xyz, pose["turn"], 0, 2), pose["topple"], 0, 1)
    bearing = [k for k, name in enumerate(at) if name.split("_")[-1] in BEARING]
    xyz[..., 1] += (pose["lift"] - (xyz[:, bearing, 1] - 0.028).min(axis=1))[:, None]
    x = xyz[..., 0] + pose["place"][:, None]
    y = -np.cos(_ELEVATION) * xyz[..., 1] + np.sin(_ELEVATION) * xyz[..., 2]
    return {name: np.stack([x[:, k], y[:, k]], axis=1) for k, name in enumerate(at)}


def _rotate(xyz: Float64, angle: Float64, first: int, second: int) -> Float64:
    """Turn (F, J, 3) points by (F,) angles from axis `second` towards axis `first`."""
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    turned = xyz.copy()
    turned[..., first] = cos * xyz[..., first] + sin * xyz[..., second]
    turned[..., second] = cos * xyz[..., second] - sin * xyz[..., first]
    return turned
