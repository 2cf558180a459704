"""Rounds of review whose proposals are given, without any model."""

from types import SimpleNamespace

import pytest

from actionspan.propose.results import Result
from actionspan.review.work import ReviewWork


def row(start, end, score=0.5):
    return {"segment": [float(start), float(end)], "score": score, "label": ""}


A, B, C = row(0, 10), row(20, 30), row(40, 50)


@pytest.fixture
def rounds(tmp_path, monkeypatch):
    """The events of two videos, which a test may change, and what starts work on them."""
    events = {"a": [A, B], "b": [A, B, C]}

    def start():
        videos = {name: tmp_path / f"{name}.mp4" for name in events}
        work = ReviewWork(tmp_path / "out", videos)
        monkeypatch.setattr(work, "_propose", lambda bundle, one, before: result(one))
        return work

    def result(one):
        name = one.video.video_id
        facts = {"duration_seconds": 60.0, "labelled": False, "curves": {}, "source": {}}
        return Result(
            video_id=name, path=name, proposals=events[name], events=events[name], model="", **facts
        )

    def encode_all(paths, folder, how):
        for path in paths:
            video = SimpleNamespace(error="", video_id=path.stem)
            yield SimpleNamespace(video=video, source={}, fingerprint="0 0")

    monkeypatch.setattr("actionspan.review.work.encode_all", encode_all)
    return events, start
