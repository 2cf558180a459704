"""Damaged and forged files of features and of weights: each is one line, or its numbers."""

import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import h5py
import numpy as np
import torch

from actionspan.annotations.tables import VIDEO_COLUMNS, Video, write_videos
from actionspan.errors import InputError
from campaigns.cases import Result, fault, wrong
from campaigns.children import call, command
from campaigns.damage import damaged
from campaigns.pickles import forged

SECRET = b"of another file "
_CELLS = ("", "nan", "1e400", "x", '"1"', "1_0", "0x1", "\0", "\x1b[2J", "é", " 1 ", "1;2", "-inf")


class Features:
    """One of two files is damaged or forged; the other is sound."""

    name = "features"
    count = 4000

    def prepare(self, folder: Path) -> None:
        """Write sound files of every form."""
        import safetensors.torch

        import actionspan.features.external
        import actionspan.networks.weights
        import actionspan.temporal.networks  # noqa: F401
        from actionspan.temporal.networks import build_model
        from actionspan.temporal.settings import TemporalSettings

        self._folder = folder
        matrix = np.random.default_rng(1).normal(size=(12, 6)).astype(np.float32)
        np.save(folder / "b.npy", matrix)
        np.savetxt(folder / "b.csv", matrix, delimiter=",", fmt="%.7g")
        hows: tuple[dict[str, Any], ...] = (
            {},
            {"chunks": (4, 6), "compression": "gzip"},
            {"chunks": (4, 6), "fletcher32": True},
        )
        for number, how in enumerate(hows):
            with h5py.File(folder / f"b.{number}.h5", "w") as file:
                file.create_dataset("features", data=matrix, **how)
        settings = TemporalSettings(hidden=8)
        network = build_model("origin", 6, settings)
        state = network.state_dict()
        torch.save(state, folder / "w.0.pt")
        torch.save({"state_dict": state, "epoch": 1}, folder / "w.1.pt")
        torch.save(state, folder / "w.2.pt", _use_new_zipfile_serialization=False)
        safetensors.torch.save_file(state, folder / "w.safetensors")
        from actionspan.storage.model_files import write_model
        from actionspan.temporal.networks import model_content

        write_model(folder / "m.pt", model_content("origin", 6, settings, state, "x"))
        (folder / "secret").write_bytes(SECRET * 100)

    def case(self, random: Random, folder: Path) -> Result:
        """Read a file as the commands do."""
        what = random.random()
        if what < 0.25:
            return self._weights(random, folder)
        if what < 0.4:
            return self._external(folder, forged(random), f"b{random.choice(['.pkl', '.pickle'])}")
        if what < 0.55:
            write = random.choice(_FORGERIES)
            suffix = write(folder / "made", random, self._folder)
            content = (folder / "made").read_bytes()
            return self._external(folder, content, f"b{suffix}")
        files = sorted(path for path in self._folder.glob("b.*"))
        path = random.choice(files)
        content, _ = damaged(path.read_bytes(), random)
        return self._external(folder, content, f"b{path.suffix}")

    def _external(self, folder: Path, content: bytes, name: str) -> Result:
        """Import two files, of which one is `content`."""
        given = folder / "given"
        given.mkdir()
        shutil.copy(self._folder / "b.npy", given / "a.npy")
        (given / name).write_bytes(content)
        facts: dict[str, Any] = {"fps": 25.0, "frames": 300, "duration_seconds": 12.0}
        sizes: dict[str, Any] = {"width": 1, "height": 1, "sha256": "", "path": Path()}
        videos = [Video(video_id=video, **facts, **sizes) for video in "ab"]
        write_videos(folder / "videos.tsv", videos, VIDEO_COLUMNS)
        words = "features external --folder given --videos videos.tsv --out out.h5".split()
        ended = call(command(words), folder)
        if found := fault(ended):
            return found
        if (folder / "PWNED").exists():
            return wrong("code of the file was run")
        if ended.status:
            return Result("refused in a line")
        with h5py.File(folder / "out.h5") as file:
            lines = [line for line in ended.errors.splitlines() if line.startswith("rejected b: ")]
            if "b" not in file:
                one = len(lines) == 1 and len(ended.errors.splitlines()) <= 12
                return (
                    Result("rejected in a line")
                    if one
                    else wrong("more than one line", ended.errors)
                )
            rows = file["b/external"][:]
        if not np.isfinite(rows).all():
            return wrong("values that are not finite")
        if SECRET[:8] in rows.tobytes():
            return wrong("another file was read")
        return Result("read")

    def _weights(self, random: Random, folder: Path) -> Result:
        """Load weights or a model."""
        path = random.choice(sorted(self._folder.glob("[wm].*")))
        changed = folder / f"{path.name[0]}{path.suffix}"
        if random.random() < 0.2 and path.suffix == ".pt":
            changed.write_bytes(forged(random))
        else:
            changed.write_bytes(damaged(path.read_bytes(), random)[0])
        ended = call(lambda: _load(changed), folder)
        if found := fault(ended):
            return found
        if (folder / "PWNED").exists():
            return wrong("code of the file was run")
        return Result("refused in a line" if ended.status else "read")


def _load(path: Path) -> int:
    """Read a file as encoders and predictions do."""
    from actionspan.networks.weights import load_file
    from actionspan.temporal.networks import load_model

    read: Callable[[Path], Any] = load_model if path.name.startswith("m") else load_file
    try:
        state = read(path)
    except InputError as error:
        print(f"actionspan: {error}", file=sys.stderr)
        return 2
    if isinstance(state, Mapping):
        assert all(isinstance(value, torch.Tensor) for value in state.values())
    return 0


def _infinite(path: Path, random: Random, _: Path) -> str:
    """Write numbers that are finite in float64 alone, or not at all."""
    matrix = np.ones((12, 6))
    matrix[random.randrange(12), random.randrange(6)] = random.choice(
        [1e300, -1e39, np.inf, np.nan]
    )
    return _written(path, matrix, random)


def _shapes(path: Path, random: Random, _: Path) -> str:
    """Write a shape or a type that is no matrix of numbers."""
    shape = random.choice(
        [(), (0,), (0, 6), (12, 0), (6,), (1, 12, 6), (2, 12, 6), (12, 1, 1, 6), (12, 7)]
    )
    kind = random.choice(["f4", "f8", "f2", "i8", "u1", "?", "c16", "S3", "M8[s]", "i4,f4", "V8"])
    return _written(path, np.zeros(shape, kind), random)


def _written(path: Path, matrix: Any, random: Random) -> str:
    suffix = random.choice([".npy", ".h5", ".csv"])
    if suffix == ".csv" and matrix.ndim == 2 and matrix.dtype.kind == "f":
        np.savetxt(path, matrix, delimiter=random.choice([",", ";", " "]))
        return suffix
    if suffix == ".h5" and matrix.dtype.kind != "M":
        with h5py.File(path, "w") as file:
            file["features"] = matrix
        return suffix
    with path.open("wb") as file:
        np.save(file, matrix)
    return ".npy"


def _claims(path: Path, random: Random, _: Path) -> str:
    """Write a header that claims a size which the file does not have."""
    rows = random.choice([10**5, 10**9, 10**18, 2**62])
    if random.random() < 0.5:
        header = {"descr": "<f4", "fortran_order": False, "shape": (rows, rows)}
        with path.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
        return ".npy"
    with h5py.File(path, "w") as file:
        file.create_dataset("features", (min(rows, 10**6), 10**6), "f4", chunks=(1, 1024))
    return ".h5"


def _elsewhere(path: Path, random: Random, shared: Path) -> str:
    """Write HDF5 whose values are those of another file."""
    secret = shared / "secret"
    with h5py.File(path, "w") as file:
        what = random.randrange(5)
        if what == 0:
            file.create_dataset("f", (12, 6), "f4", external=[(str(secret), 0, 288)])
        elif what == 1:
            layout = h5py.VirtualLayout((12, 6), "f4")
            layout[:] = h5py.VirtualSource(str(shared / "b.0.h5"), "features", (12, 6))
            file.create_virtual_dataset("f", layout)
        elif what == 2:
            file["f"] = h5py.ExternalLink(str(shared / "b.0.h5"), "features")
        elif what == 3:
            file["f"] = h5py.SoftLink("/f")
        else:
            file["a"] = np.ones((12, 6), "f4")
            file["f"] = file["a"]  # a hard link
    return ".h5"


def _texts(path: Path, random: Random, _shared: Path) -> str:
    """Write a table with odd cells."""
    cells = [[f"{random.random():.3f}" for _ in range(6)] for _ in range(12)]
    for _ in range(random.randint(1, 3)):
        cells[random.randrange(12)][random.randrange(6)] = random.choice(_CELLS)
    ends = random.choice(["\n", "\r\n", "\r", "\n\n"])
    text = ends.join(random.choice([",", ",", ";", "\t"]).join(row) for row in cells)
    path.write_bytes(text.encode(random.choice(["utf-8", "utf-16", "latin-1"])))
    return ".csv"


_FORGERIES = (_infinite, _shapes, _claims, _elsewhere, _texts)
CAMPAIGN = Features()
