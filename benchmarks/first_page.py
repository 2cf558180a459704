r"""What the first page is worth before any correction, beside equal tiles.

    python benchmarks/first_page.py --data DATA --work build/first_page --models demo none

`actionspan propose` of each model on all videos of a set, judged as a reader does: in how many
videos the first event is right (tIoU 0.5), how many events the first five of each video find, how
many are found by as many as there are, and what share of the videos the list covers. Prints a table
a set, with the most that five events of a video can find, and the share that events truly cover.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from actionspan.dataset.completing import Truth
from actionspan.dataset.sharding import find_videos
from actionspan.evaluation.baseline import tiles
from actionspan.evaluation.reader import most_found
from actionspan.evaluation.recall import tiou

SETS = {  # videos and annotations
    "rooms": ("rooms/videos", "rooms/annotations.json"),
    "cycles": ("cycles/videos", "cycles/annotations.json"),
    "fights": ("fights/untrimmed", "fights/annotations.json"),
}
Lists = Mapping[str, np.ndarray]
"""(N, 2) events in seconds of each video, the best first."""


def right(events: np.ndarray, truth: np.ndarray) -> list[int]:
    """Return the places of events that are the first to reach a tIoU of 0.5 with an instance."""
    left, places = list(range(len(truth))), []
    for place, event in enumerate(events):
        shares = tiou(event[None], truth[left])[0] if left else np.zeros(0)
        if len(shares) and shares.max() >= 0.5:
            places.append(place)
            del left[int(shares.argmax())]
    return places


def row(name: str, lists: Lists, truth: Lists, seconds: Mapping[str, float]) -> str:
    """Return the row of a table."""
    places = {video: right(lists[video], truth[video]) for video in truth}
    first = sum(0 in found for found in places.values())
    five = sum(place < 5 for found in places.values() for place in found)
    many = sum(place < len(truth[video]) for video, found in places.items() for place in found)
    covered = np.mean([np.diff(lists[video]).sum() / seconds[video] for video in truth])
    return f"| {name} | {first} | {five} | {many} | {100 * covered:.0f} % |"


def proposed(model: str, folder: Path, out: Path) -> Lists:
    """Return the events that `actionspan propose` lists."""
    words = ["propose", folder, "--model", model, "--out", out, "--no-page", "--no-copies", "-q"]
    subprocess.run([sys.executable, "-m", "actionspan", *map(str, words)], check=True)
    results = json.loads((out / "events.json").read_text())["results"]
    return {
        video: np.array([each["segment"] for each in rows], float).reshape(-1, 2)
        for video, rows in results.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("build/first_page"))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--models", nargs="+", default=["demo", "none"])
    asked = parser.parse_args(arguments)
    for name in asked.sets:
        folder, annotations = (asked.data / path for path in SETS[name])
        known = Truth(annotations, find_videos(folder))
        content = json.loads(annotations.read_text())
        entries = {
            video: each for video, each in content["database"].items() if each["annotations"]
        }
        seconds = {video: float(each["duration"]) for video, each in entries.items()}
        truth = {
            video: np.array(
                [[each.start, each.end] for each in known.within(video, seconds[video])]
            )
            for video in entries
        }
        counts = [len(each) for each in truth.values()]
        covered = np.mean([np.diff(truth[video]).sum() / seconds[video] for video in truth])
        print(f"\n{name}: {len(truth)} videos with {sum(counts)} events, which cover", end=" ")
        print(
            f"{100 * covered:.0f} %; five a video find {100 * most_found(counts, 5):.0f} % at most"
        )
        print("\n| | first right | in the first five | in as many as there are | covered |")
        print("|---|---:|---:|---:|---:|")
        lists = {f"{n} equal tiles": {v: tiles(seconds[v], n)[0] for v in truth} for n in (5, 9)}
        for model in asked.models:
            lists[model] = proposed(model, folder, asked.work / name / model)
        for title, each in lists.items():
            print(row(title, each, truth, seconds))


if __name__ == "__main__":
    main()
