"""A shard that is made again: what stands is not decoded, and the file is that of a fresh run."""

import json
from pathlib import Path

import h5py
import pytest

from actionspan.cli import main
from actionspan.errors import InputError
from actionspan.files.storage import digest
from tiers import first_tier
from video.numbered import encode

SMALL = "--input-size 32 --device cpu"


def separately(table: Path, folder: Path) -> Path:
    """Make a shard's features by three steps, those of the workflow."""
    frames, flow, out = (
        folder / name for name in ("made/frames.h5", "made/flow.h5", "features/shards/0000.h5")
    )
    recipe = f"--recipe {folder}/features/recipe.json"
    assert main(f"video frames --shard {table} {recipe} --out {frames}".split()) == 0
    assert main(f"video flow --frames {frames} --out {flow}".split()) == 0
    images = f"--frames {frames} --flow {flow}"
    assert main(f"features extract {images} --out {out} {SMALL}".split()) == 0
    return out


def in_one_pass(table: Path, folder: Path) -> Path:
    out = folder / "features/shards/0000.h5"
    recipe = f"--recipe {folder}/features/recipe.json"
    assert main(f"features encode --shard {table} {recipe} --out {out} {SMALL}".split()) == 0
    return out


@pytest.fixture(scope="module")
def videos(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("videos")
    return {
        name: encode(folder / f"{name}.mp4", frames)
        for name, frames in (("a", 20), ("b", 9), ("c", 30), ("d", 12))
    }


def begin(folder: Path) -> Path:
    (folder / "made").mkdir(parents=True)
    (folder / "made/code.txt").write_text("a checksum")
    words = f"features recipe --code {folder}/made/code.txt --out {folder}/features/recipe.json"
    assert main(f"{words} {SMALL}".split()) == 0
    return folder


def probe(paths: list[Path], out: Path) -> Path:
    assert main(["dataset", "probe", "--out", str(out), "--videos", *map(str, paths)]) == 0
    return out


def keep(shard: Path) -> Path:
    """Keep a shard as the workflow does."""
    kept = shard.parents[1] / "earlier/1" / shard.name
    kept.parent.mkdir(parents=True)
    return shard.rename(kept)


@pytest.mark.parametrize("make", first_tier([separately, in_one_pass], in_one_pass))
def test_only_new_and_changed_videos_are_decoded(make, videos, tmp_path, capsys):
    grown = begin(tmp_path / "grown")
    shard = make(probe([videos[name] for name in "abc"], grown / "table.txt"), grown)
    # a goes, b is another file now, d comes
    content = {name: videos[name].read_bytes() for name in "acd"} | {"b": videos["a"].read_bytes()}
    now = {name: tmp_path / f"now/{name}.mp4" for name in "bcd"}
    (tmp_path / "now").mkdir()
    for name, path in now.items():
        path.write_bytes(content[name])
    keep(shard)
    table = probe(list(now.values()), grown / "table.txt")
    fresh = make(table, begin(tmp_path / "fresh")).read_bytes()
    # of all files, that of c alone is not read: without the others they are rejected
    now["c"].unlink()
    capsys.readouterr()
    assert make(table, grown).read_bytes() == fresh
    assert "rejected" not in capsys.readouterr().err


@pytest.mark.full
def test_damaged_features_are_made_again(videos, tmp_path):
    folder = begin(tmp_path / "it")
    table = probe([videos["a"]], folder / "table.txt")
    shard = in_one_pass(table, folder)
    whole = shard.read_bytes()
    with h5py.File(shard) as file:
        place = whole.index(file["a/rgb"][:].tobytes())
    keep(shard).write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    assert in_one_pass(table, folder).read_bytes() == whole


@pytest.mark.full
def test_what_another_recipe_made_is_made_again(videos, tmp_path, capsys):
    folder = begin(tmp_path / "it")
    copy = tmp_path / "a.mp4"
    copy.write_bytes(videos["a"].read_bytes())
    table = probe([copy], folder / "table.txt")
    keep(in_one_pass(table, folder))
    recipe = folder / "features/recipe.json"
    recipe.write_text(json.dumps(json.loads(recipe.read_text()) | {"code": {}}))
    copy.unlink()
    with h5py.File(in_one_pass(table, folder)) as file:
        assert list(file) == []
        assert file.attrs["recipe"] == digest(json.loads(recipe.read_text()))
    assert "rejected a: " in capsys.readouterr().err


def refuse(*_) -> None:
    raise InputError("a network is loaded")


@pytest.mark.full
def test_without_anything_new_no_network_is_loaded(videos, tmp_path, monkeypatch):
    folder = begin(tmp_path / "it")
    table = probe([videos["a"], videos["b"]], folder / "table.txt")
    shard = separately(table, folder)
    whole = shard.read_bytes()
    keep(shard)
    monkeypatch.setattr("actionspan.features.extraction._prepare", refuse)
    assert separately(table, folder).read_bytes() == whole


@pytest.mark.full
def test_by_hand_frames_are_those_of_every_video(videos, tmp_path):
    folder = begin(tmp_path / "it")
    table = probe([videos["a"], videos["b"]], folder / "table.txt")
    keep(separately(table, folder))
    assert main(f"video frames --shard {table} --out {tmp_path}/frames.h5".split()) == 0
    with h5py.File(tmp_path / "frames.h5") as file:
        assert [list(group) for group in file.values()] == 2 * [
            ["bouts", "cuts", "frame_difference", "gray", "mover", "rgb", "still", "time"]
        ]


RECIPE = "features recipe --code {folder}/code.txt --out {folder}/recipe.json"


@pytest.mark.parametrize(
    "change",
    [
        "--snippet-frames 16",
        "--bound 10",
        "--crop centre",
        "--rgb-weights {folder}/weights.pt",
        "code",
        "weights",
        "library",
    ],
)
def test_a_recipe_changes_with_all_that_features_are_made_by(change, tmp_path, monkeypatch):
    weights, code = tmp_path / "weights.pt", tmp_path / "code.txt"
    weights.write_bytes(b"weights")
    code.write_text("a checksum")
    words = RECIPE + (" --rgb-weights {folder}/weights.pt" if change == "weights" else "")

    def made(words: str) -> str:
        assert main(words.format(folder=tmp_path).split()) == 0
        return (tmp_path / "recipe.json").read_text()

    before = made(words)
    assert made(words) == before
    if change == "code":
        code.write_text("another")
    elif change == "weights":
        weights.write_bytes(b"others!")
    elif change == "library":
        monkeypatch.setattr("importlib.metadata.version", lambda _: "99")
    else:
        words += f" {change}"
    assert made(words) != before
