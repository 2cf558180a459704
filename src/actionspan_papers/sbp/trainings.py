"""The trainings that tables 4 and 5 and figure 6 compare: how each is run, measured and compared.

Two trainings with the same seed share their first weights, their order of videos and, where they
sample, their draws; so seeds are compared in pairs. Videos are drawn once for all.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from actionspan.arrays import Float32, Float64, Int64
from actionspan.errors import InputError
from actionspan.features.settings import EncoderSettings, RescaleSettings
from actionspan.finetune.precision import mean_average_precision
from actionspan.finetune.settings import FinetuneSettings, HeadName
from actionspan.jobs.progress import progress
from actionspan.storage.writing import open_h5
from actionspan.temporal.settings import TemporalSettings
from actionspan_papers.estimates import Resampled, draw_videos
from actionspan_papers.experiments import files
from actionspan_papers.kinds import Flags
from actionspan_papers.sbp.published import FROZEN, FULL, Training
from actionspan_papers.sbp.settings import DetectionSettings, SbpSettings, TuningSettings

Key = TypeVar("Key", bound=Hashable)
Scores = TypeVar("Scores")

SNIPPETS: Mapping[str, Any] = {
    "snippets": files("stores of `finetune store`"),
    "annotations": "annotations.json",
}
"""The flags of the training data."""
SETTINGS = SbpSettings, TuningSettings, DetectionSettings


def measure(
    scored: Mapping[Key, Sequence[Scores]],
    score: Callable[[Scores, Float64], float],
    videos: int,
    resamples: int,
) -> dict[Key, Resampled]:
    """Return the measure of each way to train.

    Args:
        scored: The results of each seed's training on the videos, by way.
        score: Turns that into a fraction; it is given (V,) how often each video counts.
        videos: V.
        resamples: B, of the videos.
    """
    counts = draw_videos(videos, resamples, seed=1).astype(np.float64)  # (B, V)
    once = np.ones(videos)
    return {
        key: Resampled(
            seeds=np.array([100 * score(one, once) for one in seeds]),
            drawn=np.array(
                [100 * np.mean([score(one, drawn) for one in seeds]) for drawn in counts]
            ),
            samples=videos,
        )
        for key, seeds in scored.items()
    }


def interval_words(own: SbpSettings) -> str:
    """Return the meaning of the cells of tables 4 and 5 and figure 6."""
    return (
        f"{own.seeds} seeds, which share first weights, order of videos and crops between "
        f"trainings; in brackets the {100 * own.confidence:g} % interval over videos (bootstrap, "
        f"{own.resamples:,} resamples) and seeds. Differences are of the same videos and seeds."
    )


ENDS = {"frozen": FROZEN, "full": FULL}
"""What SBP is compared with."""


def with_sbp(ratios: Iterable[float]) -> list[Training]:
    """Return both ends and a training with SBP at each ratio."""
    return [FROZEN, FULL, *(Training(keep_ratio=ratio) for ratio in ratios)]


def tuned(
    arguments: Flags,
    training: Training,
    own: TuningSettings,
    seed: int,
    out: Path,
    head: HeadName | None = None,
) -> None:
    """Tune the RGB encoder on the snippets of the flags into the folder `out`.

    No video is held out, the last epoch is kept.
    """
    from actionspan.finetune.tuning import tune

    share = own.encoder_share if training.encoder_share is None else training.encoder_share
    settings = FinetuneSettings(
        way=training.way,
        keep_ratio=training.keep_ratio,
        sampler=training.sampler,
        input_size=own.input_size,
        epochs=own.epochs,
        batch_size=own.batch_size,
        encoder_rate=share * own.temporal_rate,
        temporal_rate=own.temporal_rate,
        keep="last",
        snippet_stride=own.snippet_stride,
        score_every=0,
        seed=seed,
    )
    tune(
        arguments.snippets,
        arguments.annotations,
        settings,
        EncoderSettings(input_size=own.input_size, device="cpu"),
        RescaleSettings(components=own.components),
        TemporalSettings(seed=seed),
        out,
        head=head,
    )


def scores_of(
    keys: Iterable[Key], seeds: int, title: str, score: Callable[[Key, int, Path], Scores]
) -> dict[Key, list[Scores]]:
    """Train and score each way with every seed, in a scratch folder each."""
    wanted = [(key, seed) for key in keys for seed in range(1, seeds + 1)]
    scored: dict[Key, list[Scores]] = {}
    for key, seed in progress(wanted, title, len(wanted)):
        with TemporaryDirectory() as folder:
            scored.setdefault(key, []).append(score(key, seed, Path(folder)))
    return scored


Run = tuple[HeadName, Training]


@dataclass(frozen=True, kw_only=True)
class _OnlineScores:
    """The scores (N, K) of all snippets, which are right (N, K), and each one's video (N,)."""

    scores: Float32
    right: NDArray[np.bool_]
    video: Int64

    def precision(self, counts: Float64) -> float:
        """Return the mean average precision where each video counts so often, (V,)."""
        return mean_average_precision(self.scores, self.right, counts[self.video])


def read_scores(path: Path) -> _OnlineScores:
    """Read the results of `finetune online` on the validation videos.

    Raises:
        InputError: The file is missing, or there are fewer than two videos.
    """
    with open_h5(path) as file:
        names = sorted(file)
        if len(names) < 2:
            raise InputError(f"{path}: {len(names)} validation videos: 2 at least are compared")
        scores = [np.asarray(file[name]["scores"][:], np.float32) for name in names]
        right = [np.asarray(file[name]["labels"][:], bool) for name in names]
    lengths = [len(rows) for rows in scores]
    return _OnlineScores(
        scores=np.concatenate(scores),
        right=np.concatenate(right),
        video=np.repeat(np.arange(len(names)), lengths),
    )


def measure_online(
    arguments: Flags, runs: Iterable[Run], own: SbpSettings, tuning: TuningSettings
) -> dict[Run, Resampled]:
    """Tune every head with every training and seed; return their average precision.

    The heads are causal: each snippet of the validation videos is scored from its past.
    """

    def score(run: Run, seed: int, out: Path) -> _OnlineScores:
        head, training = run
        tuned(arguments, training, tuning, seed, out, head)
        return read_scores(out / "scores.h5")

    scored = scores_of(runs, own.seeds, "tuning", score)
    videos = int(next(iter(scored.values()))[0].video[-1]) + 1
    return measure(scored, _OnlineScores.precision, videos, own.resamples)
