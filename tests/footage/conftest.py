"""The files of the table, their events, and clips of these."""

import pytest

from footage import FILES, events_of
from tiers import first_tier
from worlds.command import actionspan

KEPT = (
    "h264.mp4", "h264_falling.mp4", "h264_240.mp4", "h264_1.mkv", "h264.ts", "h264_sparse.ts",
    "h264_gap.ts", "mpeg4.avi", "vp9.webm", "wmv2.wmv", "h264.flv", "h264.mov",
)  # fmt: skip


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("footage")


@pytest.fixture(params=first_tier(FILES, *KEPT))
def made(request, folder):
    """A file in a folder of its own, and how it was made."""
    path = folder / request.param.replace(".", "-") / request.param
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        FILES[request.param].write(path)
    return path, FILES[request.param]


@pytest.fixture
def table(made, tmp_path):
    """The events of a file as a table."""
    path, row = made
    lines = [f"{path.stem},{start:.6f},{end:.6f},jump" for start, end, *_ in events_of(row.seconds)]
    out = tmp_path / "events.csv"
    out.write_text("\n".join(["video,start,end,label", *lines]) + "\n")
    return out


@pytest.fixture
def clips(made, table, tmp_path):
    """Run `clips`; return the clips and the events, both in the order of time."""
    path, row = made

    def run(*more):
        words = ("clips", table, "--videos", path.parent, *more, "--out", tmp_path / "out")
        assert actionspan(*words) == 0
        found = sorted((tmp_path / "out").iterdir())
        return zip(found, sorted(events_of(row.seconds)), strict=True)

    return run
