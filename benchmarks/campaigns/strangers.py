"""Other files of the campaign `models`: encoders, states, checkpoints, classifiers, cmov headers.

Each is one line that names the file; or it works, as the sound one does or with other numbers.
"""

import copy
import io
import json
import resource
import struct
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from torch import nn

from actionspan.errors import InputError
from campaigns.children import Ended, call
from campaigns.damage import damaged
from campaigns.leaves import change, leaves_of
from campaigns.model_samples import sample, saved

MEMORY = 2 << 30  # bytes that a file may take beyond what torch has
_KINDS = ("encoder", "encoder", "state", "checkpoint", "classifier", "cmov")
_NUMBERS = (4097, 10**5, 10**6, 2**20, 2**31, 2**63)
Case = tuple[Ended, str]


class Strangers:
    """Sound files of each kind, and changed ones."""

    def __init__(self, folder: Path) -> None:
        """Make the sound ones; encoders only where their libraries are installed."""
        from campaigns.folders import folders_of_encoders
        from video.numbered import encode

        self._encoders = folders_of_encoders(folder)
        self._bundle = folder / "stream.pt"
        self._bundle.write_bytes(saved(sample("stream")))
        self._state = _state(self._bundle, folder)
        self._checkpoint = _checkpoint(folder)
        self._classifier = _classifier()
        self._video = encode(folder / "whole.mp4", 50).read_bytes()

    def case(self, random: Random, folder: Path, secret: str) -> Case:
        """Read a changed file as its command does; return what came of it, and the file's name."""
        kind = random.choice(_KINDS)
        if kind == "encoder" and not self._encoders:
            kind = "state"
        return {
            "encoder": self._encoder,
            "state": self._of_state,
            "checkpoint": self._of_checkpoint,
            "classifier": self._of_classifier,
            "cmov": self._cmov,
        }[kind](random, folder, secret)

    def _encoder(self, random: Random, folder: Path, secret: str) -> Case:
        from campaigns.folders import write_changed

        write_changed(random.choice(self._encoders), folder / "stranger", random, secret)
        return _called(lambda: _load_encoder("stranger"), folder), "stranger"

    def _of_state(self, random: Random, folder: Path, secret: str) -> Case:
        _write(folder / "state.pt", self._state, random, secret)
        return _called(lambda: _resume_stream(self._bundle), folder), "state.pt"

    def _of_checkpoint(self, random: Random, folder: Path, secret: str) -> Case:
        _write(folder / "checkpoint.pt", self._checkpoint, random, secret)
        return _called(lambda: _trainer().resume(), folder), "checkpoint.pt"

    def _of_classifier(self, random: Random, folder: Path, secret: str) -> Case:
        _write(folder / "model.safetensors", self._classifier, random, secret, saved)
        return _called(_carry_over, folder), "model.safetensors"

    def _cmov(self, random: Random, folder: Path, _: str) -> Case:
        (folder / "stranger.mp4").write_bytes(_packed(self._video, random))
        return _called(_probe, folder), "stranger.mp4"


def _called(function: Callable[[], None], folder: Path) -> Ended:
    return call(lambda: _within(function), folder)


def _within(function: Callable[[], None]) -> int:
    from campaigns.models import watch

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    sys.addaudithook(watch)
    try:
        function()
    except InputError as error:
        print(f"actionspan propose: {error}", file=sys.stderr)
        return 2
    return 0


def _pickled(content: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def _write(
    path: Path,
    content: Any,
    random: Random,
    secret: str,
    in_bytes: Callable[[Any], bytes] = _pickled,
) -> None:
    """Write a content with one to three values changed, or its bytes damaged."""
    content = copy.deepcopy(content)
    way = random.random()
    if way < 0.7:
        for _ in range(random.randint(1, 3)):
            if leaves := list(leaves_of(content)):
                change(random.choice(leaves), random, secret)
    data = in_bytes(content)
    path.write_bytes(data if way < 0.7 else damaged(data, random)[0])


def _state(bundle: Path, folder: Path) -> Any:
    from actionspan.live.clock import STATE_FILE, Progress, write_state
    from actionspan.live.proposing import OnlineProposer
    from actionspan.proposals.model_bundle import load_bundle

    proposer = OnlineProposer(load_bundle(bundle))
    write_state(folder, Progress(made_of="abc", snippets=3, proposer=proposer.state_dict()))
    return torch.load(folder / STATE_FILE)


def _resume_stream(bundle: Path) -> None:
    from actionspan.live.clock import read_state
    from actionspan.live.proposing import OnlineProposer
    from actionspan.proposals.model_bundle import load_bundle
    from actionspan.storage.torch_files import restoring

    found = read_state(Path(), "abc")
    assert found is not None
    with restoring(Path("state.pt")):
        OnlineProposer(load_bundle(bundle)).load_state_dict(found.proposer)


def _trainer() -> Any:
    from actionspan.parallel.member import Replica
    from actionspan.training.trainer import Trainer

    class Toy(Trainer[nn.Module]):
        def train_epoch(self, epoch: int) -> Any:
            raise NotImplementedError

        def validate(self) -> Any:
            raise NotImplementedError

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    optimiser = torch.optim.Adam(model.parameters())
    model(torch.randn(5, 3)).sum().backward()
    optimiser.step()
    return Toy(
        digest="abc",
        model=model,
        replica=Replica(model, optimiser),
        learning_rate=lambda epoch: 0.1,
        kept="last",
        checkpoint=Path("checkpoint.pt"),
    )


def _checkpoint(folder: Path) -> Any:
    from actionspan.storage.torch_files import write_sealed

    write_sealed(folder / "checkpoint.pt", _trainer().state())
    return torch.load(folder / "checkpoint.pt")


def _classifier() -> Any:
    from actionspan.networks.architecture import architecture
    from actionspan.recognition.task import FORMAT
    from networks.tiny import TINY_NETWORK

    weights = architecture(TINY_NETWORK).build(3, 2).state_dict()
    about = {"format": FORMAT, "network": TINY_NETWORK, "stream": "rgb", "classes": ["a", "b"]}
    return {**about, "input_size": 64, "state_dict": dict(weights), "digest": "abc"}


def _carry_over() -> None:
    from actionspan.recognition.task import carry_over
    from recognition.learning import tiny

    network = carry_over(tiny(), 4, ("a", "b"), Path("model.safetensors")).eval()
    assert torch.isfinite(network(torch.ones(1, 4, 64, 64))).all(), "a score is not finite"


def _load_encoder(folder: str) -> None:
    from actionspan.networks.hub import find_source, load_network

    loaded = load_network(find_source(str(Path(folder).absolute())), None, "auto")
    picture = torch.from_numpy(np.arange(64 * 64 * 3, dtype=np.uint8).reshape(1, 64, 64, 3))
    loaded.network(loaded.inputs(picture))


def _probe() -> None:
    from actionspan.dataset.video_facts import probe_video

    if error := probe_video(Path("stranger.mp4")).error:
        raise InputError(f"stranger.mp4: {error}")


def _box(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(content), kind) + content


def _packed(video: bytes, random: Random) -> bytes:
    """Compress the header of an MP4, once or more, with a claim, a bomb, or other boxes around."""
    place = video.index(b"moov") - 4
    header = video[place : place + struct.unpack_from(">I", video, place)[0]]
    if random.random() < 0.4:  # a bomb
        header = _box(b"free", bytes(random.choice([1, 60, 70, 400]) << 20)) + header
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        size = len(header) if random.random() < 0.6 else random.choice([0, 1, 1 << 26, 2**32 - 1])
        packed = struct.pack(">I", size) + zlib.compress(header, 1)
        header = _box(b"cmov", _box(b"dcom", b"zlib") + _box(b"cmvd", packed))
        header = _box(random.choice([b"moov", b"moov", b"udta", b"trak"]), header)
    first = random.choice([b"", b"", _box(random.randbytes(4), bytes(8))])
    whole = first + video[: video.index(b"moov") - 4] + header
    whole = random.choice([whole, header + video, video + header])
    return damaged(whole, random)[0] if random.random() < 0.2 else whole


def changed_json(content: Any, random: Random, secret: str) -> str:
    """Return a JSON with one to three values changed; some numbers become large."""
    for _ in range(random.randint(1, 3)):
        if not (leaves := list(leaves_of(content))):
            break
        leaf = random.choice(leaves)
        if type(leaf.holder[leaf.key]) in (int, float) and random.random() < 0.5:
            leaf.holder[leaf.key] = random.choice(_NUMBERS)
        else:
            change(leaf, random, secret)
    try:
        return json.dumps(content)
    except ValueError:  # a leaf holds what it is in: no file can
        return "{}"
