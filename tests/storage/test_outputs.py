"""No output of any command may be one of its inputs: all parsers are walked."""

import argparse
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from actionspan.cli import main
from actionspan.storage.writing import write_text
from actionspan.workflow.steps import commands, steps_of

# What a path may be called that is read. A flag of another name is an output, and is called `out`
# or `out_…` (dest=) so that the command line refuses inputs in its place; or it belongs here.
READ = set(
    """
    annotations balance baselines benchmarks candidates classification classifier
    classifier_features clip_weights clips code copies corrected density detections evaluations
    evaluator events features figure1 figure4 figure6 files first flow flow_weights folder frames
    gradients ground_truth keys learn like links log logs measurements memory messages misses model
    networks predictions probabilities proposals readers recipe rejected results rgb rgb_model
    rgb_weights scores second shard shards snippets source speedup splits stretches table1 table2
    table3 table4 table5 temporal timeline times timings video video_info videos weights zones
    """.split()
)
TEXT = {("find", "videos"), ("stream", "source"), ("propose", "model"), ("stream", "model")}


def every_step() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield each command and step with its parser."""

    def below(words, module):
        inner = steps_of(module)
        if not inner:
            parser = argparse.ArgumentParser()
            importlib.import_module(module).add_arguments(parser)
            yield words, parser
        for step, module in inner.items():
            yield from below(f"{words} {step}", module)

    for word, module in commands().items():
        yield from below(word, module)


PARSERS = dict(every_step())


def is_output(action: argparse.Action) -> bool:
    return action.dest.partition("_")[0] == "out"


def reads(command: str, action: argparse.Action) -> bool:
    return action.type is Path and not is_output(action) or (command, action.dest) in TEXT


PAIRS = [
    (command, read.dest, out.dest)
    for command, parser in PARSERS.items()
    for read in filter(lambda action: reads(command, action), parser._actions)  # noqa: B023
    for out in filter(is_output, parser._actions)
]


def test_a_path_is_an_input_or_is_called_out():
    paths = [(c, a.dest) for c, p in PARSERS.items() for a in p._actions if a.type is Path]
    assert [path for path in paths if path[1] not in READ and not path[1].startswith("out")] == []
    assert len(PAIRS) > 300


def words_of(command: str, folder: Path, chosen: dict[str, Path]) -> list[str]:
    """Return a call with all that the command needs, and the `chosen` files by their flags."""
    parser, words, last = PARSERS[command], [], []
    one_of = [
        group._group_actions
        for group in parser._mutually_exclusive_groups
        if group.required and not any(a.dest in chosen for a in group._group_actions)
    ]
    for action in parser._actions:
        needed = action.required or any(action is group[0] for group in one_of)
        if not needed and action.dest not in chosen:
            continue
        value = str(chosen.get(action.dest) or next(iter(action.choices or ()), ""))
        value = value or ("1" if action.type in (int, float) else str(folder / action.dest))
        values = [value] * (action.nargs if isinstance(action.nargs, int) else 1)
        words += [action.option_strings[-1], *values] if action.option_strings else []
        last += [] if action.option_strings else values
    return [*command.split(), *last, *words]


@pytest.mark.parametrize("command", sorted({pair[0] for pair in PAIRS}))
def test_an_output_that_is_an_input_is_refused(command, tmp_path, capsys):
    for _, read, out in (pair for pair in PAIRS if pair[0] == command):
        file = tmp_path / "input.csv"
        file.write_text("as it was")
        other = tmp_path / "sub" / ".." / "input.csv"
        other.parent.parent.mkdir(exist_ok=True)
        assert main(words_of(command, tmp_path, {read: file, out: other})) == 2, (read, out)
        (line,) = capsys.readouterr().err.splitlines()
        assert "is an input of this command" in line or "holds the annotations" in line
        assert file.read_text() == "as it was"


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """A folder, the working one, with a table `a.csv` of what happens in the video `a`."""
    monkeypatch.chdir(tmp_path)
    text = "video,start,end,label,duration\na,1,2,x,9\n"
    for name in ("a.csv", "folder/one.csv", "found/events.csv"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    Path("a.mp4").write_text("no video")
    return text


@pytest.mark.parametrize(
    "words",
    [
        "frames a.csv --bin 1 -o .",
        "clips a.csv --videos . -o . --lists",
        "dataset convert folder folder/one.csv",
        "dataset convert a.csv folder/one.csv --predictions folder --to label_studio",
        "dataset merge folder a.csv --out folder/one.csv",
        "propose a.mp4 --model none --annotations found/events.csv -o found",
        "find a.mp4 --like found/events.csv -o found",
    ],
)
def test_what_a_folder_would_get_is_no_input_either(rows, words, capsys):
    assert main(words.split()) == 2
    assert "is an input of this command; name another output" in capsys.readouterr().err
    assert {path: path.read_text() for path in Path().rglob("*.csv")} == dict.fromkeys(
        map(Path, ("a.csv", "folder/one.csv", "found/events.csv")), rows
    )


def test_a_video_that_a_pattern_names_is_an_input(rows, capsys, monkeypatch):
    def write(*_, **__):
        write_text(Path("a.mp4"), "lost")

    monkeypatch.setattr("actionspan.propose.result_folder.ResultFolder", write)
    assert main(["propose", "*.mp4", "--model", "none"]) == 2
    assert "a.mp4: is an input of this command" in capsys.readouterr().err
    assert Path("a.mp4").read_text() == "no video"
