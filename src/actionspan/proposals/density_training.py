"""Training of the density of instances, cross-fitted on the training videos."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, smooth_l1_loss

from actionspan import __version__
from actionspan.annotations.tables import read_annotations
from actionspan.arrays import Float32, Float64, Int64, temporal_iou
from actionspan.errors import InputError
from actionspan.jobs.determinism import deterministic
from actionspan.proposals import intensity, selection
from actionspan.proposals.intensity import DensityModel, Intensity
from actionspan.proposals.lattice import Lengths, usual_lengths
from actionspan.proposals.settings import DensitySettings, EventSettings, LatticeSettings
from actionspan.proposals.shots import share_on_cuts
from actionspan.storage.model_files import read_model, write_model
from actionspan.storage.writing import digest, open_h5
from actionspan.temporal.probabilities import read_probabilities
from actionspan.video.marks import Marks

FORMAT = "actionspan density 2"
_FEWEST = 8  # steps of a part of a video below which it is left out
_NEAR, _FAR = 0.5, 0.15  # best tIoU with an instance, of cells near and far from the truth
_SPREAD = 0.05  # of an instance over the cells that overlap it most, in tIoU
_LEAST_SHARE = 0.6  # tIoU from which a cell has a share of an instance
_MOST_LISTED = 100  # videos that decide, by their lists, whether bouts are worth it
_LEAST_AT_CUTS = 0.1  # of instances; a smaller share is at cuts by chance


@dataclass(frozen=True, kw_only=True)
class Footage:
    """A part of a training video."""

    probabilities: Float32  # (T, 3)
    seconds: float  # of a step
    instances: Float64  # (G, 2) in steps
    part: int
    marks: Marks | None = None


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Cells to learn from; each represents `weight` cells of its lattice."""

    features: Float32  # (N, F)
    tiou: Float32  # (N,) best with an instance
    instances: Float32  # (N,) share of instances that lies at the cell
    weight: Float32
    part: Int64


def train_density(
    probabilities: Path,
    annotations: Path,
    out: Path,
    settings: DensitySettings,
    grid: LatticeSettings,
    ahead: float | None = None,
    reading: EventSettings | None = None,
) -> None:
    """Train the density on the training videos' probabilities and write density.safetensors.

    For a stream, a cell is seen `ahead` steps behind its end; otherwise as far as the video goes.
    `reading` is the list of events that chances are calibrated for.

    Raises:
        InputError: A file cannot be used, it has no parts, or no training video has an instance.
    """
    videos, lengths, on_cuts, source = _read(probabilities, annotations)
    if settings.on_cuts is not None:
        on_cuts = settings.on_cuts
    with deterministic(threads=1):
        model = fit_density(videos, lengths, settings, grid, ahead, reading, on_cuts)
    further = [each for each in (ahead, reading) if each not in (None, EventSettings())]
    made_of = digest(settings, grid, source, *further)
    head = {"format": FORMAT, "actionspan_version": __version__, "digest": made_of}
    write_model(out, {**head, "density": intensity.density_state(model)})


def load_density(path: Path) -> DensityModel:
    """Read what `train_density` wrote, or raise InputError."""
    part = read_model(path)
    if "format" not in part or part["format"].value != FORMAT:
        raise InputError(f"{path}: not a density ({FORMAT!r}); `proposals density` makes one")
    return intensity.density_from_state(part["density"])


def _read(probabilities: Path, annotations: Path) -> tuple[list[Footage], Lengths, float, str]:
    """Return the annotated training videos by parts, two facts of their instances, and a digest.

    The facts are their usual lengths and, in videos with cuts, the share of instances on cuts.
    Of a video of several parts, the parts of a few steps are left out: a glimpse is not a video.
    """
    truth = {one.video_id: one for one in read_annotations(annotations)}
    with open_h5(probabilities) as file:
        table = read_probabilities(file, probabilities)
        videos, spans, at_cuts = [], [np.zeros(0)], np.zeros(2)
        for index, name in enumerate(table.video_id):
            if table.subset[index] != "training" or name not in truth:
                continue
            values, parts = table.video(index), table.video_parts(index)
            if parts is None:
                line = "only a cross-fitted model predicts its training videos like new ones"
                raise InputError(f"{probabilities}: training video {name}: no parts; {line}")
            seconds = float(table.duration_seconds[index]) / len(values)
            rows = [(one.start, one.end) for one in truth[name].instances]
            instances = np.array(rows, np.float64).reshape(-1, 2) / seconds
            spans.append(seconds * np.diff(np.clip(instances, 0, len(values)))[:, 0])
            marks, duration = table.video_marks(index), seconds * len(values)
            if marks is not None:
                at_cuts += share_on_cuts(instances * seconds, marks.cuts, duration)
            for part in np.unique(parts).tolist():
                kept = parts == part
                if not kept.all() and kept.sum() < _FEWEST:
                    continue
                own, left = values[kept], cut_instances(instances, kept)
                video = Footage(
                    probabilities=own,
                    seconds=seconds,
                    instances=left,
                    part=part,
                    marks=None if marks is None else _cut_marks(marks, kept, seconds),
                )
                videos.append(video)
        if not any(len(video.instances) for video in videos):
            raise InputError(f"{annotations}: no training video with features has an instance")
        share = at_cuts[0] / at_cuts[1] if at_cuts[1] else 0.0
        share = share if share >= _LEAST_AT_CUTS else 0.0
        return videos, usual_lengths(np.concatenate(spans)), float(share), table.digest


def fit_density(
    videos: list[Footage],
    lengths: Lengths,
    settings: DensitySettings,
    grid: LatticeSettings,
    ahead: float | None = None,
    reading: EventSettings | None = None,
    on_cuts: float = 0.0,
) -> DensityModel:
    """Fit the members, each without a part of the videos, and calibrate `reading` by all."""
    model = DensityModel(
        members=(),
        lengths=lengths,
        lattice=grid,
        calibration=selection.Calibration(),
        ahead=ahead,
        on_cuts=on_cuts,
    )
    # the members
    drawn = [_draw(video, model, settings, place) for place, video in enumerate(videos)]
    fields = {name: [getattr(one, name) for one in drawn] for name in vars(drawn[0])}
    cells = Cells(**{name: np.concatenate(arrays) for name, arrays in fields.items()})
    count = 1 + max(video.part for video in videos)
    members = [_fit_member(cells, part, count, settings) for part in range(count)]
    model = replace(model, members=members)
    per_bout = _worth_of_bouts(videos, model) if settings.per_bout is None else settings.per_bout
    model = replace(model, per_bout=per_bout)
    # events of each video by the member that left it out
    gains, right = [], []
    for video in videos:
        segments, gained = selection.distinct_events(
            *_unseen(video, model), reading or EventSettings()
        )
        gains.append(gained)
        right.append(selection.right_events(segments, video.instances * video.seconds))
    instances = sum(len(video.instances) for video in videos)
    calibration = selection.calibrate(np.concatenate(gains), np.concatenate(right), instances)
    line = f"{calibration.bar:.2f} is the least chance of an event that is shown by default"
    print(line, file=sys.stderr)
    return replace(model, calibration=calibration)


def _unseen(video: Footage, model: DensityModel) -> tuple[Float64, Float64]:
    """Return the density of a video by the member that left it out, see `density`."""
    duration = video.seconds * len(video.probabilities)
    return model.density(video.probabilities, duration, video.part, video.marks)


def _worth_of_bouts(videos: Sequence[Footage], model: DensityModel) -> float:
    """Return the share of bouts that are right, 0 where lists with bouts recall no more.

    Recall is averaged over the beginnings of each video's list, of at most `_MOST_LISTED` videos.
    """
    # 1. the bouts that are right
    bouts = [
        each.marks.moves(each.seconds * len(each.probabilities)) if each.marks else np.zeros((0, 2))
        for each in videos
    ]
    truth = [each.instances * each.seconds for each in videos]
    right = sum(selection.right_events(*each).sum() for each in zip(bouts, truth, strict=True))
    share = float(right / max(sum(map(len, bouts)), 1))
    # 2. the recall of lists without and with them
    recalled = np.zeros(2)
    for video, instances in list(zip(videos, truth, strict=True))[: _MOST_LISTED * (share > 0)]:
        for place, worth in enumerate((0.0, share)):
            cells, density = _unseen(video, replace(model, per_bout=worth))
            chosen, _ = selection.select(cells, density)
            best = np.maximum.accumulate(temporal_iou(instances, cells[chosen]), axis=1)
            reached = selection.recall_reached(best.astype(np.float32))
            recalled[place] += reached.mean(axis=1).sum()
    return share if recalled[1] > recalled[0] else 0.0


def cut_instances(instances: Float64, kept: NDArray[np.bool_]) -> Float64:
    """Return what remains of instances (G, 2) where only the steps `kept` (T,) are joined.

    An instance that is cut to less than a step is dropped.
    """
    left = np.concatenate([[0.0], np.cumsum(kept)])
    whole = np.clip(instances, 0, len(kept))
    rest: Float64 = np.interp(whole, np.arange(len(kept) + 1), left)
    length, before = np.diff(rest)[:, 0], np.diff(whole)[:, 0]
    return rest[(length >= 1) | ((length > before - 1e-9) & (length > 0))]


def cut_cuts(cuts: Float64, kept: NDArray[np.bool_], seconds: float) -> Float64:
    """Return the cuts (K, 2) of what remains, in seconds, where only the steps `kept` are joined.

    Cuts in removed steps move to the joint; of cuts less than a step apart the strongest stays.
    """
    left = np.concatenate([[0.0], np.cumsum(kept)])
    places = np.interp(cuts[:, 0] / seconds, np.arange(len(kept) + 1), left)
    own: list[tuple[float, float]] = []
    for place, strength in zip(places.tolist(), cuts[:, 1].tolist(), strict=True):
        if own and place - own[-1][0] < 1:
            own[-1] = max(own[-1], (place, strength), key=lambda cut: cut[1])
        else:
            own.append((place, strength))
    return np.array(own).reshape(-1, 2) * [seconds, 1]


def _cut_marks(marks: Marks, kept: NDArray[np.bool_], seconds: float) -> Marks:
    """Return the marks, in seconds, of what remains where only the steps `kept` are joined."""
    bouts = cut_instances(marks.bouts[:, :2] / seconds, kept) * seconds
    return Marks(cut_cuts(marks.cuts, kept, seconds), np.pad(bouts, ((0, 0), (0, 1))))


def instance_shares(overlaps: Float64) -> Float64:
    """Return how much of the instances lies at each cell, (N,), of their tIoU (N, G).

    An instance is spread over the cells that overlap it most, so that its shares add up to 1.
    """
    shares = np.where(overlaps >= _LEAST_SHARE, np.exp((overlaps - 1) / _SPREAD), 0.0)
    nearest = overlaps == overlaps.max(axis=0)
    shares = np.where((shares > 0).any(axis=0), shares, nearest)
    total: Float64 = (shares / shares.sum(axis=0)).sum(axis=1)
    return total


def _kinds(tiou: Float32 | Float64) -> list[NDArray[np.bool_]]:
    """Return which cells are near the truth, between, and far from it, by their best tIoU (N,)."""
    return [tiou > _NEAR, (tiou <= _NEAR) & (tiou > _FAR), tiou <= _FAR]


def _draw(video: Footage, model: DensityModel, settings: DensitySettings, place: int) -> Cells:
    """Draw cells of each kind, the same number of each at most."""
    generator = np.random.default_rng([settings.seed, place])
    cells, paired = model.cells(video.probabilities, video.seconds)
    features = model.features(video.probabilities, cells, paired, video.seconds)
    overlaps = temporal_iou(cells, video.instances)
    best = overlaps.max(axis=1, initial=0)
    rows, weights = [], []
    for kind in _kinds(best):
        of_kind = np.flatnonzero(kind)
        taken = generator.permutation(of_kind)[: settings.training_cells]
        rows.append(taken)
        weights.append(np.full(len(taken), len(of_kind) / max(len(taken), 1)))
    chosen = np.concatenate(rows)
    shares = instance_shares(overlaps) if len(video.instances) else np.zeros(len(cells))
    return Cells(
        features=features[chosen],
        tiou=best[chosen].astype(np.float32),
        instances=shares[chosen].astype(np.float32),
        weight=np.concatenate(weights).astype(np.float32),
        part=np.full(len(chosen), video.part),
    )


def _fit_member(cells: Cells, part: int, members: int, settings: DensitySettings) -> Intensity:
    """Train a member on the cells that are not of a part; on all where that leaves nothing."""
    kept = np.flatnonzero(cells.part != part)
    if not cells.instances[kept].any():
        kept = np.arange(len(cells.part))
    torch.manual_seed(settings.seed * members + part)
    member = Intensity(settings.hidden, settings.dropout)
    features = cells.features[kept]
    member.centre.copy_(torch.from_numpy(features.mean(axis=0)))
    member.scale.copy_(torch.from_numpy(features.std(axis=0) + np.float32(1e-3)))
    weight = cells.weight[kept]
    member.base.fill_(float((cells.instances[kept] * weight).sum() / weight.sum()) or 1e-9)
    optimiser = torch.optim.AdamW(
        member.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    generator = np.random.default_rng([settings.seed, part])
    batches = [list(_batches(cells, kept, generator, settings)) for _ in range(settings.epochs)]
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, sum(map(len, batches)))
    for rows, weights in (batch for epoch in batches for batch in epoch):
        optimiser.zero_grad()
        _loss(member, cells, rows, weights).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()
    return member.eval()


def _batches(
    cells: Cells, kept: Int64, generator: np.random.Generator, settings: DensitySettings
) -> Iterator[tuple[Int64, Float32]]:
    """Yield batches of a balanced sample, with the weights that undo the balance; mean 1."""
    kinds = _kinds(cells.tiou[kept])
    count = max(int(kinds[0].sum()), 200)
    drawn = [generator.choice(kept[kind], count) for kind in kinds if kind.any()]
    sizes = np.repeat([kind.sum() for kind in kinds if kind.any()], count)
    rows = np.concatenate(drawn)
    weights = cells.weight[rows] * sizes
    order = generator.permutation(len(rows))
    rows, weights = rows[order], (weights / weights.mean())[order].astype(np.float32)
    for first in range(0, len(rows), settings.batch_size):
        batch = slice(first, first + settings.batch_size)
        yield rows[batch], weights[batch]


def _loss(member: Intensity, cells: Cells, rows: Int64, weights: Float32) -> Tensor:
    """Return the sum of the losses of tIoU, of reach and, weighted, of the density."""
    outputs = member(torch.from_numpy(cells.features[rows]))
    tiou = torch.from_numpy(cells.tiou[rows])
    reach = torch.from_numpy(selection.recall_reached(cells.tiou[rows]))
    logarithm = outputs[:, 2].clamp(*intensity.LOG_RANGE)
    expected = torch.from_numpy(cells.instances[rows]) / member.base
    likelihood = torch.from_numpy(weights) * (logarithm.exp() - expected * logarithm)
    loss: Tensor = (
        smooth_l1_loss(outputs[:, 0].sigmoid(), tiou, beta=0.1)
        + binary_cross_entropy_with_logits(outputs[:, 1], reach)
        + 0.2 * likelihood.mean()
    )
    return loss
