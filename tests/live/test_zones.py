"""Zones of a stream: only what happens inside them is found, each event in its zone."""

import csv
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actionspan.features.settings import EncoderSettings
from actionspan.live.encoding import encoding_chain
from actionspan.live.learning import Actionness
from actionspan.live.play import Player
from actionspan.live.proposing import OnlineProposal, Update
from actionspan.video.settings import FlowSettings, FrameSettings
from actionspan.video.zones import ZoneWatch, check_zones
from live.fakes import run_stream
from video.numbered import write_film
from worlds.camera import LEFT, MOVES, RIGHT, camera, scene

FRAMES = FrameSettings(snippet_frames=4, stack=1, short_side=120)
MOTION = EncoderSettings(source="motion", mover=False)
BAR = 1e-4  # of the mean difference of two frames
GAP = 0.5  # seconds


class MotionRule:
    """Proposes each stretch in which frames differ by more than a bar."""

    learner = None

    def __init__(self, zones: Any) -> None:
        self.zones = ZoneWatch(zones) if len(zones) > 1 else None
        self.run: list[float] = []

    def add(self, features: Any, seconds: float, motion: Any) -> Update:
        moves = motion["frame_difference"] > BAR
        ended = self.run and not moves and seconds - self.run[-1] > GAP
        update = self.finish(seconds) if ended else Update()
        self.run += [seconds] * moves
        value = motion["frame_difference"]
        update.actionness.append(Actionness(0, seconds, value, value, value))
        return update

    def finish(self, seconds: float) -> Update:
        if len(self.run) < 2:
            return Update()
        start, end = self.run[0], self.run[-1]
        zone = self.zones.most(start, end) if self.zones else None
        self.run = []
        return Update(proposals=[OnlineProposal(start, end, 0.5, zone=zone)])

    def state_dict(self) -> dict[str, Any]:
        return {}


def stream(video: Path, out: Path, *zones: Any) -> list[dict[str, str]]:
    within = check_zones({"*": list(zones)}, "zones")["*"]
    chain = encoding_chain(MOTION, FlowSettings(preset="ultrafast"), FRAMES.stack, zones=within)
    rule: Any = MotionRule(within)
    known = {"made_of": "rule", "file": Path("rule"), "zones": within}
    player = Player(frames=FRAMES, chain=chain, proposer=rule, **known)
    assert run_stream(video, out, made=player).reason == "finished"
    with (out / "proposals.csv").open() as file:
        return list(csv.DictReader(file))


def times(rows: list[dict[str, str]]) -> np.ndarray:
    return np.array([[row["start_seconds"], row["end_seconds"]] for row in rows], float)


@pytest.mark.full
def test_without_zones_the_edge_is_found_and_with_them_only_the_true_events(tmp_path):
    video = camera(tmp_path / "camera.mp4", noise=0)
    assert len(stream(video, tmp_path / "whole")) > len(MOVES)
    rows = stream(video, tmp_path / "zones", LEFT, RIGHT)
    assert times(rows) == pytest.approx(np.array(MOVES), abs=0.3)
    assert [row["zone"] for row in rows] == ["left", "right", "left"]


def test_within_zones_a_stream_is_that_of_a_camera_without_the_edge(tmp_path):
    """To the bit, whatever happens outside."""
    names = {"busy": True, "calm": False}
    for name, pavement in names.items():
        how = {"codec": "ffv1", "pixels": "bgr0", "rate": Fraction(25)}
        short = islice(scene(pavement), 150, 190)  # an event, and someone who walks by
        write_film(tmp_path / f"{name}.mkv", short, **how)
    for name in names:
        (tmp_path / name).mkdir()
        video = (tmp_path / f"{name}.mkv").rename(tmp_path / name / "camera.mkv")
        stream(video, tmp_path / f"{name}-whole")
        stream(video, tmp_path / f"{name}-zone", LEFT | {"name": "one"})
    for seen, alike in (("whole", False), ("zone", True)):
        busy, calm = (tmp_path / f"{name}-{seen}/actionness.tsv" for name in names)
        assert (busy.read_bytes() == calm.read_bytes()) == alike
