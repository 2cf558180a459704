"""A video that networks see."""

from pathlib import Path

import pytest

from actionspan.demo.data_set import plan_demo
from actionspan.demo.rendering import render_video
from actionspan.demo.scenario import DemoSettings
from conftest import SHARED_DATA


@pytest.fixture(scope="package")
def video(tmp_path_factory) -> Path:
    """Return a video, a real one where there is one."""
    path = SHARED_DATA / "cycles/videos/004_table_tennis.mp4"
    if not path.is_file():
        (plan,) = plan_demo(DemoSettings(videos=1, shortest_seconds=5.0, longest_seconds=6.0))
        path = tmp_path_factory.mktemp("video") / plan.name
        render_video(path, plan)
    return path
