"""Corrections that are saved but not done: named by all that reads corrections.csv, or taken."""

import argparse
import importlib
import json
import sys

import pytest

from actionspan.annotations.formats.registry import read_annotation_file
from actionspan.cli import main
from actionspan.errors import InputError
from actionspan.review.corrections import Corrections
from actionspan.workflow.steps import commands, steps_of

ROWS = {
    "done": [["done", "1.000", "2.000", "eat", "added"]],
    "half": [["half", "3.000", "4.000", "=eat", "added"], ["half", "5.000", "6.000", "", "moved"]],
    "reset": [["reset", "3.000", "4.000", "eat", "accepted"]],  # untouched annotations
    "empty": [],
}


@pytest.fixture
def table(tmp_path):
    """The table of a folder of `review` where one video is done, and one is saved but not done."""
    kept = Corrections(tmp_path / "corrections", ROWS, tmp_path / "corrections.csv")
    for name, rows in ROWS.items():
        state = None if name == "reset" else {"done": name == "done", "segments": []}
        kept.save(name, 0, state, rows)
    return kept.table


def test_they_are_named_unless_they_are_taken(table, capsys):
    assert [record.video_id for record in read_annotation_file(table).records] == ["done"]
    line = f"{table}: left out 1 video with corrections saved but not Done (tick Done): half\n"
    assert capsys.readouterr().err == line
    read_annotation_file(table, not_done=False)
    assert "(tick Done, or give --not-done): half" in capsys.readouterr().err
    records = {one.video_id: one for one in read_annotation_file(table, not_done=True).records}
    assert sorted(records) == ["done", "half"]
    assert records["half"].parsed() == [(3, 4, "=eat"), (5, 6, "action")]
    assert capsys.readouterr().err == ""


def test_rows_of_the_table_count_before_what_is_saved(table, capsys):
    with table.open("a") as file:  # by hand
        file.write("half,7,8,eat,added\n")
    reading = read_annotation_file(table, not_done=True)
    assert reading.records[1].parsed() == [(7, 8, "eat")]
    assert reading.rejections == []
    assert capsys.readouterr().err == ""


def test_a_bad_row_stops_a_strict_reading_only_if_it_is_taken(table):
    kept = json.loads((table.parent / "corrections/half.json").read_text())
    kept["rows"][0][4] = "perhaps"
    (table.parent / "corrections/half.json").write_text(json.dumps(kept))
    assert len(read_annotation_file(table, strict=True).records) == 1
    with pytest.raises(InputError, match=r"half\.json: row 2: status 'perhaps'"):
        read_annotation_file(table, strict=True, not_done=True)


def test_nothing_is_done_yet(tmp_path, capsys):
    kept = Corrections(tmp_path / "corrections", ["half"], tmp_path / "corrections.csv")
    assert not kept.table.exists()
    kept.save("half", 0, {"done": False}, ROWS["half"])
    assert main(["budget", str(kept.table)]) == 2
    *_, named, line = capsys.readouterr().err.splitlines()
    assert named.endswith("(tick Done, or give --not-done): half")
    assert line.endswith("corrections.csv: no video in it")


def test_a_file_that_is_not_of_review_is_passed_over_and_a_damaged_one_is_named(table, capsys):
    for name, content in enumerate(([], {"state": 1, "rows": 2}, {"state": {}, "rows": []})):
        (table.parent / f"corrections/{name}.json").write_text(json.dumps(content))
    assert len(read_annotation_file(table, not_done=True).records) == 2
    (table.parent / "corrections/d.json").write_text("{")
    assert [record.video_id for record in read_annotation_file(table).records] == ["done"]
    assert "corrections/d.json: line 1: not JSON" in capsys.readouterr().err


def reading_commands():
    """Return the commands that read annotations of a user: those with --points."""
    modules = {word: module for word, module in commands().items() if not steps_of(module)}
    modules |= {f"dataset {word}": each for word, each in steps_of("actionspan.dataset").items()}
    found = []
    for words, module in modules.items():
        parser = argparse.ArgumentParser()
        importlib.import_module(module).add_arguments(parser)
        if any(action.dest == "points" for action in parser._actions):
            found.append(words)
    return found


CALLS = {
    "propose": "VIDEO --model none --annotations TABLE -o out",
    "learn": "VIDEO --annotations TABLE -o out",
    "find": "VIDEO --like TABLE -o out",
    "clips": "TABLE --videos .",
    "budget": "TABLE",
    "frames": "TABLE",
    "agree": "TABLE TABLE",
    "dataset convert": "TABLE out.csv",
    "dataset merge": "TABLE TABLE --out out.csv",
}


@pytest.mark.parametrize("command", reading_commands())
def test_every_command_names_them_and_has_the_flag(command, table, monkeypatch, capsys):
    monkeypatch.chdir(table.parent)
    (table.parent / "half.mp4").touch()
    words = CALLS[command].replace("TABLE", str(table)).replace("VIDEO", "half.mp4").split()
    module = sys.modules["actionspan.annotations.formats.corrections"]
    real = module.add_unfinished

    def add_and_stop(*given):
        real(*given)
        raise InputError(f"taken: {given[2]}")

    monkeypatch.setattr(module, "add_unfinished", add_and_stop)
    assert main([*command.split(), *words]) == 2
    named, stopped = capsys.readouterr().err.splitlines()[-2:]
    assert named.endswith("(tick Done, or give --not-done): half")
    assert stopped.endswith("taken: False")
    assert main([*command.split(), *words, "--not-done"]) == 2
    shown = capsys.readouterr().err
    assert shown.endswith("taken: True\n")
    assert "left out" not in shown
