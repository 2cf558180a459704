"""Zones: only what happens inside them counts, and files of zones are what they should be."""

import json
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.errors import InputError
from actionspan.propose.proposed import MotionProposer
from actionspan.video.decode import read_frames
from actionspan.video.settings import FlowSettings, FrameSettings
from actionspan.video.snippets import snippet_batches
from actionspan.video.zones import (
    Zone,
    ZoneMotion,
    ZoneWatch,
    check_zones,
    only_inside,
    read_zones,
    share_inside,
    zone_motion,
    zones_attributes,
    zones_of,
)
from tiers import first_tier
from video.numbered import write_film
from video.test_bouts import pictures
from worlds.camera import LEFT, MOVES, RIGHT, camera

ALL = {"*": [{"name": "door", "points": [[0.1, 0.2], [0.5, 0.2], [0.5, 0.9]]}]}


def box(left, top, right, bottom, name="box") -> Zone:
    return Zone(name, ((left, top), (right, top), (right, bottom), (left, bottom)))


HALVES = (box(0, 0, 0.5, 1, "left"), box(0.5, 0, 1, 1, "right"))


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ([], "not patterns of video names"),
        ({"": []}, "a pattern: must be a list of zones"),
        ({"*": {}}, "*: must be a list of zones"),
        ({"*": [[0, 0]]}, "*[0]: a zone has a name and points"),
        ({"*": [{"name": "a", "points": [], "color": 1}]}, "*[0]: a zone has a name and points"),
        ({"*": [{"name": " ", "points": []}]}, "*[0].name ' ': must be a text"),
        ({"*": [{"name": "a", "points": [[0, 0], [1, 1]]}]}, "*[0].points a list of 2: must be 3"),
        (
            {"*": ALL["*"] + [{"name": "b", "points": [[0, 0], [1, 1], [0, 1.2]]}]},
            "*[1].points[2] [0, 1.2]: must be [x, y], shares of width and height from 0 to 1",
        ),
        ({"*": [{"name": "a", "points": [[0, 0], [1, 1], [0, float("nan")]]}]}, "points[2]"),
        ({"*": [{"name": "a", "points": [[0, 0], [1, 1], [True, 0]]}]}, "points[2]"),
        ({"*": [{"name": "a", "points": [[0, 0], [0.5, 0.5], [1, 1]]}]}, "lie on one line"),
        ({"*": ALL["*"] * 2}, "*: two zones are called 'door'"),
    ],
)
def test_a_wrong_file_gives_a_line_that_names_it_and_the_key(content, line, tmp_path):
    path = tmp_path / "zones.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError) as error:
        read_zones(path)
    assert str(error.value).startswith(f"{path}: ")
    assert line in str(error.value)
    assert "\n" not in str(error.value)


def test_of_several_patterns_the_closest_to_the_name_counts():
    names = {"*": "all", "door*": "doors", "door?": "a door", "door1": "one", "gate": "gate"}
    zones = {pattern: [ALL["*"][0] | {"name": name}] for pattern, name in names.items()}
    cameras = check_zones(zones, "file")
    expected = {"yard": "all", "door-12": "doors", "door2": "a door", "door1": "one", "Gate": "all"}
    assert {name: zones_of(cameras, name)[0].name for name in expected} == expected
    assert zones_of(check_zones(ALL | {"bare": []}, "file"), "bare") == ()
    assert zones_of({}, "any") == ()
    digests = {str(zones_attributes(zones_of(cameras, name))) for name in expected}
    assert len(digests) == 4
    assert zones_attributes(()) == {}


@given(corners=st.tuples(*[st.integers(0, 39)] * 4), size=st.sampled_from([(24, 40), (90, 160)]))
def test_a_rectangle_covers_its_pixels_and_its_share_of_the_frame(corners, size):
    left, top, width, bottom = corners
    right, bottom = left + 1 + width % (40 - left), min(top + 1 + bottom, 40)
    zone = box(left / 40, min(top, 39) / 40, right / 40, bottom / 40)
    height, width = size
    share = (right - left) * (bottom - top) / 1600
    edge = 1 / height + 1 / width  # half a pixel on each side
    assert abs(share_inside((zone,), height, width) - share) <= edge


def test_frames_show_nothing_outside_and_the_same_inside_by_picture_and_by_luma(tmp_path):
    rng = np.random.default_rng(0)
    drawn = [rng.integers(0, 255, (64, 96, 3), np.uint8) for _ in range(3)]
    path = write_film(tmp_path / "noise.mp4", drawn)
    zones = (box(0, 0, 0.5, 0.5), box(0.75, 0.5, 1, 1, "other"))
    inside = np.zeros((64, 96), bool)
    inside[:32, :48] = inside[32:, 72:] = True
    whole = list(read_frames(path))
    for frame, seen in zip(whole, only_inside(whole, zones), strict=True):
        assert seen.whole is frame
        assert np.array_equal(seen.picture()[inside], frame.picture()[inside])
        assert (seen.picture()[~inside] == 128).all()
        (plane, levels), (all_plane, _) = seen.luma(), frame.luma()
        assert np.array_equal(plane[inside], all_plane[inside])
        assert (abs(levels[plane[~inside]].astype(int) - 128) <= 1).all()
    assert only_inside(whole, ()) is whole


def test_motion_is_that_of_the_pixels_inside(tmp_path):
    """A zone around all that moves gives the motion of a video of the zone alone."""
    moving = list(pictures(rate=25, seconds=4, moves=((0.5, 3.5),)))
    strip = slice(90, 150)  # rows in which the box moves
    small = [np.ascontiguousarray(picture[strip]) for picture in moving]
    curves = []
    within = (box(0, 90 / 240, 1, 150 / 240),)
    for name, drawn, zones in (("a", moving, within), ("b", small, ()), ("c", moving, ())):
        path = write_film(tmp_path / f"{name}.mkv", drawn, codec="ffv1", pixels="bgr0")
        frames = only_inside(read_frames(path), zones)
        settings = FrameSettings(mover_side=0)
        (batch,) = snippet_batches(frames, settings, FlowSettings(), 100, zones)
        curves.append((batch.frame_difference, batch.flow_magnitude))
    assert curves[0][0] == pytest.approx(curves[1][0], rel=1e-3, abs=1e-5)
    # a quarter of the frame: undiluted, the flow is up to four times as long
    assert (curves[0][1][2:10] > 2.5 * curves[2][1][2:10]).all()


def test_without_zones_events_at_the_edge_are_listed_and_with_them_only_the_true_ones(tmp_path):
    path = camera(tmp_path / "camera.mp4")
    zones = check_zones({"*": [LEFT, RIGHT]}, "zones.json")
    one = {"cam*": (box(0, 0, 1, 0.8),)}
    everything = MotionProposer().propose(path).event_rows()
    assert len(everything) > len(MOVES)
    for cameras, sides in ((zones, ["left", "right", "left"]), (one, [None] * 3)):
        rows = MotionProposer(cameras).propose(path).event_rows()
        rows.sort(key=lambda row: row["segment"][0])
        found = np.array([row["segment"] for row in rows])
        assert found == pytest.approx(np.array(MOVES), abs=0.3)
        assert [row.get("zone") for row in rows] == sides


@pytest.mark.parametrize("light", first_tier([0, 40], 40))
def test_a_mover_that_fills_a_small_zone_is_no_light(light, tmp_path):
    """A twelfth of the frame, which the box crosses and nearly fills."""
    drawn = pictures(rate=25, seconds=20, moves=((6.0, 10.0),), size=60, speed=80, light=light)
    path = write_film(tmp_path / "film.mp4", drawn, rate=Fraction(25))
    zone = box(0.35, 0.35, 0.6, 0.7)
    found = MotionProposer({"*": (zone,)}).propose(path).events
    # it comes in from the left, leaves, turns and comes in again, until it stops
    assert sorted(found.tolist()) == pytest.approx(np.array([(6.4, 8.15), (9.35, 10)]), abs=0.3)


def test_an_event_is_of_the_zone_in_which_most_moves_beyond_the_usual():
    times = np.arange(10) + 0.5
    motion = np.full((10, 2), 0.01, np.float32)
    motion[:, 1] = 0.2  # a flag that always waves
    motion[3:5, 0] = 0.1
    motion[7:9, 1] = 0.4
    moved = ZoneMotion(["door", "flag"], times, motion)
    assert moved.most([(3, 5), (7, 9), (3.6, 3.7), (7.6, 7.7)]) == ["door", "flag"] * 2
    assert moved.most(np.zeros((0, 2))) == []


@given(st.lists(st.tuples(st.integers(0, 63), st.integers(0, 63)), min_size=1, max_size=5))
def test_motion_by_zone_adds_up_to_that_of_the_frame(places):
    gray = np.zeros((2, 64, 64), np.uint8)
    for y, x in places:
        gray[1, y, x] = 200
    expected = [(gray[1][:, part] / (255 * 64 * 64)).sum() for part in (slice(32), slice(32, 64))]
    assert zone_motion(gray, HALVES) == pytest.approx(expected)
    assert zone_motion(gray, HALVES[:1]).shape == (0,)


def test_a_watch_resumes_where_its_state_was_taken():
    rng = np.random.default_rng(1)
    watch, other = ZoneWatch(HALVES), ZoneWatch(HALVES)
    assert watch.most(0, 1) is None
    for second in range(8):
        gray = np.zeros((2, 8, 8), np.uint8)
        gray[1, :, rng.integers(0, 8)] = rng.integers(1, 255)
        watch.add(second + 0.5, gray)
    other.load_state_dict(json.loads(json.dumps(watch.state_dict())))
    spans = [(a, b) for a, b in product(range(8), repeat=2) if a < b]
    assert [watch.most(*span) for span in spans] == [other.most(*span) for span in spans]
    assert {watch.most(*span) for span in spans} == {"left", "right"}
