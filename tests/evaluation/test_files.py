"""Ground truth and proposals in the forms people have, and what is wrong with broken ones."""

import json

import numpy as np
import pytest

from actionspan.dataset.tables import Annotation, Instance, write_annotations
from actionspan.errors import InputError
from actionspan.evaluation.files import read_ground_truth, read_proposals

OFFICIAL = {
    "version": "VERSION 1.3",
    "taxonomy": [],
    "database": {
        "aaa": {
            "subset": "validation",
            "duration": 10.0,
            "url": "",
            "resolution": "320x240",
            "annotations": [{"segment": [1, 2.5], "label": "x"}, {"segment": [3, 3], "label": "y"}],
        },
        "bbb": {
            "subset": "training",
            "annotations": [{"segment": [9, 2], "label": "x"}],
        },
        "ccc": {"subset": "validation", "annotations": []},
    },
}


def written(folder, content, name="file.json"):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_reads_the_official_form_of_one_subset_with_instances_of_no_length(tmp_path):
    truth = read_ground_truth(written(tmp_path, OFFICIAL))
    assert list(truth) == ["aaa", "ccc"]
    np.testing.assert_array_equal(truth["aaa"], [[1, 2.5], [3, 3]])
    assert truth["ccc"].shape == (0, 2)


def test_reads_our_own_canonical_form(tmp_path):
    instance = Instance(start=0.5, end=2.25, label="wave")
    known = [
        Annotation(video_id="a", subset="validation", duration_seconds=9, instances=(instance,)),
        Annotation(video_id="b", subset="training", duration_seconds=9, instances=(instance,)),
    ]
    write_annotations(tmp_path / "annotations.json", known)
    truth = read_ground_truth(tmp_path / "annotations.json")
    assert {video: rows.tolist() for video, rows in truth.items()} == {"a": [[0.5, 2.25]]}
    assert list(read_ground_truth(tmp_path / "annotations.json", "all")) == ["a", "b"]


ACTIONS = {
    "v_a": {"duration_second": 9.0, "annotations": [{"segment": [0, 4], "label": "x"}]},
    "v_b": {"duration_second": 9.0, "annotations": [{"segment": [5, 6], "label": "x"}]},
}


def test_reads_the_anet_anno_action_form_with_the_subsets_beside_it(tmp_path):
    path = written(tmp_path, ACTIONS, "anet_anno_action.json")
    with pytest.raises(InputError, match="names no subsets: give --video-info"):
        read_ground_truth(path)
    assert list(read_ground_truth(path, "all")) == ["v_a", "v_b"]
    elsewhere = tmp_path / "elsewhere.csv"
    elsewhere.write_text("video,numFrame,subset\nv_a,9,training\nv_b,9,validation\n")
    assert list(read_ground_truth(path, video_info=elsewhere)) == ["v_b"]
    elsewhere.rename(tmp_path / "video_info_new.csv")
    assert list(read_ground_truth(path)) == ["v_b"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1, 2]", "not ground truth"),
        ("{", "line 1: not JSON"),
        ({"database": {"a": {"annotations": []}}}, "video 'a': no 'subset'"),
        ({"database": {"a": {"subset": "validation"}}}, "video 'a': no 'annotations'"),
        (
            {"database": {"a": {"subset": "test"}}},
            r"no video of subset 'validation'; it has 'test'",
        ),
        (
            {"database": {"a": {"subset": "validation", "annotations": [{"segment": [1]}]}}},
            "video 'a', instance 1: not of the form",
        ),
        (
            {"database": {"a": {"subset": "validation", "annotations": [{"segment": [2, 1]}]}}},
            r"video 'a', instance 1: \[2, 1\]: start is after end",
        ),
        ({"database": {"a": {"subset": "validation", "annotations": []}}}, "no instance to find"),
    ],
)
def test_names_what_is_wrong_with_ground_truth(tmp_path, content, message):
    path = written(tmp_path, content)
    with pytest.raises(InputError, match=message) as caught:
        read_ground_truth(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_video_info_without_its_columns_is_named(tmp_path):
    path = written(tmp_path, ACTIONS)
    info = tmp_path / "info.csv"
    with pytest.raises(InputError, match=r"info.csv: no such file"):
        read_ground_truth(path, video_info=info)
    info.write_text("name,subset\nv_a,validation\n")
    with pytest.raises(InputError, match="no column 'video'; it needs 'video' and 'subset'"):
        read_ground_truth(path, video_info=info)


def test_reads_a_result_file_with_other_keys_and_negative_scores(tmp_path):
    results = {"a": [{"score": -3.5, "segment": [0, 2], "label": "x"}], "b": []}
    proposals = read_proposals(written(tmp_path, {"version": "", "results": results}))
    np.testing.assert_array_equal(proposals["a"], [[0, 2, -3.5]])
    assert proposals["b"].shape == (0, 3)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('{"score": 1, "segment": [NaN, 2]}', "video 'v', proposal 2: .*not finite"),
        ('{"score": NaN, "segment": [1, 2]}', "video 'v', proposal 2: .*not finite"),
        ('{"score": null, "segment": [1, 2]}', "video 'v', proposal 2: .*not finite"),
        ('{"score": 1, "segment": [3, 2]}', "video 'v', proposal 2: .*start is after end"),
        ('{"segment": [1, 2]}', "video 'v', proposal 2: not of the form"),
        ('{"score": 1, "segment": [1, 2, 3]}', "video 'v', proposal 2: not of the form"),
        ('{"score": "high", "segment": [1, 2]}', "video 'v', proposal 2: not of the form"),
        ("7", "video 'v', proposal 2: not of the form"),
    ],
)
def test_names_the_row_of_a_bad_proposal(tmp_path, row, message):
    text = f'{{"results": {{"v": [{{"score": 1, "segment": [0, 1]}}, {row}]}}}}'
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=message) as caught:
        read_proposals(path)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("content", ["[]", "{}", {"results": []}])
def test_a_file_without_results_is_named(tmp_path, content):
    with pytest.raises(InputError, match="not a result file"):
        read_proposals(written(tmp_path, content))


def test_a_video_whose_proposals_are_no_list_is_named(tmp_path):
    with pytest.raises(InputError, match="video 'v', proposals: a list is needed, not dict"):
        read_proposals(written(tmp_path, {"results": {"v": {}}}))
