"""Damaged videos of many containers and codecs, each probed and decoded in processes of its own.

Right is a rejection in a line, the same pictures, or fewer with a word about the loss. Other
pictures may come without a word: most codecs have no checksum that could tell. So may fewer where
the file's own edit list hides the others, which no player shows.
"""

import hashlib
import json
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import h5py

from actionspan.annotations.tables import Video, read_videos
from campaigns import sample_videos
from campaigns.cases import Result, complaint, fault, wrong
from campaigns.children import Ended, call, command
from campaigns.damage import damaged
from campaigns.sample_videos import HEIGHT, KINDS, WIDTH

_UNSTATED = ("mpegts", "mpeg")  # their lengths are those of the packets that are there
HUGE = (15_000, 40_000, 65_535, 9_000, 1, 0)


class Videos:
    """A sound video is damaged once or twice, or its header is forged."""

    name = "videos"
    count = 1000

    def prepare(self, folder: Path) -> None:
        """Encode the videos, and decode each as it is."""
        # encoders start threads, which no fork may inherit
        words = [sys.executable, sample_videos.__file__, str(folder)]
        subprocess.run(words, check=True, stderr=subprocess.DEVNULL)
        import actionspan.dataset.video_facts
        import actionspan.video.snippets  # noqa: F401

        self._folder = folder
        self._read: dict[str, Pictures | str] = {}
        for kind in KINDS:
            if (folder / kind.file).exists():
                place = folder / f"{kind.file}.read"
                place.mkdir()
                _, frames = _decode(folder / kind.file, place)
                self._read[kind.file] = _pictures(place, frames)
        unread = [name for name, read in self._read.items() if not isinstance(read, Pictures)]
        if unread or len(self._read) < len(KINDS) // 2:
            raise SystemExit(f"videos: {len(self._read)} encoded; unread as they are: {unread}")

    def case(self, random: Random, folder: Path) -> Result:
        """Probe and decode a damaged video."""
        name = random.choice(sorted(self._read))
        content = (self._folder / name).read_bytes()
        for _ in range(random.choice([1, 1, 2])):
            change = _forged if random.random() < 0.25 else lambda *them: damaged(*them)[0]
            content = change(content, random)
        path = folder / name
        path.write_bytes(content)
        probe, frames = _decode(path, folder)
        for ended in (probe, frames):
            if ended is not None and (found := fault(ended)):
                return found
        whole, read = self._read[name], _pictures(folder, frames)
        if isinstance(read, str):
            bad = not read.isprintable() or not read
            return wrong("control characters", read) if bad else Result("rejected in a line")
        assert isinstance(whole, Pictures)
        if read.digest == whole.digest:
            return Result("same pictures")
        if read.frames >= whole.frames:
            return Result("other pictures")
        if read.said:
            return Result("fewer frames, said")
        stated, hidden = _stated(path)
        if max(read.packets, stated - hidden) > read.frames:
            return wrong("fewer frames without a word", f"{name}: {read.frames} of {stated}")
        if hidden and stated > read.frames:
            return Result("fewer frames, the others hidden by an edit list")
        return Result("fewer frames, none stated")


class Pictures(NamedTuple):
    """What was read of a video."""

    digest: str
    frames: int
    packets: int
    said: bool
    """A line or the file itself tells that frames are missing."""


def _decode(path: Path, folder: Path) -> tuple[Ended, Ended | None]:
    """Probe a video, and decode it unless it is rejected; the files are shard.txt and frames.h5."""
    words = ["dataset", "probe", "--videos", path, "--out", folder / "shard.txt"]
    probe = call(command([str(word) for word in words]), folder)
    if probe.status or _rejected(read_videos(folder / "shard.txt")):
        return probe, None
    words = ["video", "frames", "--shard", folder / "shard.txt", "--out", folder / "frames.h5"]
    words += ["--snippet-frames", 2, "--short-side", 64]
    return probe, call(command([str(word) for word in words]), folder)


def _rejected(videos: list[Video]) -> str:
    return videos[0].error if videos else "nothing is left"


def _pictures(folder: Path, frames: Ended | None) -> "Pictures | str":
    """Return what was read, or why nothing was."""
    videos = read_videos(folder / "shard.txt")
    if frames is None:
        return _rejected(videos)
    if frames.status:
        return complaint(frames)
    video = videos[0]
    with h5py.File(folder / "frames.h5") as file:
        if video.video_id not in file:
            return str(json.loads(file.attrs["rejected"])[video.video_id])
        group = file[video.video_id]
        read = int(group.attrs["frame_count"])
        content = hashlib.sha256(group["rgb"][:].tobytes() + group["gray"][:].tobytes())
        stated = int(group.attrs.get("stated_frames", 0))
    said = stated > read or bool(re.search(rf"\b{read}\b.*frames", frames.errors))
    return Pictures(content.hexdigest(), read, video.frames, said)


def _forged(content: bytes, random: Random) -> bytes:
    """Write another size where the header has the width or the height."""
    found = [
        (place, form, size)
        for size in (WIDTH, HEIGHT)
        for form in ("<H", ">H", "<I", ">I")
        for place in _places(content[:4096] + content[-4096:], struct.pack(form, size))
    ]
    if not found:
        return damaged(content, random)[0]
    changed = bytearray(content)
    huge = random.choice(HUGE)
    for place, form, _ in random.sample(found, random.randint(1, len(found))):
        place += len(content) - 8192 if place >= 4096 and len(content) > 8192 else 0
        changed[place : place + struct.calcsize(form)] = struct.pack(form, huge)
    return bytes(changed)


def _places(content: bytes, what: bytes) -> Iterator[int]:
    return (found.start() for found in re.finditer(re.escape(what), content))


def _stated(path: Path) -> tuple[int, int]:
    """Return how many frames the header of a file states, 0 if it does not, and hides."""

    def tell() -> int:
        import av

        with av.open(str(path), metadata_errors="replace") as container:
            stream: Any = container.streams.best("video")
            if container.format.name in _UNSTATED:
                print([0, 0, 0])
                return 0
            seconds = float(stream.duration * stream.time_base) if stream.duration else 0.0
            stated = [stream.frames, seconds * float(stream.average_rate or 0)]
            hidden = sum(packet.is_discard for packet in container.demux(stream))
            print(json.dumps([*stated, hidden]))
        return 0

    ended = call(tell, path.parent)
    if ended.status:
        return 0, 0
    counted, timed, hidden = json.loads(ended.output)
    return int(counted or max(timed - 1, 0)), hidden


CAMPAIGN = Videos()
