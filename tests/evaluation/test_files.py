"""Ground truth and proposals in the forms people have, and what is wrong with broken ones."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actionspan.errors import InputError
from actionspan.evaluation import files
from actionspan.evaluation.files import (
    as_array,
    read_frame_rates,
    read_ground_truth,
    read_proposals,
)
from actionspan.proposals import segments
from tiers import examples

OFFICIAL = {
    "version": "VERSION 1.3",
    "taxonomy": [],
    "database": {
        "aaa": {
            **{"subset": "validation", "duration": 10.0, "url": "", "resolution": "320x240"},
            "annotations": [{"segment": [1, 2.5], "label": "x"}, {"segment": [3, 3], "label": "y"}],
        },
        "bbb": {"subset": "training", "annotations": [{"segment": [9, 2], "label": "x"}]},
        "ccc": {"subset": "validation", "annotations": []},
    },
}


def written(folder, content, name="file.json"):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def assert_refused(read, path, message):
    """Assert that a file is refused in one line that begins with its name."""
    with pytest.raises(InputError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_reads_the_official_form_of_one_subset_with_instances_of_no_length(tmp_path):
    truth = read_ground_truth(written(tmp_path, OFFICIAL))
    assert list(truth) == ["aaa", "ccc"]
    np.testing.assert_array_equal(truth["aaa"], [[1, 2.5], [3, 3]])
    assert truth["ccc"].shape == (0, 2)


ENTRIES = st.fixed_dictionaries(
    {"subset": st.sampled_from(["validation", "val", "training", "testing", "", None, 1])},
    optional={
        "duration": st.sampled_from([10, "10"]),
        "annotations": st.lists(
            st.fixed_dictionaries(
                {"segment": st.lists(st.sampled_from([0, 1.5, 3, -1, "2", None]), max_size=3)},
                optional={"label": st.sampled_from(["x", "segment", 1])},
            ),
            max_size=2,
        )
        | st.none(),
    },
)


@examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    videos=st.dictionaries(st.sampled_from(["a", "subset", "\u200b", "é"]), ENTRIES, max_size=3),
    change=st.sampled_from([("", ""), ('"label"', '"segment"'), ('"duration"', '"subset"')]),
    subset=st.sampled_from(["validation", "val", "testing", "all"]),
)
def test_truth_read_at_once_is_what_is_read_video_by_video(tmp_path, videos, change, subset):
    text = json.dumps({"database": videos}, ensure_ascii=False).replace(*change)
    path = written(tmp_path, text)

    def outcome():
        try:
            return [(name, rows.tolist()) for name, rows in read_ground_truth(path, subset).items()]
        except InputError as error:
            return str(error)

    found = outcome()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(files, "_truth_at_once", lambda *_: None)
        assert found == outcome()


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


def of_video(**entry):
    return {"database": {"a": {"subset": "validation", **entry}}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1, 2]", "not ground truth"),
        ("{", "line 1: not JSON"),
        ({"database": {"a": {"annotations": []}}}, "video 'a': no 'subset'"),
        (of_video(), "video 'a': no 'annotations'"),
        (of_video(subset="test"), "no video of subset 'validation'; it has 'testing'"),
        (of_video(annotations=[{"segment": [1]}]), "video 'a', instance 1: not of the form"),
        (of_video(annotations=[{"segment": [2, 1]}]), "instance 1: start 2 is not before end 1"),
        (of_video(annotations=[]), "no instance to find"),
    ],
)
def test_names_what_is_wrong_with_ground_truth(tmp_path, content, message):
    assert_refused(read_ground_truth, written(tmp_path, content), message)


def test_a_video_info_without_its_columns_is_named(tmp_path):
    path = written(tmp_path, ACTIONS)
    info = tmp_path / "info.csv"
    with pytest.raises(InputError, match=r"info.csv: no such file"):
        read_ground_truth(path, video_info=info)
    info.write_text("clip,subset\nv_a,validation\n")
    with pytest.raises(InputError, match="info.csv: row 1: no column video: the first line"):
        read_ground_truth(path, video_info=info)


def test_reads_a_result_file_with_other_keys_and_negative_scores(tmp_path):
    results = {"a": [{"score": -3.5, "segment": [0, 2], "label": "x"}], "b": []}
    proposals = read_proposals(written(tmp_path, {"version": "", "results": results}))
    np.testing.assert_array_equal(proposals["a"], [[0, 2, -3.5]])
    assert proposals["b"].shape == (0, 3)


NUMBERS = st.integers(-3, 10**20) | st.floats(-5, 5) | st.sampled_from([0.1, 1e-310, 1e300])
SEGMENTS = st.tuples(NUMBERS, NUMBERS).map(sorted)
PROPOSALS = st.fixed_dictionaries(
    {"segment": SEGMENTS, "score": NUMBERS}, optional={"label": st.sampled_from(["x", "results"])}
)


@given(st.lists(st.tuples(st.sampled_from('ab"'), st.lists(PROPOSALS, max_size=3)), max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_read_at_once_is_what_is_read_row_by_row(tmp_path, videos):
    lines = [f"{json.dumps(video)}: {json.dumps(rows)}" for video, rows in videos]
    path = written(tmp_path, f'{{"version": "", "results": {{{", ".join(lines)}}}}}')
    expected = {
        video: as_array(rows)
        for video, rows in segments.read_proposals(path, below_zero=True).items()
    }
    found = read_proposals(path)
    assert list(found) == list(expected)
    assert all(np.array_equal(found[video], expected[video]) for video in expected)


def test_a_file_in_order_is_read_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "iterate_proposals", None)
    path = written(tmp_path, {"results": {"a": [{"score": 1, "segment": [0, 2]}]}})
    assert read_proposals(path)["a"].tolist() == [[0, 2, 1]]


@pytest.mark.parametrize(
    ("results", "message"),
    [
        *(
            (f'{{"v": [{{"score": 1, "segment": [0, 1]}}, {row}]}}', f"'v', proposal 2: {wrong}")
            for row, wrong in (
                ('{"score": NaN, "segment": [1, 2]}', ".*not finite"),
                ('{"score": 1, "segment": [-1e999, 2]}', ".*not finite"),
                ('{"score": null, "segment": [1, 2]}', "not of the form"),
                ('{"score": 1, "segment": [3, 2]}', ".*start is after end"),
                ('{"score": 1, "segment": [1, 2, 3]}', "not of the form"),
                ("7", "not of the form"),
            )
        ),
        ('{"v": {}}', "video 'v', proposals: a list is needed, not dict"),
        ('{"a": []}, "results": {"a": [{"score": 1, "segment": [0, 2]}]}', "two objects 'results'"),
        ('{"a": []}, "\\u0072esults": {"a": []}', "two objects 'results'; keep one"),
        ("[]", "not a result file"),
        (None, "not a result file"),
    ],
)
def test_names_what_is_wrong_with_proposals(tmp_path, results, message):
    content = "{}" if results is None else f'{{"results": {results}}}'
    assert_refused(read_proposals, written(tmp_path, content), message)


def test_what_is_passed_over_is_checked_too(tmp_path):
    path = tmp_path / "file.json"
    path.write_bytes(b'{"version": "\xff", "results": {"a": []}}')
    assert_refused(read_proposals, path, "not UTF-8")
    assert_refused(read_proposals, written(tmp_path, "[]"), "not a result file")


# ---- tables: THUMOS14's ground truth, and frame rates ----

THUMOS14 = """video-name,t-init,t-end,f-init,f-end,video-duration,frame-rate,video-frames,label-idx
video_test_0000278,0.0,1.4,0,42,215.166667,30.0,6455,-1
video_test_0000278,95.7,97.2,2871,2916,215.166667,30.0,6455,7
video_test_0000293,50.6,50.6,1265,1265,233.4,25.0,5835,7
"""


def test_reads_thumos14s_ground_truth_in_seconds_with_its_frame_rates(tmp_path):
    path = written(tmp_path, THUMOS14, "thumos14_test_groundtruth.csv")
    truth = read_ground_truth(path)
    assert {video: rows.tolist() for video, rows in truth.items()} == {
        "video_test_0000278": [[0.0, 1.4], [95.7, 97.2]],  # Ambiguous (-1) is an instance
        "video_test_0000293": [[50.6, 50.6]],
    }
    assert list(read_ground_truth(path, "all")) == list(truth)
    assert read_frame_rates(path) == {"video_test_0000278": 30.0, "video_test_0000293": 25.0}


def test_reads_a_plain_table_of_one_subset(tmp_path):
    text = "video,start,end,label,subset\na,1,2,x,training\nb,3,4.5,x,validation\nb,,,,\n"
    path = written(tmp_path, text, "truth.csv")
    assert {video: rows.tolist() for video, rows in read_ground_truth(path).items()} == {
        "b": [[3.0, 4.5]]
    }
    assert list(read_ground_truth(path, "all")) == ["a", "b"]
    bare = written(tmp_path, "video,start,end,label\na,1,2,x\n", "bare.csv")
    with pytest.raises(InputError, match="no video of subset 'validation'; it has none; give --s"):
        read_ground_truth(bare)
    assert list(read_ground_truth(bare, "all")) == ["a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (THUMOS14.replace("97.2", "95.6"), "row 3: video 'video_test_0000278': start 95.7 is not"),
        (
            THUMOS14.replace("95.7", "-1"),
            "row 3: .*start -1 is before the video, which begins at 0",
        ),
        (THUMOS14.replace("95.7", "nan"), "row 3: .*two times in seconds"),
        (THUMOS14.replace("50.6,50.6", ",50.6"), "row 4: .*from '' to '50.6'"),
        (THUMOS14.replace(",42,", ","), "row 2: 8 values in a table of 9 columns"),
        ("video,start\na,1\n", "row 1: no column end"),
        ("", "the file is empty"),
        ("video,start,end,label,subset\na,,,,validation\n", "no instance to find"),
    ],
)
def test_names_the_row_of_a_bad_table(tmp_path, text, message):
    assert_refused(read_ground_truth, written(tmp_path, text, "truth.csv"), message)


def test_videos_without_a_frame_rate_are_not_among_the_rates(tmp_path):
    text = "video_id\tpath\tfps\na\tx.mp4\t29.97\nb\t\t0.0\nc\t\t\nd\t\tfast\n"
    assert read_frame_rates(written(tmp_path, text, "videos.tsv")) == {"a": 29.97}


def test_a_table_of_videos_that_is_none_or_says_two_things_is_named(tmp_path):
    path = written(tmp_path, "name_of_it,fps\na,25\n", "videos.csv")
    with pytest.raises(InputError, match="videos.csv: row 1: no column video"):
        read_frame_rates(path)
    path = written(tmp_path, "video_id\tfps\na\t25\na\t30\n", "videos.tsv")
    with pytest.raises(InputError, match="videos.tsv: row 3: values for .* differ from row 2"):
        read_frame_rates(path)
    with pytest.raises(InputError, match="none.tsv: cannot be read"):
        read_frame_rates(tmp_path / "none.tsv")


def test_the_real_thumos14_tables_have_213_videos_and_3457_instances(shared_data):
    folder = shared_data / "thumos14"
    truth = read_ground_truth(folder / "thumos14_test_groundtruth.csv")
    assert (len(truth), sum(map(len, truth.values()))) == (213, 3457)
    rates = read_frame_rates(folder / "thumos14_test_groundtruth.csv")
    assert set(rates) == set(truth)
    assert set(rates.values()) == {24.0, 25.0, 29.97002997, 30.0}
    other = read_ground_truth(folder / "test_Annotation.csv")
    assert {video: np.sort(rows, axis=0).tolist() for video, rows in other.items()} == {
        video: np.sort(rows, axis=0).tolist() for video, rows in truth.items()
    }
