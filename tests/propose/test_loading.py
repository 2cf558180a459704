"""A model whose loading ends its process: the job ends, and no video is blamed."""

import os
import signal
from typing import Any

import pytest

from actionspan.errors import JobError
from actionspan.propose.results import ResultFolder, Shown
from actionspan.propose.working import each_video
from video.numbered import encode


class Deadly:
    """Labels whose model cannot be looked at without an end of the process."""

    names = ("fall", "walk")

    @property
    def model(self) -> str:
        os.kill(os.getpid(), signal.SIGKILL)
        return ""


def outcomes(folder, videos, labels: Any = None):
    results = ResultFolder(folder / "out", "made by", overwrite=False)
    loading = (None, 1, None, (), labels)
    return list(each_video(results, videos, None, Shown(), loading, copies=False, quiet=True))


@pytest.mark.full
def test_a_process_that_dies_while_it_loads_ends_the_job(tmp_path):
    videos = {name: encode(tmp_path / f"{name}.mp4", 30) for name in ("a", "b")}
    with pytest.raises(JobError, match=r"the model cannot be loaded: .*killed by SIGKILL"):
        outcomes(tmp_path, videos, Deadly())


def test_a_broken_video_before_all_others_is_its_own_fault(tmp_path):
    broken = tmp_path / "a.mp4"
    broken.write_bytes(b"no video")
    made = outcomes(tmp_path, {"a": broken, "b": encode(tmp_path / "b.mp4", 30)})
    assert str(broken) in made[0].reason
    assert not made[1].reason
