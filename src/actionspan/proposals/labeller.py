"""The classes of proposals of videos in features.h5."""

from collections.abc import Sequence
from pathlib import Path

from actionspan.arrays import Float64
from actionspan.errors import InputError
from actionspan.features.store import open_features
from actionspan.proposals.labels import label_rows
from actionspan.proposals.segment_classifier import load_classifier
from actionspan.proposals.writing import Row


class Labeller:
    """A classifier of segments and the features of all videos.

    Raises:
        InputError: A file cannot be read, or the classifier was trained on other features.
    """

    def __init__(self, features: Path, classifier: Path) -> None:
        self._path, self._features = features, open_features(features)
        self._classifier = load_classifier(classifier)
        self._rows = {self._features.video_id[rows.start]: rows for rows in self._features.videos()}
        if (channels := self._features.array.shape[2]) != self._classifier.channels:
            raise InputError(
                f"{features}: {channels} channels, but {classifier} was trained on "
                f"{self._classifier.channels}; train it on these features"
            )

    @property
    def labels(self) -> tuple[str, ...]:
        """The K classes."""
        return self._classifier.labels

    def label(self, video_id: str, proposals: Sequence[Row]) -> list[Row]:
        """Return a video's proposals with the best class of each; see `scores`."""
        return label_rows(proposals, self.labels, self.scores(video_id, proposals))

    def scores(self, video_id: str, proposals: Sequence[Row]) -> Float64:
        """Return the scores (N, K) of the classes of a video's N proposals.

        Raises:
            InputError: features.h5 has no such video.
        """
        if video_id not in self._rows:
            raise InputError(f"{self._path}: no video {video_id!r}, which has proposals")
        rows = self._rows[video_id]
        sequence = self._features.sequence(rows)
        duration = float(self._features.duration_seconds[rows.start])
        return self._classifier.scores(sequence, [row["segment"] for row in proposals], duration)


def optional_labeller(features: Path | None, classifier: Path | None) -> Labeller | None:
    """Return a labeller, or none without a classifier or classes.

    Raises:
        InputError: See `Labeller`; or the features are missing.
    """
    if classifier is None:
        return None
    if features is None:
        raise InputError("--classifier needs --features features.h5")
    labeller = Labeller(features, classifier)
    return labeller if labeller.labels else None
