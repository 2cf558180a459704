"""A disk that is full at any moment of any command: one line, nothing torn, and then the same bits.

The disk is a small tmpfs; a quarter of the cases, and all where nothing may be mounted, have a
limit on the size of a file instead.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from campaigns.cases import Result, complaint, fault, wrong
from campaigns.children import call, command
from campaigns.pipeline import Pipeline, Step, finished_run, left_behind, run, torn

_DISK = 64 << 20  # bytes
_PAGE = 4096
_REASONS = ("the disk is full", "the file is larger than a file may be", "disk quota")


class Disk:
    """A command is given less room than it needs, and then enough."""

    name = "disk"
    count = 400
    _pipeline: Pipeline

    def prepare(self, folder: Path) -> None:
        """Run the pipeline."""
        self._pipeline = finished_run()
        self._mounts = _may_mount(folder)
        if not self._mounts:
            print("disk: nothing may be mounted here: file size limits alone", file=sys.stderr)

    def case(self, random: Random, folder: Path) -> Result:
        """Run a command with too little room."""
        step = self._pipeline.choose(random)
        needed = sum((self._pipeline.folder / name).stat().st_size for name in step.outputs)
        rooms = [
            0,
            random.randrange(16 * _PAGE),
            random.randrange(needed),
            random.randrange(needed),
        ]
        room = random.choice(rooms)
        limited = random.random() < 0.25 or not self._mounts
        (folder / "case").write_text(
            f"actionspan {' '.join(step.words)}\nroom {room}, {limited=}\n"
        )
        if limited:
            return self._judge(step, folder / "disk", lambda: _limit(room), lambda: None)
        with small_disk(folder / "disk"):
            self._pipeline.lay(step.inputs, folder / "disk")
            ballast = folder / "disk/ballast"
            fill(ballast, room)
            return self._judge(step, folder / "disk", lambda: None, ballast.unlink)

    def _judge(
        self, step: Step, folder: Path, begin: Callable[[], None], make_room: Callable[[], None]
    ) -> Result:
        if not folder.exists():
            self._pipeline.lay(step.inputs, folder)

        def limited() -> int:
            begin()
            return command(step.words)()

        ended = call(limited, folder)
        if found := fault(ended):
            return wrong(found.outcome, f"{step.name}: {found.detail}", 1)
        if names := torn(self._pipeline, step, folder):
            return wrong(
                "a torn file under its final name",
                f"{step.name}: {names[0]}: {ended.errors[-200:]}",
                1,
            )
        if ended.status and not any(reason in complaint(ended) for reason in _REASONS):
            return wrong("another reason is named", f"{step.name}: {complaint(ended)}", 1)
        make_room()
        again = run(step, folder)
        if (found := fault(again)) or again.status:
            return wrong("the next start fails", f"{step.name}: {again.errors[-300:]}", 1)
        if names := self._pipeline.other(step, folder):
            return wrong("other bits", f"{step.name}: {names[0]}", 1)
        if names := left_behind(step, folder):
            return wrong("files left behind", f"{step.name}: {names[0]}", 1)
        if not ended.status:
            return Result("enough room")
        return Result("one line, then the same bits", faults=1)


def _limit(room: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))


def _may_mount(folder: Path) -> bool:
    try:
        with small_disk(folder / "disk"):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a small disk at a folder.

    Raises:
        CalledProcessError: It may not be mounted.
    """
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={_DISK}", "tmpfs", str(folder)]
    subprocess.run(words, check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True, capture_output=True)


def fill(ballast: Path, room: int) -> None:
    """Fill a disk, but for so many bytes."""
    with ballast.open("wb") as file:
        state = os.statvfs(ballast)
        size = state.f_bavail * state.f_frsize - room
        if size > 0:
            os.posix_fallocate(file.fileno(), 0, size)


CAMPAIGN = Disk()
