"""`actionspan propose` says for how much of a video nothing changes."""

import json

import pytest

from actionspan.cli import main
from actionspan.video.settings import FrameSettings
from actionspan.video.snippets import snippets
from video.numbered import encode, mostly_still


@pytest.mark.parametrize(("video", "is_said"), [(mostly_still, True), (encode, False)])
def test_the_share_that_is_still_is_said(tmp_path, capsys, video, is_said):
    path = tmp_path / "v.mp4"
    video(path) if is_said else video(path, 60)
    flags = [snippet.still for snippet in snippets(path, FrameSettings(mover_side=0))]
    share = round(sum(flags) / len(flags), 3)
    words = ["propose", str(path), "--model", "none", "--no-page", "--out", str(tmp_path / "out")]
    assert main([*words, "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out.splitlines()[0])["still"] == share
    assert (f"still for {share:.0%} of its time" in said.err) == is_said
    assert (share > 0.2) == is_said
