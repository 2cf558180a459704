"""Features that stand: all that were made by the same recipe of the same file, and no others."""

import contextlib
import json
import random
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import h5py
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.annotations.tables import Video
from actionspan.dataset.sharding import assign_shards
from actionspan.errors import InputError
from actionspan.storage.writing import create_h5, open_h5
from actionspan.video.earlier import (
    FEATURES,
    earlier_features,
    recipe_attribute,
    recipe_digest,
    take_features,
)
from actionspan.workflow.features import drop_features, keep_features
from tiers import examples
from worlds.videos import video_of


def row(name: str, content: str = "same") -> Video:
    return video_of(name, 4 / 3, 29.97, sha256=content, stated_frames=41)


def write_recipe(folder: Path, content: str = "one") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipe.json").write_text(json.dumps({"made of": content}))
    return folder / "recipe.json"


def write_shard(path: Path, videos: list[Video], recipe: Path) -> None:
    """Write features that tell of which file they are, and by which recipe they were made."""
    made_by = recipe_digest(recipe)
    with create_h5(path, "digest") as file:
        file.attrs.update(recipe_attribute(made_by))
        for video in videos:
            group = file.create_group(video.video_id)
            group["rgb"] = [f"{video.sha256} by {made_by}"]
            group.attrs.update(video.attributes)


@pytest.fixture
def made(tmp_path) -> tuple[Path, Path]:
    """Return a recipe, and an earlier shard of the videos a and b that was made by it."""
    recipe = write_recipe(tmp_path / "features")
    shard = tmp_path / "features/earlier/1/0000.h5"
    write_shard(shard, [row("a"), row("b")], recipe)
    return recipe, shard


def test_features_stand_for_the_same_file_alone(made):
    recipe, shard = made
    assert earlier_features([row("a"), row("b"), row("c")], recipe) == {"a": shard, "b": shard}
    others = [{"sha256": "other"}, {"fps": 30.0}, {"duration_seconds": 1.0}, {"stated_frames": 50}]
    for change in others:
        assert earlier_features([replace(row("a"), **change), row("b")], recipe) == {"b": shard}
    # what has no say in them
    moved = replace(row("a"), path=Path("elsewhere.mp4"), subset="training", frames=39)
    assert earlier_features([moved], recipe) == {"a": shard}


def test_without_a_recipe_nothing_stands(made, tmp_path):
    assert earlier_features([row("a")], None) == {}
    with pytest.raises(InputError, match=r"none\.json: no such file"):
        earlier_features([row("a")], tmp_path / "none.json")


def test_what_another_recipe_made_is_removed_where_it_is_only_kept(made, tmp_path):
    recipe, shard = made
    still = tmp_path / "features/shards/0000.h5"
    write_shard(still, [row("a")], recipe)
    write_recipe(tmp_path / "features", "two")
    assert earlier_features([row("a")], recipe) == {}
    assert not shard.exists()
    assert still.exists(), "a result is not touched"


def test_a_damaged_file_holds_nothing(made):
    recipe, shard = made
    whole = shard.read_bytes()
    renamed = whole.replace(b"recipe", b"recite")
    for damaged in (b"", b"not HDF5", whole[: len(whole) // 2], renamed):
        shard.write_bytes(damaged)
        assert earlier_features([row("a")], recipe) == {}


def test_a_frame_group_is_filled_with_features_or_left_as_it_is(made, tmp_path):
    _, shard = made
    with create_h5(tmp_path / "frames.h5", "digest") as file:
        group = file.create_group("a")
        assert not take_features(None, row("a"), group)
        assert not take_features(shard, row("c"), group)
        assert list(group) == []
        assert take_features(shard, row("a"), group)
        assert group[FEATURES]["rgb"].asstr()[0].startswith("same by ")
        assert dict(group.attrs) == row("a").attributes


@examples(30, 10)
@given(seed=st.integers(0, 2**32))
def test_nothing_is_made_twice_whatever_the_history(seed):
    """Videos come, go and change, shards split and merge, settings change, and runs are killed."""
    chance = random.Random(seed)
    videos: dict[str, str] = {}
    finished: dict[tuple[str, str], str] = {}  # by video and content: the recipe
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        results = Path("results/features")
        for _ in range(8):
            # what a person does
            for name in chance.sample(range(24), chance.randint(0, 8)):
                content = chance.choice(["", "old", "old", "new"])
                videos.pop(f"v{name}", None)
                videos |= {f"v{name}": content} if content else {}
            per_shard, made_of = chance.choice([1, 2, 3, 3, 3]), chance.choice("aaaaab")
            recipe = write_recipe(results, made_of)
            # of another recipe nothing has to be kept
            finished = {key: by for key, by in finished.items() if by == made_of}
            # a run of Snakemake
            shards = {
                f"{results}/shards/{name}.h5": [row(video, videos[video]) for video in members]
                for name, members in assign_shards(list(videos), per_shard).items()
            }
            needed = [path for path, rows in shards.items() if not up_to_date(path, rows, recipe)]
            chance.shuffle(needed)
            keep_features(run_of(needed), list(shards))
            whole = chance.random() < 0.4
            for path in needed if whole else needed[: chance.randint(0, len(needed))]:
                Path(path).unlink(missing_ok=True)
                found = earlier_features(shards[path], recipe)
                for video in shards[path]:
                    key = (video.video_id, video.sha256)
                    assert video.video_id in found or key not in finished, f"{key} is made twice"
                    if video.video_id in found:
                        with open_h5(found[video.video_id]) as file:
                            said = file[video.video_id]["rgb"].asstr()[0]
                        assert said == f"{video.sha256} by {recipe_digest(recipe)}"
                if not whole and chance.random() < 0.2:
                    break  # killed
                write_shard(Path(path), shards[path], recipe)
                finished |= {(each.video_id, each.sha256): made_of for each in shards[path]}
            if whole:
                drop_features(list(shards))
                assert not (results / "earlier").exists()
                finished = dict.fromkeys(videos.items(), made_of)


def run_of(shards: list[str]) -> SimpleNamespace:
    """Return Snakemake's workflow with a job for each shard."""
    jobs = [SimpleNamespace(output=[shard]) for shard in shards]
    return SimpleNamespace(dag=SimpleNamespace(needrun_jobs=lambda: jobs))


def up_to_date(path: str, rows: list[Video], recipe: Path) -> bool:
    """Return whether a shard holds these videos, made by this recipe."""
    if not Path(path).exists():
        return False
    with h5py.File(path) as file:
        held = {name: dict(group.attrs) for name, group in file.items()}
        same = file.attrs["recipe"] == recipe_digest(recipe)
    return same and held == {each.video_id: each.attributes for each in rows}


def test_a_file_system_without_hard_links_keeps_nothing(made, tmp_path, monkeypatch):
    recipe, _ = made
    monkeypatch.chdir(tmp_path)
    shard = "results/features/shards/0000.h5"
    write_shard(Path(shard), [row("a")], recipe)
    refuse = Mock(side_effect=PermissionError(1, "Operation not permitted"))
    monkeypatch.setattr("os.link", refuse)
    keep_features(run_of([shard]), [shard])
    assert not list(tmp_path.glob("results/features/earlier/*/*"))


def test_what_is_kept_stays_while_a_shard_is_missing(made, tmp_path, monkeypatch):
    recipe, _ = made
    monkeypatch.chdir(tmp_path)
    shards = [f"results/features/shards/{number:04d}.h5" for number in range(3)]
    for shard in shards[:2]:
        write_shard(Path(shard), [row("a")], recipe)
    keep_features(run_of(shards), shards)
    kept = Path("results/features/earlier")
    assert sorted(map(str, kept.glob("*/*"))) == [f"{kept}/1/0000.h5", f"{kept}/1/0001.h5"]
    assert (kept / "1/0000.h5").samefile(shards[0]), "no room is taken"
    Path(shards[0]).unlink()
    drop_features(shards)
    keep_features(run_of(shards), shards)
    names = [path.relative_to(kept).as_posix() for path in sorted(kept.glob("*/*"))]
    assert names == ["1/0000.h5", "1/0001.h5", "2/0001.h5"]
    for shard in shards:
        write_shard(Path(shard), [row("a")], recipe)
    drop_features(shards)
    assert not kept.exists()
