"""Proposals while a video plays: a file, a camera or an address on the network."""

import argparse
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from actionspan.errors import InputError
from actionspan.jobs.shards import add_zones
from actionspan.live.settings import LearningSettings, StreamSettings, parse_source
from actionspan.settings import add_settings, from_arguments

if TYPE_CHECKING:
    from actionspan.arrays import Float64


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add = parser.add_argument
    source = (
        "a video file, camera:0, or an address (rtsp://…, http://…); passwords in addresses are "
        "never shown or written"
    )
    add("source", metavar="SOURCE", help=source)
    model = (
        "model.safetensors or the folder that holds it, or hf:ORG/NAME[@REVISION], of a network "
        "that can stream"
    )
    add("--model", required=True, help=model)
    add("--out", type=Path, default=Path("live"), help="folder for the results (default: live)")
    add("--resume", action="store_true", help="continue where an earlier run into --out stopped")
    labels = (
        "train the network while the stream plays, with labels of this file (any form), each "
        "known some time after its instance; it scores first, then learns, "
        "and writes model.safetensors"
    )
    add("--learn", type=Path, metavar="ANNOTATIONS", help=labels)
    name = "the stream's id in results and annotations (default: the source's name)"
    add("--video", help=name)
    add_zones(parser)
    notify = (
        "send each proposal as JSON, once, to a web hook (https://…) or an MQTT topic "
        "(mqtts://host/topic); the stream never waits for it"
    )
    add("--notify", metavar="URL", help=notify)
    encoder = "the network of timm or transformers that the model sees by (docs/encoders.md)"
    add("--encoder", action="append", default=[], help=f"{encoder}; may be repeated")
    add_settings(parser, StreamSettings)
    add_settings(parser, LearningSettings)


def run(arguments: argparse.Namespace) -> int:
    """Stream until the end; 130 after Ctrl-C, 143 after SIGTERM, with valid files."""
    settings = from_arguments(StreamSettings, arguments)
    source = parse_source(arguments.source)
    if arguments.video is not None:
        source = replace(source, name=arguments.video)
    stopping, notifier = threading.Event(), None
    if arguments.notify is not None:
        from actionspan.live.notify import Notifier

        notifier = Notifier(arguments.notify, stopping)
    import cv2
    import torch

    from actionspan.jobs.memory import keep_freed_memory
    from actionspan.live.play import Player, play
    from actionspan.streaming import StageError
    from actionspan.video.zones import read_zones, zones_of

    instances = _instances(arguments.learn, source.name)
    learning = from_arguments(LearningSettings, arguments)
    keep_freed_memory()
    cv2.setNumThreads(1)
    torch.set_num_threads(settings.threads)
    zones = zones_of(read_zones(arguments.zones), source.name)
    given = settings, instances, learning, arguments.encoder, zones
    player = Player.load(Path(arguments.model), *given)
    with _signals(stopping) as caught, notifier or nullcontext():
        try:
            how = {"resume": arguments.resume, "echo": sys.stdout, "stopping": stopping}
            send = notifier.send if notifier else None
            ended = play(source, player, settings, arguments.out, **how, on_proposal=send)
        except StageError as error:
            raise InputError(str(error)) from None
    print(f"{arguments.out}: {ended.line}", file=sys.stderr)
    return 128 + caught[0] if caught else 0


def _instances(annotations: Path | None, video: str) -> "Float64 | None":
    """Return the instances (K, 2) of a video in seconds; None without annotations."""
    if annotations is None:
        return None
    import numpy as np

    from actionspan.annotations.tables import read_instances

    known = read_instances(annotations)
    if video not in known:
        raise InputError(f"{annotations}: no video {video!r}; --video names the one that plays")
    rows = [(instance.start, instance.end) for instance in known[video]]
    return np.array(rows, np.float64).reshape(-1, 2)


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
