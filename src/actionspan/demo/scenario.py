"""What happens in each video of the embedded data set, before anything is drawn.

A plan is a pure function of the settings and the index: it does not depend on the number of videos.
The kinds of videos follow from the index alone, so that every seed has all of them: some hold no
action, some hold one that fills them, a tenth is MPEG-4 in AVI and a tenth H.264 in Matroska.
"""

import math
import random
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

from actionspan.settings import Checked, option

Label = Literal["fall", "jump", "sit", "walk", "wave"]
LABELS: tuple[Label, ...] = ("fall", "jump", "sit", "walk", "wave")
_SHORTEST: dict[Label, float] = {"fall": 2.0, "jump": 1.02, "sit": 2.0, "walk": 1.5, "wave": 1.02}
_LONGEST: dict[Label, float] = {"fall": 9.0, "jump": 12.0, "sit": 24.0, "walk": 24.0, "wave": 24.0}
LARGEST_FRACTION = 0.4  # of a video, for an instance that does not fill the video

_SIZES = ((320, 240), (320, 240), (340, 256), (256, 340))
_RATES = tuple(Fraction(rate) for rate in ("20", "24", "25", "25", "30000/1001", "30"))
_SCENES = ("room", "street", "park", "hall")
_DISTRACTORS = ("pan", "object", "object", "flicker", "light", "zoom")


@dataclass(frozen=True, kw_only=True)
class DemoSettings(Checked):
    """The size and the seed of the embedded data set."""

    videos: int = option(36, "how many videos", least=1, most=10_000)
    seed: int = option(1, "seed of everything random; the same seed gives the same files", least=0)
    shortest_seconds: float = option(20.0, "shortest video", least=5)
    longest_seconds: float = option(30.0, "longest video", least=5)
    validation_fraction: float = option(
        1 / 3, "part of the videos held out for validation", least=0, most=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.longest_seconds < self.shortest_seconds:
            least = f"at least shortest_seconds, {self.shortest_seconds}"
            raise ValueError(f"longest_seconds {self.longest_seconds}: {least}")


class Event(NamedTuple):
    """Something that happens between two times in seconds: an action or a distractor."""

    kind: str
    start: float
    end: float


class Shot(NamedTuple):
    """A take from `start` seconds to the next shot, in front of one background."""

    start: float
    scene: str


@dataclass(frozen=True, kw_only=True)
class VideoPlan:
    """The plan of one video: its file, its actions, and what distracts from them."""

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
    """Return whether a video is held out; of the first n videos, about n·fraction are."""
    return math.floor((index + 1) * fraction + 0.5) > math.floor(index * fraction + 0.5)


def plan_video(settings: DemoSettings, index: int) -> VideoPlan:
    """Plan one video; its plan depends on the seed, the index and the durations alone."""
    name = _demo_video_name(index)
    rng = random.Random(f"actionspan demo {settings.seed} {index}")
    # The image and its length.
    width, height = rng.choice(_SIZES)
    fps = rng.choice(_RATES)
    frames = round(rng.uniform(settings.shortest_seconds, settings.longest_seconds) * fps)
    duration = float(frames / fps)
    # The actions: none, one that fills the video, or some.
    if index % 11 == 5:
        actions: tuple[Event, ...] = ()
    elif index % 13 == 6:
        start = round(duration * rng.uniform(0.0, 0.02), 2)
        end = round(duration * rng.uniform(0.98, 0.999), 2)
        actions = (Event(("walk", "wave", "jump")[index // 13 % 3], start, end),)
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


def _actions(rng: random.Random, first: Label, duration: float) -> tuple[Event, ...]:
    """Plan one to five actions of log-uniform length with at least half a second between them."""
    count = rng.choice((1, 2, 2, 3, 3, 4, 5))
    most = LARGEST_FRACTION * duration
    possible = [label for label in LABELS if _SHORTEST[label] <= most]
    # Draw kinds and lengths until the actions take at most 60 % of the video.
    while True:
        labels = [first, *rng.choices(possible, k=count - 1)]
        rng.shuffle(labels)
        bounds = [(_SHORTEST[label], min(_LONGEST[label], most)) for label in labels]
        lengths = [math.exp(rng.uniform(math.log(low), math.log(high))) for low, high in bounds]
        if sum(lengths) <= 0.6 * duration:
            break
        count = max(1, count - rng.choice((0, 1)))
    # Divide the rest of the time into the gaps between them.
    idle = duration - sum(lengths) - 0.5 * (count + 1)
    cuts = sorted(rng.uniform(0, idle) for _ in range(count))
    events, spent = [], 0.0
    for place, (label, cut, length) in enumerate(zip(labels, cuts, lengths, strict=True)):
        start = cut + 0.5 * (place + 1) + spent
        spent += length
        # Rounded inward, so that a length stays below its bound.
        start, end = math.ceil(start * 100) / 100, math.floor((start + length) * 100) / 100
        events.append(Event(label, start, end))
    return tuple(events)


def _distractors(
    rng: random.Random, actions: tuple[Event, ...], duration: float
) -> tuple[Event, ...]:
    """Plan motion that is not an action, most of it while nobody acts."""
    events = []
    for _ in range(round(duration / 2.6)):
        length = rng.uniform(1.2, 5.0)
        start = rng.uniform(-1.0, duration - 1.0)
        middle = start + length / 2
        busy = any(action.start - 0.3 < middle < action.end + 0.3 for action in actions)
        if rng.random() < (0.3 if busy else 1.0):
            events.append(Event(rng.choice(_DISTRACTORS), start, start + length))
    return tuple(sorted(events, key=lambda event: event.start))


def _shots(rng: random.Random, actions: tuple[Event, ...], duration: float) -> tuple[Shot, ...]:
    """Plan zero to three cuts, each more than 0.7 s from any start or end of an action."""
    scenes = rng.sample(_SCENES, k=len(_SCENES))
    edges = [edge for action in actions for edge in (action.start, action.end)]
    cuts: list[float] = []
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        cut = round(rng.uniform(2.0, duration - 2.0), 2)
        if all(abs(cut - edge) > 0.7 for edge in edges) and all(abs(cut - c) > 2 for c in cuts):
            cuts.append(cut)
    return tuple(map(Shot, [0.0, *sorted(cuts)], scenes))


_SUFFIXES = {4: "mkv", 7: "avi"}  # by the last digit of the index; MP4 for all others


def _demo_video_name(index: int) -> str:
    """Return the file name of one video."""
    return f"demo_{index:03d}.{_SUFFIXES.get(index % 10, 'mp4')}"


def demo_video_names(videos: int) -> list[str]:
    """Return the file names of the first `videos` videos."""
    return [_demo_video_name(index) for index in range(videos)]
