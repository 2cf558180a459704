"""A shard that is made again: what stands is not decoded, and the file is that of a fresh run."""

from pathlib import Path

import h5py
import pytest

from actionspan.cli import main
from actionspan.errors import InputError
from features.conftest import probe, work_here
from tiers import first_tier
from video.numbered import encode

SMALL, SHARD = "--input-size 32 --device cpu --runtime eager", "features/shards/0000.h5"


def run(words: str) -> None:
    with work_here():
        assert main(words.split()) == 0


def separately(table: Path, folder: Path, run=run) -> Path:
    """Make a shard's features by three steps, those of the workflow."""
    frames, flow, out = (folder / name for name in ("made/frames.h5", "made/flow.h5", SHARD))
    run(f"video frames --shard {table} --recipe {folder}/features/recipe.json --out {frames}")
    run(f"video flow --frames {frames} --out {flow}")
    run(f"features extract --frames {frames} --flow {flow} --out {out} {SMALL}")
    return out


def in_one_pass(table: Path, folder: Path) -> Path:
    recipe = f"--recipe {folder}/features/recipe.json"
    run(f"features encode --shard {table} {recipe} --out {folder}/{SHARD} {SMALL}")
    return folder / SHARD


@pytest.fixture(scope="module")
def videos(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("videos")
    lengths = {"a": 20, "b": 9, "c": 30, "d": 12}
    return {name: encode(folder / f"{name}.mp4", lengths[name]) for name in lengths}


def begin(folder: Path) -> Path:
    (folder / "made").mkdir(parents=True)
    run(f"features recipe --code digest --out {folder}/features/recipe.json {SMALL}")
    return folder


@pytest.fixture
def one(videos, tmp_path) -> tuple[Path, Path]:
    """Begin a folder with the table of one video, that may go."""
    (tmp_path / "a.mp4").write_bytes(videos["a"].read_bytes())
    folder = begin(tmp_path / "it")
    return probe([tmp_path / "a.mp4"], folder / "table.txt"), folder


def keep(shard: Path) -> Path:
    kept = shard.parents[1] / "earlier/1" / shard.name
    kept.parent.mkdir(parents=True)
    return shard.rename(kept)


@pytest.mark.parametrize("make", first_tier([separately, in_one_pass], in_one_pass))
def test_only_new_and_changed_videos_are_decoded(make, videos, tmp_path, capsys):
    grown = begin(tmp_path / "grown")
    shard = make(probe([videos[name] for name in "abc"], grown / "table.txt"), grown)
    # a goes, b is another file now, d comes
    (tmp_path / "now").mkdir()
    now = {name: tmp_path / f"now/{name}.mp4" for name in "bcd"}
    for name, path in now.items():
        path.write_bytes(videos["a" if name == "b" else name].read_bytes())
    keep(shard)
    table = probe(list(now.values()), grown / "table.txt")
    fresh = make(table, begin(tmp_path / "fresh")).read_bytes()
    # of all files, that of c alone is not read: without the others they are rejected
    now["c"].unlink()
    capsys.readouterr()
    assert make(table, grown).read_bytes() == fresh
    assert "rejected" not in capsys.readouterr().err


def refuse(*_) -> None:
    raise InputError("a network is loaded")


@pytest.mark.full
def test_without_anything_new_no_network_is_loaded_and_by_hand_all_is_decoded(
    one, tmp_path, monkeypatch
):
    table, _ = one
    shard = separately(*one)
    whole = shard.read_bytes()
    keep(shard)
    monkeypatch.setattr("actionspan.features.extraction._prepare", refuse)
    in_processes = separately(*one, run=lambda words: main(words.split()))
    assert in_processes.read_bytes() == whole
    run(f"video frames --shard {table} --out {tmp_path}/frames.h5")
    with h5py.File(tmp_path / "frames.h5") as file:
        names = "bouts cuts frame_difference gray mover rgb still time"
        assert [list(group) for group in file.values()] == [names.split()]


def test_a_recipe_changes_with_all_that_features_are_made_by(tmp_path, monkeypatch):
    weights, out = tmp_path / "weights.pt", tmp_path / "recipe.json"
    weights.write_bytes(b"weights")
    by_weights = f"--rgb-weights {weights}"

    def made(words: str = "", code: str = "digest") -> str:
        run(f"features recipe --code {code} --out {out} {words}")
        return out.read_text()

    before, of_weights = made(), made(by_weights)
    assert made() == before
    assert made(by_weights) == of_weights
    found = [made(f"--{words}") for words in ("snippet-frames 16", "bound 10", "crop centre")]
    weights.write_bytes(b"others!")
    found += [before, of_weights, made(by_weights)]
    found.append(made(code="another"))
    monkeypatch.setattr("importlib.metadata.version", lambda _: "99")
    found.append(made())
    assert len(set(found)) == len(found) == 8
