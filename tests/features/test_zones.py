"""Zones in the steps of the workflow: the features are those of one pass, within the zones."""

import json
from itertools import islice

import h5py
import numpy as np
import pytest

from actionspan.annotations.tables import read_videos
from actionspan.dataset.sharding import possible_shards
from actionspan.video.earlier import earlier_features
from actionspan.video.zones import motion_in_shards, read_zones, zones_attributes
from features.conftest import probe, run, work_here
from video.numbered import encode, write_film
from worlds.camera import LEFT, RIGHT, scene

MOTION = "--source motion --no-mover"
FRAMES = "--snippet-frames 4 --mover-side 0 --short-side 64"


@pytest.fixture(scope="module")
def shard(tmp_path_factory):
    folder = tmp_path_factory.mktemp("yard")
    frames = islice(scene(), 220)
    paths = [write_film(folder / "yard.mp4", frames), encode(folder / "other.mp4", 40)]
    (folder / "zones.json").write_text(json.dumps({"yard*": [LEFT, RIGHT]}))
    return probe(paths, folder / "shard.txt")


def motion_of(path, name):
    with h5py.File(path) as file:
        group = file[name]
        facts = {key: group[key][:] for key in group if key != "flow"}
        return facts, dict(group.attrs)


def test_steps_give_the_features_of_one_pass_within_the_zones(shard, tmp_path):
    zones = f"--zones {shard.parent}/zones.json"
    with work_here():
        for name, within in (("whole", ""), ("zones", zones)):
            made = f"{tmp_path}/{name}"
            run(f"video frames --shard {shard} --out {made}-frames.h5 {FRAMES} {within}")
            run(f"video flow --frames {made}-frames.h5 --out {made}-flow.h5")
            inputs = f"--frames {made}-frames.h5 --flow {made}-flow.h5"
            run(f"features extract {inputs} --out {made}.h5 {MOTION}")
            run(f"features encode --shard {shard} --out {made}-one.h5 {FRAMES} {MOTION} {within}")
    for name in ("yard", "other"):
        steps, attributes = motion_of(tmp_path / "zones.h5", name)
        once, _ = motion_of(tmp_path / "zones-one.h5", name)
        assert steps.keys() == once.keys()
        assert all(np.array_equal(steps[key], once[key]) for key in steps)
        whole, _ = motion_of(tmp_path / "whole.h5", name)
        if name == "yard":  # its rows get the zone with the most motion
            cameras = read_zones(shard.parent / "zones.json")
            moved = motion_in_shards([tmp_path / "zones.h5", tmp_path / "whole.h5"], cameras)
            assert moved.keys() == {"yard"}
            assert np.array_equal(moved["yard"].motion, steps["zone_motion"])
            assert moved["yard"].names == [LEFT["name"], RIGHT["name"]]
        if name == "other":  # whose name has no zones
            assert all(np.array_equal(steps[key], whole[key]) for key in steps)
            assert "zones" not in attributes
    # the pavement: in the first two seconds somebody walks there, and nobody elsewhere
    steps, attributes = motion_of(tmp_path / "zones.h5", "yard")
    whole, _ = motion_of(tmp_path / "whole.h5", "yard")
    early, event = steps["time"] < 2, (steps["time"] > 6.2) & (steps["time"] < 8)
    calm, busy = (facts["flow_magnitude"] for facts in (steps, whole))
    assert calm[early].max() < 0.3 * busy[early].max()
    assert calm[event].min() > calm[early].max()
    assert steps["zone_motion"].shape == (len(calm), 2)
    assert steps["zone_motion"][event].mean(axis=0)[0] > steps["zone_motion"][event].mean(axis=0)[1]
    assert attributes["zones"]
    assert "zone_motion" not in whole


def test_features_within_other_zones_are_not_taken_over(shard, tmp_path):
    with work_here():
        (tmp_path / "shards").mkdir()
        (tmp_path / "recipe.json").write_text("{}")
        kept = f"--recipe {tmp_path}/recipe.json --zones {shard.parent}/zones.json"
        given = f"--shard {shard} {FRAMES} {MOTION} {kept}"
        videos = read_videos(shard)
        name = next(iter(possible_shards(videos[0].video_id)))
        run(f"features encode --out {tmp_path}/shards/{name}.h5 {given}")
    within = read_zones(shard.with_name("zones.json"))
    yard = [video for video in videos if video.video_id == "yard"]
    recipe = tmp_path / "recipe.json"
    assert zones_attributes(within["yard*"])
    found = {
        str(sorted(cameras)): set(earlier_features(yard, recipe, cameras))
        for cameras in (within, {}, {"*": within["yard*"][:1]})
    }
    assert found["['yard*']"] == {"yard"}
    assert found["[]"] == found["['*']"] == set()
