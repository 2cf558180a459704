"""Online detection by causal heads: each snippet of the validation videos scored from its past."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from actionspan.arrays import Float32, Float64, Int64
from actionspan.errors import InputError
from actionspan.files.storage import open_h5
from actionspan.finetune.precision import mean_average_precision
from actionspan.finetune.settings import HeadName
from actionspan.running.progress import progress
from actionspan_papers.sbp.settings import SbpSettings, TuningSettings
from actionspan_papers.sbp.trainings import Measured, Training, measure, tuned

Run = tuple[HeadName, Training]


@dataclass(frozen=True, kw_only=True)
class OnlineScores:
    """The scores (N, K) of all snippets, which are right (N, K), and each one's video (N,)."""

    scores: Float32
    right: NDArray[np.bool_]
    video: Int64

    def precision(self, counts: Float64) -> float:
        """Return the mean average precision where each video counts so often, (V,)."""
        return mean_average_precision(self.scores, self.right, counts[self.video])


def read_scores(path: Path) -> OnlineScores:
    """Read what `finetune online` says of the validation videos.

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
    return OnlineScores(
        scores=np.concatenate(scores),
        right=np.concatenate(right),
        video=np.repeat(np.arange(len(names)), lengths),
    )


def measure_online(
    snippets: Sequence[Path],
    annotations: Path,
    runs: Iterable[Run],
    own: SbpSettings,
    tuning: TuningSettings,
) -> dict[Run, Measured]:
    """Tune every head with every training and seed; return their average precision."""
    wanted = [(run, seed) for run in runs for seed in range(1, own.seeds + 1)]
    scored: dict[Run, list[OnlineScores]] = {}
    with TemporaryDirectory() as folder:
        for (head, training), seed in progress(wanted, "tuning", len(wanted)):
            out = Path(folder) / f"{head}-{training.name}-{seed}"
            tuned(snippets, annotations, training, tuning, seed, out, head=head)
            scored.setdefault((head, training), []).append(read_scores(out / "scores.h5"))
    videos = int(next(iter(scored.values()))[0].video[-1]) + 1
    return measure(scored, OnlineScores.precision, videos, own.resamples)
