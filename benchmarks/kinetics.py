r"""Whether I3D's 400 classes of Kinetics say what happens in videos that it was not trained for.

    python benchmarks/kinetics.py --data DATA --work build/kinetics

Of the trimmed clips of UCF101, HMDB51 and UCF11 that Kinetics has a class for: how often this class
is first, and among the first five, with pictures of 224 pixels and of 112. Of the trimmed clips of
`fights` and the instances of `rooms`: the class that separates a label best in the training videos
(area under the ROC curve), and how well it does in the validation videos; beside it the class whose
name says it, and a ridge on I3D's features, which learned from the same training videos. Vectors of
a video are kept in `--work`.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import softmax
from scipy.stats import rankdata
from torchvision.models.video import R3D_18_Weights

from actionspan.annotations.tables import Instance, read_annotations
from actionspan.features.clips import ClipEncoder, ClipStream
from actionspan.features.settings import SAMPLES_A_VECTOR, EncoderSettings
from actionspan.networks.weights import load_state
from actionspan.video.clips import ClipSampler
from actionspan.video.decode import read_frames
from actionspan.video.settings import FrameSettings

CLASSES: list[str] = R3D_18_Weights.KINETICS400_V1.meta["categories"]
NAMES = {
    "ApplyEyeMakeup": "filling eyebrows",
    "Archery": "archery",
    "BaseballPitch": "catching or throwing baseball",
    "BenchPress": "bench pressing",
    "CricketShot": "playing cricket",
    "Diving": "springboard diving",
    "hmdb51_cartwheel": "cartwheeling",
    "ucf11_biking": "riding a bike",
}
"""The class of Kinetics that a folder of clips shows; pouring has none of its own."""
SAYS = {"fight": "punching person (boxing)", "fall": "faceplanting", "lie down": "faceplanting"}
"""Classes whose name says what a label means, as near as there is one."""


class Vectors(NamedTuple):
    """What I3D gives for every 8 samples of a video."""

    pooled: np.ndarray  # (K, 1024)
    times: np.ndarray  # (K,) seconds


class Network:
    """I3D with pictures of a size."""

    def __init__(self, size: int, work: Path) -> None:
        self.encoder = ClipEncoder(
            EncoderSettings(clip_encoder="i3d", clip_size=size, device="cpu")
        )
        self.frames = FrameSettings(clip_side=max(size, 128))
        self.folder = work / str(size)
        self.folder.mkdir(parents=True, exist_ok=True)
        state = load_state("i3d", None, "logits")
        self.weight, self.bias = (state[f"logits.{key}"].numpy() for key in ("weight", "bias"))

    def vectors(self, path: Path) -> Vectors:
        """Return the vectors of a video, made once."""
        kept = self.folder / f"{path.parent.name}-{path.stem}.npz"
        if not kept.is_file():
            stream = ClipStream(self.encoder)
            sampler = ClipSampler(self.frames, stream.take)
            for frame in read_frames(path):
                sampler.add(frame)
            sampler.close()
            rate = self.frames.clip_rate
            count = -(-sampler.samples // SAMPLES_A_VECTOR)
            times = (np.arange(count) * SAMPLES_A_VECTOR + (SAMPLES_A_VECTOR - 1) / 2) / rate
            np.savez(kept, pooled=stream.finish(rate, times), times=times)
        with np.load(kept) as found:
            return Vectors(found["pooled"], found["times"])

    def chances(self, pooled: np.ndarray) -> np.ndarray:
        """Return (K, 400) chances of the classes."""
        found: np.ndarray = softmax(pooled @ self.weight.T + self.bias, axis=1)
        return found


def trimmed(data: Path, network: Network) -> None:
    """Print how often the right class is first in trimmed clips."""
    first, five, count = 0, 0, 0
    for folder, name in NAMES.items():
        for path in sorted((data / "clips/ucf_hmdb_clips" / folder).iterdir()):
            chances = network.chances(network.vectors(path).pooled).mean(axis=0)
            order = [CLASSES[place] for place in np.argsort(-chances)[:5]]
            first, five, count = first + (order[0] == name), five + (name in order), count + 1
    print(f"| {network.folder.name} pixels | {count} | {first} | {five} |", flush=True)


def separation(set_name: str, label: str, rows: Mapping[str, tuple]) -> None:
    """Print how well one class, and a ridge, tell a label from the rest.

    `rows` are, of both subsets, vectors (N, 1024), chances (N, 400) and whether it is the label.
    """
    (seen, chances, is_it), (others, their, truth) = rows["training"], rows["validation"]
    areas = [roc_area(is_it, column) for column in chances.T]
    best = int(np.argmax(areas))
    named = SAYS.get(label)
    said = roc_area(truth, their[:, CLASSES.index(named)]) if named else None
    learned = roc_area(truth, ridge(seen, is_it, others))
    cells = [
        CLASSES[best],
        f"{areas[best]:.2f}",
        f"{roc_area(truth, their[:, best]):.2f}",
        f"{said:.2f} ({named})" if said is not None else "–",
        f"{learned:.2f}",
    ]
    print(f"| {set_name} | {label} | {' | '.join(cells)} |", flush=True)


def roc_area(is_it: np.ndarray, values: np.ndarray) -> float:
    """Return the chance that a value of it is above one of the others."""
    ranks, count = rankdata(values), is_it.sum()
    area: float = (ranks[is_it].sum() - count * (count + 1) / 2) / (count * (len(ranks) - count))
    return area


def ridge(seen: np.ndarray, is_it: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return how much rows (M, D) are like it, as rows (N, D) say by ridge regression."""
    mean, scale = seen.mean(axis=0), seen.std(axis=0) + 1e-6
    rows, target = (seen - mean) / scale, is_it - is_it.mean()
    square = rows.T @ rows + len(rows) * np.eye(rows.shape[1])
    found: np.ndarray = (others - mean) / scale @ np.linalg.solve(square, rows.T @ target)
    return found


def fights(data: Path, network: Network) -> None:
    """Print the rows of the trimmed clips of fights."""
    rows = {}
    for subset in ("training", "validation"):
        pooled, is_it = [], []
        for label in ("fight", "calm"):
            for path in sorted((data / "fights/trimmed" / subset / label).iterdir()):
                pooled.append(network.vectors(path).pooled.mean(axis=0))
                is_it.append(label == "fight")
        rows[subset] = np.stack(pooled), network.chances(np.stack(pooled)), np.array(is_it)
    separation("fights, trimmed", "fight", rows)


def rooms(data: Path, network: Network) -> None:
    """Print the rows of each label of rooms: thirds of a second against all others."""
    known = list(read_annotations(data / "rooms/annotations.json"))
    found = {
        video.video_id: network.vectors(data / "rooms/videos" / f"{video.video_id}.mp4")
        for video in known
    }
    labels = sorted({one.label for video in known for one in video.instances})
    for label in labels:
        rows = {}
        for subset in ("training", "validation"):
            own = [video for video in known if video.subset == subset]
            pooled = np.concatenate([found[video.video_id].pooled for video in own])
            is_it = np.concatenate(
                [inside(found[video.video_id].times, video.instances, label) for video in own]
            )
            rows[subset] = pooled, network.chances(pooled), is_it
        separation("rooms", label, rows)


def inside(times: np.ndarray, instances: list[Instance], label: str) -> np.ndarray:
    """Return whether each time is in an instance of a label."""
    shown = np.zeros(len(times), bool)
    for one in instances:
        if one.label == label:
            shown |= (times >= one.start) & (times < one.end)
    return shown


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--work", type=Path, default=Path("build/kinetics"), help="to write")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("| clips | | first is right | among the first five |\n|---|---:|---:|---:|")
    networks = {size: Network(size, arguments.work) for size in (224, 112)}
    for network in networks.values():
        trimmed(arguments.data, network)
    head = "best class of 400 (training) | its ROC there | in validation | named class | ridge"
    print(f"\n| set | label | {head} |\n|---|---|---|---:|---:|---:|---:|")
    fights(arguments.data, networks[112])
    rooms(arguments.data, networks[112])


if __name__ == "__main__":
    main()
