"""A shard that is made again: what stands is not decoded, and the file is that of a fresh run."""

import json
from pathlib import Path

import h5py
import pytest

from actionspan.cli import main
from actionspan.errors import InputError
from actionspan.storage.writing import digest
from features.conftest import work_here
from tiers import first_tier
from video.numbered import encode

SMALL, SHARD = "--input-size 32 --device cpu", "features/shards/0000.h5"


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


def probe(paths: list[Path], out: Path) -> Path:
    run(f"dataset probe --out {out} --videos {' '.join(map(str, paths))}")
    return out


@pytest.fixture
def one(videos, tmp_path) -> tuple[Path, Path]:
    """Begin a folder with the table of one video, that may go."""
    (tmp_path / "a.mp4").write_bytes(videos["a"].read_bytes())
    folder = begin(tmp_path / "it")
    return probe([tmp_path / "a.mp4"], folder / "table.txt"), folder


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


@pytest.mark.full
def test_damaged_features_are_made_again(one):
    shard = in_one_pass(*one)
    whole = shard.read_bytes()
    with h5py.File(shard) as file:
        place = whole.index(file["a/rgb"][:].tobytes())
    keep(shard).write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    assert in_one_pass(*one).read_bytes() == whole


@pytest.mark.full
def test_what_another_recipe_made_is_made_again(one, tmp_path, capsys):
    keep(in_one_pass(*one))
    recipe = one[1] / "features/recipe.json"
    recipe.write_text(json.dumps(json.loads(recipe.read_text()) | {"code": {}}))
    (tmp_path / "a.mp4").unlink()
    with h5py.File(in_one_pass(*one)) as file:
        assert list(file) == []
        assert file.attrs["recipe"] == digest(json.loads(recipe.read_text()))
    assert "rejected a: " in capsys.readouterr().err


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
