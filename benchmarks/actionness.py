"""Average precision of actionness by subset: what a temporal network tells of its videos.

A step counts as action where its middle lies in an instance; steps of all videos are one list.

python benchmarks/actionness.py results/dataset/annotations.json PROBABILITIES.H5
"""

import argparse
from pathlib import Path

import numpy as np

from actionspan.annotations.tables import Annotation, read_annotations
from actionspan.evaluation.baseline import actionness
from actionspan.finetune.precision import average_precision


def main() -> None:
    """Print a line for each subset."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("annotations", type=Path)
    parser.add_argument("probabilities", type=Path)
    arguments = parser.parse_args()
    videos = read_annotations(arguments.annotations)
    for subset in sorted({video.subset for video in videos}):
        chosen = [video for video in videos if video.subset == subset]
        signals = actionness(arguments.probabilities, chosen)
        truth = [acting(len(signal), video) for signal, video in zip(signals, chosen, strict=True)]
        precision = average_precision(np.concatenate(signals), np.concatenate(truth))
        print(f"{subset}: {precision:.3f}")


def acting(steps: int, video: Annotation) -> np.ndarray:
    """Return (T,) whether the middle of each step lies in an instance."""
    middles = (np.arange(steps) + 0.5) / steps * video.duration_seconds
    inside = [(one.start <= middles) & (middles < one.end) for one in video.instances]
    return np.any(inside, axis=0) if inside else np.zeros(steps, bool)


if __name__ == "__main__":
    main()
