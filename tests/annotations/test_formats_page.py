"""The page about formats names what there is, and its commands work as they stand there."""

import re
import shlex
import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from actionspan.annotations.formats.registry import FORMATS, WRITABLE
from dataset.conftest import encode_video
from worlds.command import actionspan

PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
SAMPLES = Path(__file__).parent / "samples"


def test_the_table_has_every_form_and_says_which_are_written():
    rows = re.findall(r"^\| `(\w+)` \|.*\| (yes|no)\b[^|]*\|[^|]*\|$", PAGE, re.MULTILINE)
    assert dict(rows) == {name: "yes" if name in WRITABLE else "no" for name in FORMATS}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The samples, and the videos that some of them need."""
    for path in SAMPLES.iterdir():
        shutil.copy(path, tmp_path)
    (tmp_path / "videos").mkdir()
    for name in ("yard", "yard_1", "the gate", "chapters"):
        tick = Fraction(20) if name == "chapters" else Fraction(1, 10)  # for more than an hour
        encode_video(tmp_path / "videos" / f"{name}.mp4", times=range(200), tick=tick)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands_that_convert_work(folder, capsys):
    lines = re.findall(r"^actionspan (dataset convert .*?)(?: +#.*)?$", PAGE, re.MULTILINE)
    assert len(lines) == 13
    written = set()
    for line in lines:
        words = shlex.split(line)
        if words[2] == "mine.csv":
            rows = "yard,0.5,1.5,jump\nthe gate,0,1,sit\n"
            (folder / "mine.csv").write_text(f"video,start,end,label\n{rows}")
        assert actionspan(*words) == 0, capsys.readouterr().err
        said = capsys.readouterr()
        assert said.out.startswith(f"{words[3]}: ")
        assert "not known here" not in said.err
        assert "is left" not in said.err
        written.add(words[3])
    assert written == {"mine.csv", "mine.json", "eaf", "mine.boris", "via.json", "tasks.json"}


def test_the_commands_that_merge_and_name_the_next_work(folder, capsys):
    line = re.search(r"^actionspan (dataset merge .*)$", PAGE, re.MULTILINE)
    (folder / "my_actions.csv").write_text("video,start,end,label,subset\nyard,1,2.5,jump,val\n")
    missing = line[1].replace("corrections.csv", "none.csv")
    assert actionspan(*shlex.split(missing)) == 2
    text = "".join((folder / "corrections.csv").read_text().splitlines(keepends=True)[:7])
    (folder / "corrections.csv").write_text(text)
    assert actionspan(*shlex.split(line[1])) == 0
    assert "3 videos corrected (2 new): instances 2 added, 1 moved" in capsys.readouterr().out
    for words in re.findall(r"^actionspan (dataset next .*?)(?: +#.*)?$", PAGE, re.MULTILINE):
        assert actionspan(*shlex.split(words)) == 2  # there is no such folder here
        assert "neither a run" in capsys.readouterr().err
