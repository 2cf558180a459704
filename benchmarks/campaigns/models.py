"""Model files from strangers: each is one line that names the file, or a model that works."""

import copy
import io
import json
import resource
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import safetensors.torch

from actionspan.errors import InputError
from actionspan.storage.model_files import _seal
from campaigns.cases import Result, complaint, fault, wrong
from campaigns.children import Ended, call
from campaigns.damage import damaged
from campaigns.leaves import change, leaves_of
from campaigns.model_samples import SAMPLES, WIDTHS, sample, saved, settings
from campaigns.pickles import forged
from campaigns.strangers import Strangers

MEMORY = 2 << 30  # bytes that a model may take beyond what torch has
LONGEST = 1000  # characters of a line
SECRET = "secret.safetensors"
_STEP, _SNIPPETS = 0.32, 24  # of the small input: seconds, and how many
_REAL = 0.02  # of the models that work see a video, not features of one
_OTHERS = 0.4  # of the cases are no models: encoders, states, checkpoints, classifiers, videos
_TUNED = 0.02  # of the cases have encoders of their own, 13 MB
_ADDRESSES = ("socket.connect", "socket.getaddrinfo", "urllib.Request", "subprocess.Popen")
Content = dict[str, Any]


class Models:
    """A model of a kind that runs make, with leaves or records of it changed; or a stranger."""

    name = "models"
    count = 10_000

    def prepare(self, folder: Path) -> None:
        """Make a model of each kind, and load what proposing needs."""
        import actionspan.propose.proposer  # noqa: F401

        self._secret = str(folder / SECRET)
        Path(self._secret).write_bytes(b"of another file")
        self._video = _video(folder / "video.avi")
        self._samples = {name: sample(name) for name in SAMPLES}
        self._strangers = Strangers(folder)

    def case(self, random: Random, folder: Path) -> Result:
        """Load a changed file as `propose` does, and propose on a small input if it loads."""
        if random.random() < _OTHERS:
            return judged(*self._strangers.case(random, folder, self._secret), folder)
        name = "tuned" if random.random() < _TUNED else random.choice(SAMPLES[:-1])
        content = copy.deepcopy(self._samples[name])
        if random.random() < 0.7:
            for _ in range(random.randint(1, 3)):
                self._change(content, random)
            data = saved(content)
        else:
            data = random.choice(_RECORDS)(saved(content), random)
        (folder / "stranger.safetensors").write_bytes(data)
        real = random.random() < _REAL
        ended = call(lambda: _propose(Path("stranger.safetensors"), self._video, real=real), folder)
        return judged(ended, "stranger.safetensors", folder)

    def _change(self, content: Content, random: Random) -> None:
        """Change a leaf, or leave one out."""
        given = json.loads(content["settings"]) if _is_json(content.get("settings")) else None
        leaves = list(leaves_of(content))
        if given is not None and random.random() < 0.4:
            leaves = list(leaves_of(given))
        if not leaves:
            return
        leaf = random.choice(leaves)
        change(leaf, random, self._secret)
        if given is not None and leaf.holder is not content:
            with suppress(ValueError):  # a leaf holds what it is in: no file can
                content["settings"] = json.dumps(given)


def judged(ended: Ended, file: str, folder: Path) -> Result:
    """Return what a case has come to: a line that names the file, or something that works."""
    if (folder / "PWNED").exists():
        return wrong("code of the file was run")
    if "another file" in ended.output:
        return wrong("another file was read, or an address opened", ended.output)
    if found := fault(ended):
        return found
    if ended.status:
        line = complaint(ended)
        if file not in line:
            return wrong("the line does not name the file", line)
        if len(line) > LONGEST:
            return wrong("a long line", line[:LONGEST])
        path = folder / file
        # a file may be as large as it says, and larger than the memory of a case
        own = path.is_file() and f" {path.stat().st_size} bytes" in line
        if "memory" in line and not own:
            return wrong("more memory than it says", line)
        return Result("refused in a line")
    return Result("works")


def _is_json(text: Any) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (TypeError, ValueError, RecursionError):
        return False


def _video(path: Path) -> Path:
    import cv2

    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 25, (96, 64))
    pictures = np.random.default_rng(1).integers(0, 255, (40, 64, 96, 3), np.uint8)
    for picture in pictures:
        writer.write(picture)
    writer.release()
    return path


def _propose(path: Path, video: Path, *, real: bool) -> int:
    """Propose on a small input; the encoders compute it where they are not those of the samples."""
    from actionspan.propose import proposer

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    sys.addaudithook(watch)
    load, known = proposer.VideoEncoder, json.loads(settings())

    def build(settings: Any, weights: Any) -> Any:
        same = all(
            json.loads(json.dumps(vars(getattr(settings, part)), default=str)) == known[part]
            for part in ("frames", "flow", "encoders")
        )
        return load(settings, weights) if real or weights or not same else _Seen()

    proposer.VideoEncoder = build  # type: ignore[assignment, misc]
    try:
        model = proposer.Proposer(path)
        if isinstance(model._encode, _Seen):
            proposer.read_duration = lambda _: _STEP * _SNIPPETS
        proposed = model.propose(video)
    except InputError as error:
        print(f"actionspan propose: {error}", file=sys.stderr)
        return 2
    for values in (proposed.segments, proposed.scores, proposed.probabilities):
        assert np.isfinite(np.asarray(values, np.float64)).all(), "a result is not finite"
    return 0


def watch(event: str, words: tuple[Any, ...]) -> None:
    """Print when an address, or the file that no other may name, is opened."""
    if event in _ADDRESSES or (event == "open" and SECRET in str(words[0])):
        print(f"another file or address: {event} {words[0]!r}", flush=True)


class _Seen:
    """Encoders that have seen a small video: their features are random."""

    streams = property(lambda self: self)

    def check(self, wanted: dict[str, int]) -> None:
        """Refuse what the encoders of the samples do not give."""
        if wanted != WIDTHS:
            raise InputError(f"stranger.safetensors: takes {wanted}, the encoders give {WIDTHS}")

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Return features, facts of motion and the number of frames."""
        chance = np.random.default_rng(1)
        features = {
            stream: chance.normal(size=(_SNIPPETS, width)).astype(np.float32)
            for stream, width in WIDTHS.items()
        }
        facts = {key: chance.random(_SNIPPETS) for key in ("flow_magnitude", "frame_difference")}
        return features, facts | {"time": (np.arange(_SNIPPETS) + 0.5) * _STEP}, 8 * _SNIPPETS


def _claim(data: bytes, random: Random) -> bytes:
    """Change numbers, types or names in the header: shapes, places, a tensor less or twice."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    for _ in range(random.randint(1, 2)):
        one, two = random.sample(sorted(set(header) - {"__metadata__"}), 2)
        numbers = random.choice([header[one]["shape"], header[one]["data_offsets"]])
        if numbers and random.random() < 0.5:
            place = random.randrange(len(numbers))
            numbers[place] = random.choice([-1, 0, 1, 7, 10**6, 2**31, 2**63, 10**30, "1", None])
        elif random.random() < 0.3:
            header[one]["dtype"] = random.choice(["F64", "F32", "U8", "BOOL", "F8_E4M3", "x", 1])
        elif random.random() < 0.5:
            header[one], header[two] = header[two], header[one]
        else:
            header[one] = header[two]
    return _headed(json.dumps(header).encode(), data[8 + size :], random)


def _headed(text: bytes, rest: bytes, random: Random) -> bytes:
    """Return a file with this header, whose length may be another."""
    said = random.choice([len(text)] * 5 + [0, len(text) + 8, 2**24 + 1, 2**40, 2**64 - 1])
    return said.to_bytes(8, "little") + text + rest


def _repeated(data: bytes, random: Random) -> bytes:
    """Let plain values name tensors, one of them many times; the seal is right."""
    size = int.from_bytes(data[:8], "little")
    names = sorted(set(json.loads(data[8 : 8 + size])) - {"__metadata__"})
    text = json.dumps({name: {"$tensor": random.choice([*names, "none"])} for name in names})
    if random.random() < 0.5:
        large = json.dumps([{"$tensor": names[-1]}] * random.choice([10, 10**4, 10**6]))
        text = f'{{"format": "actionspan model 1", "weights": {large}}}'
    tensors = safetensors.torch.load(data)
    sealed = {"content": text, "seal": _seal(text, tensors)}
    return safetensors.torch.save(tensors, {"actionspan": json.dumps(sealed)})


def _other_kind(_: bytes, random: Random) -> bytes:
    """Return a file of torch.save with a forged pickle, or the pickle alone."""
    if random.random() < 0.5:
        return forged(random)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("m/data.pkl", forged(random))
    return buffer.getvalue()


_RECORDS: tuple[Callable[[bytes, Random], bytes], ...] = (
    lambda data, random: damaged(data, random)[0],
    _claim,
    _claim,
    _repeated,
    _other_kind,
)
CAMPAIGN = Models()
