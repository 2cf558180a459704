"""How long a search of an archive takes with an index, and what it misses.

    python benchmarks/find_archive.py make --data DATA --work build/archive --hours 10
    python benchmarks/find_archive.py recall --work build/archive --seeds 5
    python benchmarks/find_archive.py repeat --source build/archive --work build/long --times 100
    python benchmarks/find_archive.py measure --work build/long

`make` writes features of videos of about an hour: clips of UCF101 (VGG16 features of 15 classes,
real) that follow each other, each mixed with another of its class, at its own speed, in front of
the scene of its video, with noise. Three streams of 40 features, 3.125 steps a second. Then it
makes the index. `recall` marks segments of a class and compares the best 100 of the searches with
and without the index: how many the index scored, listed with the same boundaries, and listed with a
tIoU of at least 0.5. `repeat` writes the index of a longer archive, the same videos many times
over, for time and memory. `measure` searches it, each time in a process of its own.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from actionspan.annotations.tables import Instance, Video
from actionspan.arrays import temporal_iou
from actionspan.find.examples import Footage, Similar, find_like
from actionspan.find.index import Index, index_of
from actionspan.find.listing import hopeful, listed
from actionspan.jobs.progress import progress
from actionspan.review.footage import Encoded
from actionspan.storage.writing import create_h5, open_h5, read_json, write_json

CLIPS = "features/ucf101_15cls_vgg16relu6_pca200_f16.npz"
WIDTH = 40  # features of a stream
STEP = 0.32  # seconds
BEST = 100


def make_video(file: Path, name: str, seconds: float, clips: Mapping, seed: int) -> list:
    """Write the features of a video; return its segments."""
    rng = np.random.default_rng(seed)
    features, labels = clips["features"], clips["label"]
    rows, instances, steps = [], [], round(seconds / STEP)
    total = 0
    while total < steps:
        label = int(rng.integers(1, 16))
        own = np.flatnonzero(labels == label)
        first, second = features[rng.choice(own, 2)].astype(np.float32)
        share = rng.uniform(0, 0.5)
        clip = (1 - share) * first + share * second  # (25, 200)
        places = np.linspace(0, 24, round(25 * rng.uniform(0.4, 1.6)))
        below = np.minimum(places.astype(int), 23)
        clip = clip[below] + (places - below).astype(np.float32)[:, None] * (
            clip[below + 1] - clip[below]
        )
        instances.append([total * STEP, (total + len(clip)) * STEP, label])
        rows.append(clip)
        total += len(clip)
    every = np.concatenate(rows)[:steps]
    every += rng.normal(size=every.shape).astype(np.float32) * every.std(axis=0) / 2
    change = np.diff(every, axis=0, prepend=every[:1])
    streams = {
        "rgb": every[:, :WIDTH],
        "flow": change[:, :WIDTH],
        "mover": every[:, WIDTH : 2 * WIDTH],
    }
    with create_h5(file, "") as made:
        group = made.create_group(name)
        for key, stream in streams.items():
            group[key] = stream + 3 * stream.std() * rng.normal(size=WIDTH).astype(np.float32)
        group["time"] = (np.arange(steps) + 0.5) * STEP
        motion = np.linalg.norm(change, axis=1)
        group["flow_magnitude"] = motion
        group["frame_difference"] = motion * rng.uniform(0.8, 1.2, steps).astype(np.float32)
        group["cuts"] = np.zeros((0, 2))
    return [one for one in instances if one[1] <= seconds]


def videos_of(work: Path) -> list[Encoded]:
    """Return the videos of the archive."""
    seconds = read_json(work / "truth.json")["seconds"]
    videos = []
    for file in sorted((work / "features").glob("v*.h5")):
        name, length = file.stem, seconds[file.stem]
        video = Video(
            video_id=name, path=Path(f"{name}.mp4"), duration_seconds=length, sha256=name,
            fps=25.0, frames=round(length * 25), width=320, height=240,
        )  # fmt: skip
        videos.append(Encoded(video=video, shard=file))
    return videos


def make(data: Path, work: Path, hours: int, seconds: float) -> None:
    """Write the archive and its index."""
    clips = np.load(data / CLIPS)
    clips = {key: clips[key] for key in ("features", "label")}
    truth, lengths = {}, {}
    for number in progress(range(count := round(hours * 3600 / seconds)), "features", count):
        name = f"v{number:05}"
        lengths[name] = seconds * np.random.default_rng([number, 1]).uniform(0.9, 1.1)
        truth[name] = make_video(work / f"features/{name}.h5", name, lengths[name], clips, number)
    write_json(work / "truth.json", {"seconds": lengths, "videos": truth}, indent=None)
    (work / "features/index.h5").unlink(missing_ok=True)
    started, used = time.time(), time.process_time()
    index_of(videos_of(work), work / "features/index.h5")
    size = (work / "features/index.h5").stat().st_size / 1e9
    cpu = time.process_time() - used
    print(
        f"index: {size:.2f} GB, {time.time() - started:.0f} s, {cpu:.0f} CPU seconds, {peak()} MB"
    )


def repeat(source: Path, work: Path, times: int) -> None:
    """Write the index of an archive in which each video of another one is there so many times."""
    write_json(work / "truth.json", read_json(source / "truth.json"), indent=None)
    made = work / "features/index.h5"
    with open_h5(source / "features/index.h5") as given, create_h5(made, "repeated") as file:
        names = given["video"].asstr()[:].tolist()
        file["video"] = names + [f"{n}_{turn}" for turn in range(1, times) for n in names]
        file["duration"] = np.tile(given["duration"][:], times)
        for key in ("first", "firsts"):
            counts = np.tile(np.diff(given[key][:]), times)
            file[key] = np.pad(np.cumsum(counts, axis=-1), [(0, 0)] * (counts.ndim - 1) + [(1, 0)])
        for key in ("mean", "covariance"):
            file[key] = given[key][:]
        for key in ["steps", *(f"{one}/{level}" for one in given for level in given[one]
                               if one in ("units", "largest", "norms"))]:  # fmt: skip
            rows = given[key][:]
            axis = 1 if key.startswith("norms") else 0
            shape = list(rows.shape)
            shape[axis] *= times
            made = file.create_dataset(key, tuple(shape), rows.dtype)
            for turn in progress(range(times), key, times):
                own = slice(turn * rows.shape[axis], (turn + 1) * rows.shape[axis])
                made[(slice(None),) * axis + (own,)] = rows


def peak() -> int:
    """Return the most memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def draw(work: Path, seed: int, marks: int, longest: float) -> dict[str, list[Instance]]:
    """Return marked segments of one class."""
    truth = read_json(work / "truth.json")["videos"]
    rng = np.random.default_rng(seed)
    label, found = int(rng.integers(1, 16)), {}
    for name in rng.permutation(sorted(truth)).tolist():
        own = [one for one in truth[name] if one[2] == label and one[1] - one[0] <= longest]
        if own and len(found) < marks:
            start, end, _ = own[int(rng.integers(len(own)))]
            start, end = start + rng.uniform(-0.2, 0.2), end + rng.uniform(-0.2, 0.2)  # by hand
            found[name] = [Instance(start=max(0.0, start), end=end, label=str(label))]
    return found


def best(found: Mapping[str, Similar], durations: Mapping[str, float]) -> set:
    """Return the best distinct segments."""
    names = hopeful({"": found}, BEST)
    shown = listed({name: [found[name]] for name in names}, [""], durations, BEST)
    return {
        (name, *np.round(segment, 3), round(score, 6))
        for name, each in shown.items()
        for segment, score in zip(each.events.tolist(), each.chances.tolist(), strict=True)
    }


def search(work: Path, seed: int, marks: int, longest: float) -> None:
    """Search with the index and print the measurements as JSON."""
    examples = draw(work, seed, marks, longest)
    before = peak()
    started, used = time.perf_counter(), time.process_time()
    index = Index(work / "features/index.h5")
    found = index.find_like(examples)
    durations = dict(zip(index.names, index.duration.tolist(), strict=True))
    segments = best(found, durations)
    facts = {"seconds": time.perf_counter() - started, "cpu": time.process_time() - used}
    facts |= {"before_mb": before, "mb": peak(), "segments": len(segments)}
    facts["lengths"] = [one.end - one.start for own in examples.values() for one in own]
    print(json.dumps(facts))


def measure(work: Path, seeds: int) -> None:
    """Print a table of searches, each in a process of its own."""
    print("| marks | seconds of one | seconds | CPU seconds | the same with start | MB |")
    print("|---:|---:|---:|---:|---:|---:|")
    for marks, longest in ((1, 4.0), (1, 100.0), (3, 100.0)):
        for seed in range(seeds):
            given = ["search", "--seed", seed, "--marks", marks, "--longest", longest]
            command = [sys.executable, __file__, *map(str, given), "--work", str(work)]
            before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            seconds, after = (
                time.perf_counter() - started,
                resource.getrusage(resource.RUSAGE_CHILDREN),
            )
            whole = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            facts = json.loads(done.stdout)
            lengths = ", ".join(f"{each:.1f}" for each in facts["lengths"])
            cells = (marks, lengths, f"{facts['seconds']:.2f}", f"{facts['cpu']:.2f}")
            cells = (*cells, f"{seconds:.1f}, {whole:.1f}", f"{facts['mb']} ({facts['before_mb']})")
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


def recall(work: Path, seeds: int) -> None:
    """Print how many of the best segments of a search without the index one with it finds."""
    footage, index = Footage(videos_of(work)), Index(work / "features/index.h5")
    durations = {name: one.video.duration_seconds for name, one in footage.videos.items()}
    rows = []
    print("| marks | of | scored | listed | overlapped | CPU seconds without the index |")
    print("|---:|---:|---:|---:|---:|---:|")
    for marks in (1, 3):
        for seed in range(seeds):
            examples = draw(work, seed, marks, 100.0)
            started = time.process_time()
            wanted = best(find_like(footage, examples), durations)
            took = time.process_time() - started
            found = index.find_like(examples)
            scored = {
                (name, *np.round(segment, 3))
                for name, each in found.items()
                for segment in each.segments.tolist()
            }
            shown = best(found, durations)
            same = {row[:3] for row in shown}
            near = [
                temporal_iou(
                    np.array([row[1:3]]),
                    np.array([one[1:3] for one in shown if one[0] == row[0]]).reshape(-1, 2),
                ).max(initial=0)
                for row in wanted
            ]
            counts = [
                sum(row[:3] in scored for row in wanted),
                sum(row[:3] in same for row in wanted),
                sum(each >= 0.5 for each in near),
            ]
            rows.append(np.array(counts) / len(wanted))
            print(
                f"| {marks} | {len(wanted)} | {' | '.join(map(str, counts))} | {took:.0f} |",
                flush=True,
            )
    print("mean:", *np.round(np.mean(rows, axis=0), 3))


def main() -> None:
    """Run a part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=["make", "repeat", "measure", "recall", "search"])
    parser.add_argument("--data", type=Path, help="folder of the sets")
    parser.add_argument("--work", type=Path, default=Path("build/archive"), help="to write")
    parser.add_argument("--hours", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=3600, help="of a video")
    parser.add_argument("--source", type=Path, help="archive that is repeated")
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--marks", type=int, default=1)
    parser.add_argument("--longest", type=float, default=100.0)
    a = parser.parse_args()
    if a.part == "make":
        make(a.data, a.work, a.hours, a.seconds)
    elif a.part == "repeat":
        repeat(a.source, a.work, a.times)
    elif a.part == "measure":
        measure(a.work, a.seeds)
    elif a.part == "recall":
        recall(a.work, a.seeds)
    else:
        search(a.work, a.seed, a.marks, a.longest)


if __name__ == "__main__":
    main()
