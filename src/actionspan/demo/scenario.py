"""What happens in each video of the embedded data set, before anything is drawn.

A plan is a pure function of (seed, index): a video's plan does not depend on how many others there
are.

The kinds of videos follow from the index alone, so that every seed has all of them: some hold no
action, some hold one that fills them, a tenth is MPEG-4 in AVI and a tenth H.264 in Matroska.
"""

import math
import random
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from actionspan.demo.names import demo_video_name
from actionspan.settings import Checked, option

Label = Literal["fall", "jump", "sit", "walk", "wave"]
LABELS: tuple[Label, ...] = ("fall", "jump", "sit", "walk", "wave")
SHORTEST: dict[Label, float] = {"fall": 2.0, "jump": 1.02, "sit": 2.0, "walk": 1.5, "wave": 1.02}
LONGEST: dict[Label, float] = {"fall": 9.0, "jump": 12.0, "sit": 24.0, "walk": 24.0, "wave": 24.0}
LARGEST_FRACTION = 0.4
"""An instance takes at most this part of a video, unless it fills the video."""

SIZES = ((320, 240), (320, 240), (340, 256), (256, 340))
RATES = (
    Fraction(20),
    Fraction(24),
    Fraction(25),
    Fraction(25),
    Fraction(30000, 1001),
    Fraction(30),
)
SCENES = ("room", "street", "park", "hall")
DISTRACTORS = ("pan", "object", "object", "flicker", "light", "zoom")


@dataclass(frozen=True, kw_only=True)
class DemoSettings(Checked):
    """The size and the seed of the embedded data set."""

    videos: int = option(60, "how many videos", least=1)
    seed: int = option(1, "seed of everything random; the same seed gives the same files", least=0)
    shortest_seconds: float = option(20.0, "shortest video", least=5)
    longest_seconds: float = option(60.0, "longest video", least=5)
    validation_fraction: float = option(
        1 / 3, "part of the videos held out for validation", least=0, most=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.longest_seconds < self.shortest_seconds:
            raise ValueError(
                f"longest_seconds {self.longest_seconds}: at least shortest_seconds, "
                f"{self.shortest_seconds}"
            )


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happens between two times in seconds: an action or a distractor."""

    kind: str
    start: float
    end: float


@dataclass(frozen=True, kw_only=True)
class Shot:
    """One take: from `start` seconds to the next shot, before one background."""

    start: float
    scene: str


@dataclass(frozen=True, kw_only=True)
class VideoPlan:
    """The script of one video: its file, its actions, and what distracts from them."""

    index: int
    seed: int
    name: str
    subset: str
    width: int
    height: int
    fps: Fraction
    frames: int
    codec: str
    actions: tuple[Event, ...]
    distractors: tuple[Event, ...]
    shots: tuple[Shot, ...]

    @property
    def duration_seconds(self) -> float:
        """The exact duration: frames over frames a second."""
        return float(self.frames / self.fps)


def is_validation(index: int, fraction: float) -> bool:
    """Say whether a video is held out, so that any first n videos hold out about n·fraction."""
    return math.floor((index + 1) * fraction + 0.5) > math.floor(index * fraction + 0.5)


def plan_video(settings: DemoSettings, index: int) -> VideoPlan:
    """Write the script of one video; it depends on the seed, the index and the durations alone."""
    name = demo_video_name(index)
    rng = random.Random(f"actionspan demo {settings.seed} {index}")
    width, height = rng.choice(SIZES)
    fps = rng.choice(RATES)
    frames = round(rng.uniform(settings.shortest_seconds, settings.longest_seconds) * fps)
    duration = float(frames / fps)
    if index % 11 == 5:
        actions: tuple[Event, ...] = ()
    elif index % 13 == 6:
        actions = (_filling_action(rng, index, duration),)
    else:
        actions = _actions(rng, LABELS[index % 5], duration)
    return VideoPlan(
        index=index,
        seed=settings.seed,
        name=name,
        subset="validation" if is_validation(index, settings.validation_fraction) else "training",
        width=width,
        height=height,
        fps=fps,
        frames=frames,
        codec="mpeg4" if name.endswith(".avi") else "libx264",
        actions=actions,
        distractors=_distractors(rng, actions, duration),
        shots=_shots(rng, actions, duration),
    )


def _filling_action(rng: random.Random, index: int, duration: float) -> Event:
    """Plan one action from the first moments of a video to its last."""
    start = round(duration * rng.uniform(0.0, 0.02), 2)
    end = round(duration * rng.uniform(0.98, 0.999), 2)
    return Event(kind=("walk", "wave", "jump")[index // 13 % 3], start=start, end=end)


def _actions(rng: random.Random, first: Label, duration: float) -> tuple[Event, ...]:
    """Plan one to five actions of log-uniform length with at least half a second between them."""
    count = rng.choice((1, 2, 2, 3, 3, 4, 5))
    possible = [label for label in LABELS if SHORTEST[label] <= LARGEST_FRACTION * duration]
    lengths: list[float] = []
    while True:
        labels = [first, *rng.choices(possible, k=count - 1)]
        rng.shuffle(labels)
        lengths = []
        for label in labels:
            longest = min(LONGEST[label], LARGEST_FRACTION * duration)
            lengths.append(math.exp(rng.uniform(math.log(SHORTEST[label]), math.log(longest))))
        if sum(lengths) <= 0.6 * duration:
            break
        count = max(1, count - rng.choice((0, 1)))
    idle = duration - sum(lengths) - 0.5 * (count + 1)
    cuts = sorted(rng.uniform(0, idle) for _ in range(count))
    events, spent = [], 0.0
    for place, (label, cut, length) in enumerate(zip(labels, cuts, lengths, strict=True)):
        start = cut + 0.5 * (place + 1) + spent
        spent += length
        # Rounded inward, so that a length stays below its bound.
        start, end = math.ceil(start * 100) / 100, math.floor((start + length) * 100) / 100
        events.append(Event(kind=label, start=start, end=end))
    return tuple(events)


def _distractors(
    rng: random.Random, actions: tuple[Event, ...], duration: float
) -> tuple[Event, ...]:
    """Plan what moves and is no action: mostly while nobody acts, sometimes while somebody does."""
    events = []
    for _ in range(round(duration / 2.6)):
        length = rng.uniform(1.2, 5.0)
        start = rng.uniform(-1.0, duration - 1.0)
        middle = start + length / 2
        busy = any(action.start - 0.3 < middle < action.end + 0.3 for action in actions)
        if rng.random() < (0.3 if busy else 1.0):
            events.append(Event(kind=rng.choice(DISTRACTORS), start=start, end=start + length))
    return tuple(sorted(events, key=lambda event: event.start))


def _shots(rng: random.Random, actions: tuple[Event, ...], duration: float) -> tuple[Shot, ...]:
    """Plan the cuts: none to three, none of them within 0.7 s of an action's start or end."""
    scenes = rng.sample(SCENES, k=len(SCENES))
    edges = [edge for action in actions for edge in (action.start, action.end)]
    cuts: list[float] = []
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        cut = round(rng.uniform(2.0, duration - 2.0), 2)
        if all(abs(cut - edge) > 0.7 for edge in edges) and all(abs(cut - c) > 2 for c in cuts):
            cuts.append(cut)
    starts = [0.0, *sorted(cuts)]
    return tuple(
        Shot(start=start, scene=scene) for start, scene in zip(starts, scenes, strict=False)
    )
