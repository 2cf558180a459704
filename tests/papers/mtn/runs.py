"""Features, logs and scores of runs with numbers that a test chooses."""

import h5py

from actionspan.storage.writing import write_tsv
from actionspan_papers.mtn.table import read_video_scores
from evaluation.scores import write_scores


def write_features(folder, description, data):
    """Write the attributes of a features.h5 alone: what it says that it holds."""
    path = folder / "features.h5"
    with h5py.File(path, "w") as file:
        file.attrs.update(description=description, data=data)
    return path


def write_log(folder, name, losses):
    path = folder / "temporal" / name / "none-1" / "log.tsv"
    path.parent.mkdir(parents=True)
    rows = [(epoch, loss + 1, loss) for epoch, loss in enumerate(losses, start=1)]
    write_tsv(path, ("epoch", "training_loss", "validation_loss"), rows)
    return path


def scores_of(folder, levels):
    """Return the scores of methods and seeds, each given by the levels of its videos."""
    paths = [write_scores(folder / f"{name}.tsv", own) for name, own in levels.items()]
    return read_video_scores(paths)
