"""The commands from a video to proposals, each in a process of its own that may die.

`python -m files.every_command FOLDER` makes the files of all commands in FOLDER. With `full_disk`
or `flips` it then runs each command on disks that fill up, or on damaged inputs, and prints what
became of each, a line of JSON for each. Processes are forked from one that has imported everything.
"""

import ctypes
import filecmp
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import actionspan.features.extract
import actionspan.proposals.generate
import actionspan.temporal.train  # noqa: F401
from actionspan.cli import main
from actionspan.dataset.tables import (
    SHARD_COLUMNS,
    VIDEO_COLUMNS,
    Annotation,
    Instance,
    write_annotations,
    write_videos,
)
from actionspan.dataset.video_facts import probe_video
from video.numbered import encode

ROOMS = (16, 300)  # KiB, far from what a command needs to what some need


class Command(NamedTuple):
    """The words of a command, after `in/` the files it reads, after `out/` those that it writes."""

    words: str

    @property
    def name(self) -> str:
        return " ".join(self.words.split()[:2])

    def files(self, folder: str) -> list[str]:
        return [w.removeprefix(folder) for w in self.words.split() if w.startswith(folder)]


COMMANDS = [
    Command("video frames --shard in/shard.txt --stack 4 --snippet-frames 4 --out out/frames.h5"),
    Command("video flow --frames in/frames.h5 --out out/flow.h5"),
    Command(
        "features extract --frames in/frames.h5 --flow in/flow.h5 --out out/shard.h5 --input-size "
        "64 --rgb-encoder bn_inception --rgb-weights in/bn.pth --flow-encoder flow_histogram"
    ),
    Command(
        "features rescale --shards in/shard.h5 --videos in/videos.tsv --annotations "
        "in/annotations.json --components 8 --out out/features.h5"
    ),
    Command(
        "temporal train --features in/features.h5 --annotations in/annotations.json --epochs 1 "
        "--hidden 8 --exchange none --out out/"
    ),
    Command("temporal predict --model in/model.pt --features in/features.h5 --out out/p.h5"),
    Command("proposals candidates --probabilities in/p.h5 --out out/candidates.h5"),
    Command(
        "proposals train --candidates in/candidates.h5 --annotations in/annotations.json --epochs "
        "1 --out out/pem.pt --out-log out/pem.tsv"
    ),
    Command(
        "proposals generate --candidates in/candidates.h5 --evaluator in/pem.pt --out-json "
        "out/proposals.json --out-csv out/proposals.csv"
    ),
]


def prepare(folder: Path) -> None:
    """Write what the first command needs, and the annotations."""
    import torch

    from actionspan.networks.bn_inception import BNInception

    names = [f"video{number}" for number in range(3)]
    videos = [probe_video(encode(folder / f"{name}.mp4", 40)) for name in names]
    write_videos(folder / "shard.txt", videos, SHARD_COLUMNS)
    write_videos(folder / "videos.tsv", videos, VIDEO_COLUMNS)
    subsets = ("training", "training", "validation")
    once = (Instance(start=0.3, end=1.1, label="action"),)
    write_annotations(
        folder / "annotations.json",
        [
            Annotation(video_id=name, subset=subset, duration_seconds=1.6, instances=once)
            for name, subset in zip(names, subsets, strict=True)
        ],
    )
    torch.manual_seed(0)
    torch.save(BNInception(classes=2).state_dict(), folder / "bn.pth")


def forked(work) -> tuple[int, str]:
    """Return the status of `work` in a forked process, below 0 a signal's, and what it said."""
    with tempfile.TemporaryFile() as said:
        if (process := os.fork()) == 0:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            status = 99
            try:
                status = work() or 0
            except SystemExit as end:
                status = end.code
            except BaseException:
                traceback.print_exc()
            sys.stderr.flush()
            ctypes.CDLL(None).exit(status)  # with the ends of C libraries, HDF5's among them
        _, ended = os.waitpid(process, 0)
        said.seek(0)
        return os.waitstatus_to_exitcode(ended), said.read().decode(errors="replace")


def run(command: Command, inputs: Path, outputs: Path) -> tuple[int, str]:
    """Run a command on files of one folder, into another."""
    words = command.words.replace("in/", "").replace("out/", f"{outputs}/").split()

    def work() -> int:
        os.chdir(inputs)  # results hold the paths of weights as they were given
        return main(words)

    return forked(work)


def judged(status: int, said: str) -> str:
    """Return "line" for status 2 and one line of ours, else what is wrong."""
    lines = [line for line in said.splitlines() if line.startswith("actionspan ")]
    if status == 2 and len(lines) == 1 and "Traceback" not in said and "HDF5-DIAG" not in said:
        return "line"
    return f"status {status}: {said[-600:]}"


def alike(command: Command, one: Path, other: Path) -> bool:
    names = [name or "model.pt" for name in command.files("out/")]
    return all(filecmp.cmp(one / name, other / name, shallow=False) for name in names)


def full_disk(folder: Path) -> Iterator[tuple[str, str]]:
    """Run each command on small disks, and then again with room: "fits" or "line" is right."""
    for command in COMMANDS:
        for room in ROOMS:
            disk = folder / "disk"
            disk.mkdir(exist_ok=True)
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", f"size={room}k", "tmpfs", str(disk)], check=True
            )
            try:
                status, said = run(command, folder, disk)
                result = "fits" if status == 0 else judged(status, said)
                if result == "line" and "full" not in said and "No space" not in said:
                    result = f"another line: {said}"
                left = [name for name in command.files("out/") if name and (disk / name).exists()]
                if result == "line" and left:
                    result = f"left {left}"
                subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)
                status, said = run(command, folder, disk)
                if status != 0 or not alike(command, folder, disk):
                    result += f", and with room: status {status}, {said[-600:]}"
                hidden = [each.name for each in disk.rglob("*.partial*")]
                if hidden:
                    result += f", left {hidden}"
            finally:
                subprocess.run(["umount", str(disk)], check=True)
            yield f"{command.name}, {room} KiB", result


def flips(folder: Path, seed: int = 0, each: int = 1) -> Iterator[tuple[str, str]]:
    """Run each command on inputs with a flipped bit: "same" or "line" is right."""
    draw = random.Random(seed)
    for command in COMMANDS:
        for name in command.files("in/"):
            if not name.endswith((".h5", ".pt")):
                continue
            for _ in range(each):
                inputs, outputs = folder / "damaged", folder / "made"
                for place in (inputs, outputs):
                    shutil.rmtree(place, ignore_errors=True)
                    place.mkdir()
                for other in command.files("in/"):
                    (inputs / other).symlink_to(folder / other)
                data = bytearray((folder / name).read_bytes())
                bit = draw.randrange(8 * len(data))
                data[bit // 8] ^= 1 << bit % 8
                (inputs / name).unlink()
                (inputs / name).write_bytes(data)
                status, said = run(command, inputs, outputs)
                if status == 0:
                    result = "same" if alike(command, folder, outputs) else "another result"
                else:
                    result = judged(status, said)
                    if result == "line" and name not in said:
                        result = f"not named: {said}"
                yield f"{command.name}, {name}, bit {bit}", result


if __name__ == "__main__":
    place = Path(sys.argv[1])
    status, said = forked(lambda: prepare(place))
    assert status == 0, said
    for made in COMMANDS:
        status, said = run(made, place, place)
        assert status == 0, f"{made.name}: {said}"
    if len(sys.argv) > 2:
        for case in {"full_disk": full_disk, "flips": flips}[sys.argv[2]](place):
            print(json.dumps(case), flush=True)
