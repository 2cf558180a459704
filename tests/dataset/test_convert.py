import argparse
import json

import pytest

from actionspan.dataset.convert import add_arguments, run
from actionspan.dataset.formats.registry import read_annotation_file
from actionspan.errors import InputError


def convert(*words):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    run(parser.parse_args([str(word) for word in words]))


def segments(path):
    return {
        record.video_id: [raw.parsed() for raw in record.instances]
        for record in read_annotation_file(path).records
    }


def test_a_table_becomes_activitynets_form_and_bad_rows_are_named(tmp_path, capsys):
    table = tmp_path / "mine.tsv"
    table.write_text("video\tstart\tend\tlabel\tsubset\na\t1\t2\trun\tval\nb\t1 s\t2\trun\ttest\n")
    convert(table, tmp_path / "mine.json")
    assert json.loads((tmp_path / "mine.json").read_text())["database"] == {
        "a": {"subset": "validation", "annotations": [{"segment": [1, 2], "label": "run"}]},
        "b": {"subset": "testing", "annotations": []},
    }
    printed = capsys.readouterr()
    assert (
        printed.err
        == f"left out {table}: row 3: start '1 s' is not a time: seconds, m:ss or h:mm:ss\n"
    )
    assert printed.out == f"{tmp_path / 'mine.json'}: 2 videos, activitynet\n"


def test_what_the_form_cannot_hold_is_said(tmp_path, capsys):
    table = tmp_path / "mine.csv"
    table.write_text("video,start,end,label,subset,fps\na,1,2,run,val,25\nb,,,,,25\n")
    convert(table, tmp_path / "mine.json", "--to", "anet_anno_action")
    line = f"{tmp_path / 'mine.json'}: videos of which anet_anno_action cannot hold: "
    assert capsys.readouterr().err == f"{line}subset (1), fps (2)\n"
    convert(table, tmp_path / "ours.csv")
    assert capsys.readouterr().err == ""


def test_thumos14s_folder_becomes_a_table(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "Diving_val.txt").write_text("video_validation_1 3.5 4\n")
    convert(tmp_path / "in", tmp_path / "out.csv")
    expected = "video,start,end,label,subset\nvideo_validation_1,3.5,4.0,Diving,training\n"
    assert (tmp_path / "out.csv").read_text() == expected


def test_the_real_thumos14_table_and_back(tmp_path, shared_data, capsys):
    real = shared_data / "thumos14" / "thumos14_test_groundtruth.csv"
    convert(real, tmp_path / "a.csv")
    convert(tmp_path / "a.csv", tmp_path / "b.csv", "--to", "thumos14")
    assert capsys.readouterr().err == ""
    assert segments(tmp_path / "b.csv") == segments(real)


def test_mistakes_are_one_line(tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text("video,start,end,label,subset\na,1,2,run,dev\n")
    with pytest.raises(InputError, match=r"mine.xml: the suffix names no form; give --to"):
        convert(table, tmp_path / "mine.xml")
    with pytest.raises(InputError, match=r"mine.csv: no video is left"):
        convert(table, tmp_path / "mine.json")
    assert not (tmp_path / "mine.json").exists()
