"""From a memory budget to the execution, the pieces and the keep ratio of a training step.

The budget is of all that training adds to a process: weights, gradients, Adam's two moments, the
images of the longest video, tensors saved for backward, and the temporaries of a layer. The
closed form gives the first guess; a whole step on the `meta` device decides, where tensors have
sizes and no memory.
"""

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import nn

from actionspan.memory.encoding import Frames
from actionspan.memory.probe import Head, Probe, probe
from actionspan.memory.rehearsal import Choice, Rehearsal
from actionspan.memory.sampling import BY_GRADIENT, Sampler, kept_count
from actionspan.memory.ways import Execution, Way, make_way

Ratio = float | Sequence[float]

_MOST_ROWS = 16
"""The longest piece: longer ones are no faster."""
MEGABYTE = 2**20

_GROWING = ("sbp", "frame_dropout", "bank")  # their saved bytes grow with the kept rows
_SAMPLED = (*_GROWING, "sbp_checkpoint")


@dataclass(frozen=True, kw_only=True)
class MemoryPlan:
    """How a training step stays within a budget, and the figures behind it, in bytes."""

    way: Way
    execution: Execution
    piece: int
    """Rows that are run at once where a way works in pieces."""
    keep_ratio: float | tuple[float, ...]
    kept: int
    """Rows of the longest video with a kept backward path, k."""
    longest: int
    """Rows of the longest video, T."""
    expected_bytes: int
    """The most that training adds to the process."""
    budget_bytes: int
    row_bytes: int
    """Saved for backward of a row, a."""
    head_bytes: int
    """Saved in the head for the longest video, M_c."""
    weight_bytes: int
    """Weights, gradients and the two moments of Adam."""
    picture_bytes: int
    bank_bytes: int
    """Features that a bank keeps between steps."""
    transient_bytes: int
    """The most that one operator reads and makes of a piece."""
    step_bytes: int
    """The most that tensors of the step took at one time on `meta`."""

    def to_json(self) -> str:
        """Return the plan as JSON, a key a field."""
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"


def plan_memory(
    encoder: nn.Module,
    head: Head,
    frames_like: Frames,
    budget_mb: float,
    keep_ratio: Ratio | None = 0.25,
    *,
    way: Way = "sbp",
    execution: Literal["auto", "split", "replay"] = "auto",
    sampler: Sampler = "uniform_random",
    videos: int = 1,
) -> MemoryPlan:
    """Choose how to train within a budget.

    Args:
        encoder: From n rows to their features.
        head: From features (T, C) to the loss. A module's weights count; the weights of
            a function do not, as they cannot be seen.
        frames_like: The longest video, or its like on `meta`. It takes `nbytes`, or a byte for each
            number of its rows where it has no such attribute.
        budget_mb: For all that training adds to the process, in MB of 2**20 bytes.
        keep_ratio: Part of the rows that keep their backward path; None: the most that fit.
        way: Of training, as for `make_way`.
        execution: Of `sbp`. `auto`: split where it fits, else replay in pieces.
        sampler: Of the kept rows.
        videos: Number of videos in a bank.

    Returns:
        The plan; the same for the same arguments.

    Raises:
        ValueError: An argument is not allowed, or the budget is too small: the line names the least
            that would do.
    """
    # 1. check the arguments
    if way not in get_args(Way):
        raise ValueError(f"way is {way!r}; it must be one of {', '.join(get_args(Way))}")
    if execution not in ("auto", *get_args(Execution)):
        raise ValueError(f"execution is {execution!r}; it must be one of auto, split, replay")
    if not (math.isfinite(budget_mb) and budget_mb > 0):
        raise ValueError(f"memory budget is {budget_mb} MB; it must be above 0")
    if videos < 1:
        raise ValueError(f"videos is {videos}; it must be at least 1")
    if isinstance(keep_ratio, str | torch.Tensor):
        raise ValueError(f"keep_ratio is {keep_ratio!r}; it must be a number, a list or None")
    if not len(frames_like):
        raise ValueError("the longest video has 0 rows; it must have at least 1")
    devices = {tensor.device for tensor in (*encoder.parameters(), *encoder.buffers())}
    indices = [device.index for device in devices if device.type == "cuda"]
    with torch.random.fork_rng(devices=indices):  # a head that is a function may draw
        if keep_ratio is not None and way in _SAMPLED:
            make_way(way, encoder, keep_ratio)  # refused before anything is run
        # 2. probe the encoder, the head and the video
        probed = probe(encoder, head, frames_like)
        bank = videos * probed.longest * probed.feature_bytes if way == "bank" else 0
        rehearsal = Rehearsal(
            encoder, head, frames_like, probed, way=way, sampler=sampler, kept_bytes=bank
        )
        budget = int(budget_mb * MEGABYTE)
        # 3. choose the best option that fits
        if execution == "auto" and sampler in BY_GRADIENT:
            execution = "replay"
        free = budget - rehearsal.standing_bytes
        options = _options(probed, free, keep_ratio, way, execution)
        # an argument that is not allowed is refused before anything is run
        first = options[0].at(1)
        make_way(way, encoder, first.keep_ratio, sampler=sampler, execution=first.execution)
        choice = next(filter(None, (option.choose(rehearsal, budget) for option in options)), None)
        if choice is None:
            least = min(rehearsal.expected_bytes(option.at(1)) for option in options)
            raise ValueError(
                f"memory budget {budget_mb:g} MB: way {way} needs at least "
                f"{math.ceil(least / MEGABYTE)} MB for {probed.longest} rows"
            )
        # 4. write the plan
        ratio = choice.keep_ratio
        kept = kept_count(probed.longest, ratio if isinstance(ratio, float) else ratio[-1])
        return MemoryPlan(
            way=way,
            execution=choice.execution,
            piece=choice.piece,
            keep_ratio=ratio,
            kept=0 if way == "frozen" else kept,
            longest=probed.longest,
            expected_bytes=rehearsal.expected_bytes(choice),
            budget_bytes=budget,
            row_bytes=probed.row_bytes,
            head_bytes=probed.head_bytes,
            weight_bytes=rehearsal.weight_bytes,
            picture_bytes=probed.picture_bytes,
            bank_bytes=bank,
            transient_bytes=choice.piece * probed.transient_bytes,
            step_bytes=rehearsal.step_bytes(choice),
        )


@dataclass(frozen=True)
class _Option:
    """A way to make a step smaller: `at(n)` is its setting n = 1 … `most`, larger with n."""

    at: Callable[[int], Choice]
    most: int
    guess: int = 1
    """The setting that the closed form gives."""

    def choose(self, rehearsal: Rehearsal, budget: int) -> Choice | None:
        """Return the largest setting that fits, if any does; start at the guess."""

        def fits(setting: int) -> bool:
            return rehearsal.expected_bytes(self.at(setting)) <= budget

        low, high = 0, self.most  # 0 fits
        if fits(high):
            return self.at(high)
        for middle in (self.guess, self.guess + 1):
            if low < middle < high:
                low, high = (middle, high) if fits(middle) else (low, middle)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return self.at(low) if low else None


def _options(
    probed: Probe, free: int, keep_ratio: Ratio | None, way: Way, execution: str
) -> list[_Option]:
    """Return the options to try, the best first.

    `free` are the bytes of the budget for a step, `execution` may be `auto`.
    """
    rows = probed.longest
    room = free - probed.head_bytes - probed.fixed_bytes - probed.transient_bytes
    k_max = max(1, min(room // max(1, probed.row_bytes), rows))
    grows = way in _GROWING and not (way == "sbp" and execution == "replay")
    if grows and keep_ratio is None:

        def most_kept(kept: int) -> Choice:
            return Choice("split", kept / rows, min(kept, _MOST_ROWS))

        return [_Option(most_kept, rows, k_max)]
    ratio: float | tuple[float, ...] = 1.0  # where memory does not depend on it, all rows are kept
    if keep_ratio is not None and way in _SAMPLED:
        ratio = tuple(keep_ratio) if isinstance(keep_ratio, Sequence) else float(keep_ratio)
    kept = kept_count(rows, ratio if isinstance(ratio, float) else ratio[-1])
    longest = min(rows if way == "frozen" else kept, _MOST_ROWS)
    whole = _Option(lambda _: Choice("split", ratio, longest), 1)
    pieces = _Option(lambda piece: Choice("replay", ratio, piece), longest, k_max)
    if way == "sbp":
        return {"auto": [whole, pieces], "split": [whole], "replay": [pieces]}[execution]
    return [whole] if grows or way == "full" else [pieces]
