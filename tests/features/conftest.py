"""Small shards and tables of the features stage, and work without processes of its own."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from actionspan.annotations.tables import VIDEO_COLUMNS, write_annotations, write_videos
from actionspan.cli import main
from actionspan.errors import InputError
from actionspan.jobs.apart import Outcome
from actionspan.networks.bn_inception import BNInception
from actionspan.networks.i3d import I3D
from actionspan.storage.writing import create_h5
from worlds.scored import annotated
from worlds.videos import video_of

SEED = 7
# Converting a network for OpenVINO takes longer than computing so little; test_runtime does.
SMALL = {"input_size": 32, "device": "cpu", "runtime": "eager"}


@contextmanager
def work_here() -> Iterator[None]:
    """Do the work of shards in this process, for what is about their content alone."""

    def work_apart(work, items, *, prepare=None, **_):
        for index, item in enumerate(items):
            if prepare and not index:
                prepare()
            try:
                yield index, Outcome(work(item))
            except InputError as error:
                yield index, Outcome(reason=str(error))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("actionspan.jobs.parts.work_apart", work_apart)
        yield


@pytest.fixture
def here() -> Iterator[None]:
    with work_here():
        yield


def run(words: str, code: int = 0) -> None:
    assert main(words.split()) == code


def probe(paths: Iterable[Path], out: Path) -> Path:
    run(f"dataset probe --out {out} --videos {' '.join(map(str, paths))}")
    return out


@pytest.fixture(scope="package")
def weights(tmp_path_factory) -> dict[str, Path]:
    """Return checkpoints of BN-Inception, with batch norms that do something, and of I3D."""
    torch.manual_seed(SEED)
    networks = {"bn": BNInception(classes=6), "i3d": I3D(classes=5)}
    randomise_norms(networks["bn"])
    paths = {name: tmp_path_factory.mktemp("weights") / f"{name}.pt" for name in networks}
    for name, path in paths.items():
        torch.save(networks[name].state_dict(), path)
    return paths


def randomise_norms(network: torch.nn.Module) -> None:
    """Give every batch norm statistics that folding must not lose."""
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d | torch.nn.BatchNorm3d):
            torch.nn.init.normal_(module.running_mean, 0, 0.1)
            torch.nn.init.uniform_(module.running_var, 0.5, 2)
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.normal_(module.bias, 0, 0.1)


def assert_same_h5(one: h5py.Group, two: h5py.Group) -> None:
    assert list(one) == list(two)
    assert {**one.attrs, "digest": ""} == {**two.attrs, "digest": ""}
    for name in one:
        if isinstance(one[name], h5py.Group):
            assert_same_h5(one[name], two[name])
        else:
            assert one[name].dtype == two[name].dtype
            np.testing.assert_array_equal(one[name][:], two[name][:])


@pytest.fixture
def write_tables(tmp_path: Path) -> Callable[[dict[str, str]], tuple[Path, Path]]:
    """Write videos.tsv and annotations.json for videos given with their subsets."""

    def write(subsets: dict[str, str], duration: float = 10.0) -> tuple[Path, Path]:
        videos, annotations = tmp_path / "videos.tsv", tmp_path / "annotations.json"
        write_videos(videos, [video_of(name, duration) for name in subsets], VIDEO_COLUMNS)
        known = [annotated(name, subset=subsets[name], duration=duration) for name in subsets]
        write_annotations(annotations, known)
        return videos, annotations

    return write


@pytest.fixture
def write_shard(tmp_path: Path) -> Callable[..., Path]:
    """Write a feature shard of given streams a video, over 10 s, and cuts of some videos."""

    def write(
        name: str,
        videos: dict[str, dict[str, np.ndarray]],
        motion: bool = True,
        cuts: Mapping[str, np.ndarray] = {},
    ) -> Path:
        path = tmp_path / f"{name}.h5"
        with create_h5(path, "test") as file:
            for video_id, streams in videos.items():
                group = file.create_group(video_id)
                rows = len(next(iter(streams.values())))
                for stream, values in streams.items():
                    group[stream] = values.astype(np.float32)
                group["time"] = (np.arange(rows) + 0.5) * 10.0 / rows
                if motion:
                    group["frame_difference"] = np.linspace(0, 1, rows, dtype=np.float32)
                    group["flow_magnitude"] = np.linspace(2, 4, rows, dtype=np.float32)
                if video_id in cuts:
                    group["cuts"] = cuts[video_id]
        return path

    return write


@pytest.fixture
def write_images(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """Write a frames and a flow shard of small random images."""

    def write(
        lengths: dict[str, int], name: str = "s", pairs: int = 2, seed: int = SEED
    ) -> tuple[Path, Path]:
        frames, flow = tmp_path / f"{name}_frames.h5", tmp_path / f"{name}_flow.h5"
        with create_h5(frames, "frames") as frame_file, create_h5(flow, "flow") as flow_file:
            for video_id, rows in lengths.items():
                random = np.random.default_rng([seed, *video_id.encode()])
                frame_group = frame_file.create_group(video_id)
                frame_group["rgb"] = random.integers(0, 256, (rows, 40, 56, 3), np.uint8)
                frame_group["mover"] = random.integers(0, 256, (rows, 32, 32, 3), np.uint8)
                group = flow_file.create_group(video_id)
                group["flow"] = random.integers(100, 156, (rows, 2 * pairs, 40, 56), np.uint8)
                group["flow"].attrs["bound"] = 20.0
                group["time"] = np.arange(rows) + 0.5
                group["frame_difference"] = random.random(rows, np.float32)
                group["flow_magnitude"] = random.random(rows, np.float32)
                for one in (frame_group, group):
                    one.attrs.update(sha256=video_id, fps=25.0, duration_seconds=float(rows))
        return frames, flow

    return write
