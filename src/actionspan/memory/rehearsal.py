"""A whole training step on the `meta` device, to know its memory before it is run.

It is run for the videos that need the most of all up to the longest one, and of these for a few of
their rows. Pieces are balanced: 17 rows in pieces of at most 16 are 9 and 8, and 16 rows are one
piece, so a shorter video may need more than the longest. The most memory is needed by either the
pieces of the longest video, or as many full ones as a video up to that length can have.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import nn

from actionspan.memory.counting import AllocatedBytes
from actionspan.memory.encoding import Frames
from actionspan.memory.probe import Head, Probe, light_copies, light_frames, modules_of, scalar
from actionspan.memory.sampling import BY_GRADIENT, BY_MAGNITUDE, Sampler, kept_count
from actionspan.memory.ways import Execution, Way, make_way

_PIECES = 3  # of a kind; more of them need no more memory
Ratio = float | tuple[float, ...]


class Choice(NamedTuple):
    """How a step is run."""

    execution: Execution
    keep_ratio: Ratio
    piece: int


class Video(NamedTuple):
    """The length of a video, and how a step is run with it."""

    way: Way
    rows: int
    keep_ratio: Ratio


def _worst_videos(way: Way, choice: Choice, longest: int, *, by_feature: bool) -> list[Video]:
    """Return videos of which one needs the most of all videos of 1 to `longest` rows.

    They may have fewer rows than the longest: of many pieces that need the same, a few suffice.

    `by_feature` is true if all rows are run to draw by their features.
    """
    execution, ratio, piece = choice
    replays = way == "sbp" and execution == "replay"  # all rows are run first
    again = replays or way == "sbp_checkpoint"  # kept rows are run in pieces too
    videos: list[tuple[int, Ratio]] = []
    if way in ("full", "frame_dropout"):
        videos = [(longest, ratio)]
    elif way in ("checkpoint", "frozen"):
        videos = [(part(longest, piece), 1.0) for part in (_few, _full)]
    elif isinstance(ratio, tuple):
        counts = [kept_count(longest, each) for each in ratio]
        make = partial(_nested_again, replays) if again else _nested_split
        videos = [(longest, ratio), *make(counts, piece, longest)]
    else:
        kept = kept_count(longest, ratio)
        for part in (_few, _full):
            run = part(kept, piece) if again else kept
            rows = part(longest, piece) if replays else run + part(longest - kept, piece)
            videos.append((rows, run / rows))
    worst = [Video(way, *video) for video in videos]
    if by_feature and not again and way in ("sbp", "bank"):
        worst.append(Video("frozen", _full(longest, piece), 1.0))
    return list(dict.fromkeys(worst))


def _few(rows: int, piece: int) -> int:
    """Return the number of rows after which more of them need no more memory."""
    return min(rows, _PIECES * piece)


def _full(rows: int, piece: int) -> int:
    """Return rows, up to these, that are in full pieces; all where there are fewer than a piece."""
    return min(rows // piece, _PIECES) * piece or rows


def _nested_split(kept: list[int], piece: int, longest: int) -> Iterator[tuple[int, Ratio]]:
    """Yield a video with its rows without a graph in full pieces, in each part of the encoder."""
    counts = kept[:1]
    for below, here in zip(kept, [*kept[1:], longest], strict=True):
        dropped = here - below
        counts.append(counts[-1] + (-(-dropped // piece) * piece if dropped > piece else dropped))
    yield counts[-1], tuple(each / counts[-1] for each in counts[:-1])


def _nested_again(
    replays: bool, kept: list[int], piece: int, longest: int
) -> Iterator[tuple[int, Ratio]]:
    """Yield videos with the most rows with a graph in the pieces of lower parts that chance allows.

    Where only some rows have a graph, they are joined with the others, which takes copies.
    """
    *lower, top = kept
    pieces = -(-top // piece)
    balanced = min(pieces, _PIECES), -(-top // pieces)
    full = min(top // piece, _PIECES), piece
    for number, size in (balanced, full):
        if not number:
            continue
        run = number * size
        rows = max(run, _full(longest, piece)) if replays else run + _full(longest - top, piece)
        for most in (size, size - 1, 1):
            counts = [number * max(1, min(most, each)) for each in lower]
            yield rows, tuple(each / rows for each in (*counts, run))


_TOGETHER = 4  # copies of all features beyond two, while they are joined
_DRAWN = 64  # bytes of a row: its number, its weight, and copies of these

# The memory of a process beyond its tensors. Measured on x86-64 with glibc and one thread as growth
# of peak resident memory over four steps, with and without `keep_freed_memory`: EfficientNet-Lite0
# (100 rows of 112 pixels), ResNet-18 (60 of 112) and ResNet-50 (16 and 32 of 224), all ways. It was
# 0.76 to 1.08 times the bytes expected with these.
_SPREAD = 1.15  # holes between the blocks of the allocator
_LIBRARIES = 48 * 2**20  # kernels made for shapes, and buffers of libraries


class Rehearsal:
    """Steps of one way of training, each rehearsed once.

    Their bytes are for all videos up to the longest: a shorter one may have longer pieces.

    `found` is the probe of these, `kept_bytes` are kept between steps by the way; for the other
    arguments see `plan_memory`.
    """

    def __init__(
        self,
        encoder: nn.Module,
        head: Head,
        frames: Frames,
        found: Probe,
        *,
        way: Way,
        sampler: Sampler,
        kept_bytes: int = 0,
    ) -> None:
        self._encoder, self._head = light_copies(encoder, head)
        self._frames, self._found = frames, found
        self._way, self._sampler = way, sampler
        self._steps: dict[Choice, tuple[int, int]] = {}
        trained = found.trained_head_bytes if way == "frozen" else found.trained_bytes
        self.weight_bytes = found.value_bytes + 3 * trained
        self.standing_bytes = self.weight_bytes + found.picture_bytes + kept_bytes

    def expected_bytes(self, choice: Choice) -> int:
        """Return the most that training adds to a process."""
        _, step = self._peaks(choice)
        spread = int(_SPREAD * (self.weight_bytes + step))
        return spread + self.standing_bytes - self.weight_bytes + _LIBRARIES

    def step_bytes(self, choice: Choice) -> int:
        """Return the most bytes of tensors that a step makes and that are alive at one time."""
        return self._peaks(choice)[0]

    def _peaks(self, choice: Choice) -> tuple[int, int]:
        """Return the most bytes at one time, without and with the copies of libraries."""
        if choice not in self._steps:
            by_feature = self._sampler in BY_MAGNITUDE and self._sampler not in BY_GRADIENT
            cases = _worst_videos(self._way, choice, len(self._frames), by_feature=by_feature)
            counts = [self._run(case, choice) for case in cases]
            peaks = max(count.peak for count in counts)
            self._steps[choice] = peaks, max(count.peak_with_copies for count in counts)
        return self._steps[choice]

    def _run(self, case: Video, choice: Choice) -> AllocatedBytes:
        """Run the encoder on a shorter video, and the head on as many rows as the longest has."""
        module = make_way(
            # A bank's first step runs all rows; its copy of the features stays on the host.
            "sbp" if case.way == "bank" else case.way,
            self._encoder,
            case.keep_ratio,
            sampler=self._sampler,
            execution=choice.execution,
            piece=choice.piece,
        )
        for part in modules_of(module, self._head):
            for parameter in part.parameters():
                # the gradient's bytes stand already: a step may have several videos
                parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
        rows = len(self._frames)
        frames = light_frames(self._frames, case.rows)
        generator = torch.Generator().manual_seed(0)
        missing = max(0, rows - case.rows)
        counted = AllocatedBytes()
        with torch.random.fork_rng(devices=[]), torch.enable_grad(), counted:
            # the features and draws of the rows that are not run
            size = missing * (self._found.feature_bytes + _DRAWN)
            held = torch.empty(size, dtype=torch.uint8, device="meta")
            features = module(frames, generator=generator, key="")
            if missing:
                whole = features.new_empty((_TOGETHER * rows, *features.shape[1:]))
                features = whole[:rows].index_copy(0, torch.arange(case.rows).to("meta"), features)
                del whole
            loss = scalar(self._head, features[:rows])
            if loss.requires_grad:
                torch.autograd.backward((loss,))
            del held
        return counted
