"""Proposals while a video plays: a file, a camera or an address on the network."""

import argparse
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from actionspan.errors import InputError
from actionspan.live.settings import StreamSettings
from actionspan.live.source import parse_source
from actionspan.settings import add_settings, from_arguments

if TYPE_CHECKING:
    from actionspan.live.play import Player


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="a video file, camera:0, or an address (rtsp://…, http://…); passwords in addresses "
        "are never shown or written",
    )
    parser.add_argument(
        "--model",
        required=True,
        help="model.pt or the folder that holds it, of a network that can stream",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("live"), help="folder for the results (default: live)"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on where an earlier run into --out stopped"
    )
    add_settings(parser, StreamSettings)


def run(arguments: argparse.Namespace) -> int:
    """Stream until the end; 130 after Ctrl-C, 143 after SIGTERM, with valid files."""
    settings = from_arguments(StreamSettings, arguments)
    source = parse_source(arguments.source)
    from actionspan.live.play import play
    from actionspan.streaming import StageError

    player = _player(arguments.model, settings)
    stopping = threading.Event()
    with _signals(stopping) as caught:
        try:
            ended = play(
                source,
                player,
                settings,
                arguments.out,
                resume=arguments.resume,
                echo=sys.stdout,
                stopping=stopping,
            )
        except StageError as error:
            raise InputError(str(error)) from None
    print(f"{arguments.out}: {ended.line}", file=sys.stderr)
    return 128 + caught[0] if caught else 0


def _player(model: str, settings: StreamSettings) -> "Player":
    import cv2
    import torch

    from actionspan.live.play import Player
    from actionspan.running.allocator import keep_freed_memory

    keep_freed_memory()
    cv2.setNumThreads(1)
    torch.set_num_threads(settings.threads)
    return Player.load(Path(model), settings)


@contextmanager
def _signals(stopping: threading.Event) -> Iterator[list[int]]:
    """Ask for the end on the first SIGINT or SIGTERM; a second one ends at once."""
    caught: list[int] = []

    def stop(number: int, _: object) -> None:
        if caught:
            raise KeyboardInterrupt
        caught.append(number)
        stopping.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
