"""What is read of each format, from files right and wrong, at once and as a stream."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actionspan.annotations.formats.records import RawInstance, Reading
from actionspan.annotations.formats.registry import read_annotation_file, stream_annotation_file
from actionspan.annotations.formats.rows import iterate_video_info
from actionspan.errors import InputError
from actionspan.storage import json_stream


def write(tmp_path, content, name="annotations"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def segments(reading):
    return {
        record.video_id: [(raw.start, raw.end, raw.label) for raw in record.instances]
        for record in reading.records
    }


def reasons(reading):
    return [(bad.row, bad.reason) for bad in reading.rejections]


def activitynet(**entries):
    return json.dumps({"version": "1.3", "taxonomy": [], "database": entries})


KNOWN = "known are training, validation, testing (train, val, test)"
ENTRY = {"subset": "training", "duration": 9, "annotations": [{"segment": [1, 2], "label": "run"}]}


def test_activitynet_form(tmp_path):
    empty = {"subset": "testing", "duration": 3.5, "annotations": []}
    reading = read_annotation_file(write(tmp_path, activitynet(a=ENTRY, b=empty)))
    assert segments(reading) == {"a": [(1, 2, "run")], "b": []}
    found = [(record.subset, record.seconds) for record in reading.records]
    assert found == [("training", 9.0), ("testing", 3.5)]
    assert reading.records[0].instances[0].row == "database.a.annotations[0]"
    assert reasons(reading) == []


def test_anet_anno_action_form(tmp_path):
    facts = {"duration_second": 9.5, "duration_frame": 285, "feature_frame": 272}
    entry = facts | {"annotations": ENTRY["annotations"]}
    reading = read_annotation_file(write(tmp_path, json.dumps({"v_a": entry})))
    assert segments(reading) == {"v_a": [(1, 2, "run")]}
    record = reading.records[0]
    assert (record.subset, record.seconds, record.frames) == ("", 9.5, 285)
    assert record.instances[0].row == "v_a.annotations[0]"


@pytest.mark.parametrize(
    "text",
    [
        "video,start,end,label\na,1,2,run\n",
        "video,start,end,label\r\na,1,2,run\r\n",
        "video\tstart\tend\tlabel\na\t1\t2\trun",
        "Video ; Start ; End ; Label\na ; 1 ; 2 ; run\n",
        "label,end,start,video\nrun,2,1,a\n",
        "a,1,2,run\n",
        "\n\na,1,2,run\n\n",
        "video_id,start_seconds,end_seconds,class,comment\na,1,2,run,hm\n",
        '"video","start","end","label"\n"a","1","2","run"\n',
    ],
)
def test_plain_tables(tmp_path, text):
    reading = read_annotation_file(write(tmp_path, text))
    assert segments(reading) == {"a": [("1", "2", "run")]}
    assert reasons(reading) == []


def test_a_table_with_subsets_and_a_video_without_instances(tmp_path):
    text = "video,start,end,label,subset\na,1,2,run,train\nb,,,,val\na,3,4,fall\nc,,,,TESTING\n"
    reading = read_annotation_file(write(tmp_path, text))
    assert segments(reading) == {"a": [("1", "2", "run"), ("3", "4", "fall")], "b": [], "c": []}
    assert [record.subset for record in reading.records] == ["training", "validation", "testing"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_byte_order_marks_are_understood(tmp_path, encoding):
    for text in ["video,start,end,label\nvidéo,1,2,saut à ski\n", activitynet(vidéo=ENTRY)]:
        reading = read_annotation_file(write(tmp_path, text.encode(encoding)))
        assert list(segments(reading)) == ["vidéo"]


def test_latin_1_loses_only_the_rows_that_hold_it(tmp_path):
    text = "video,start,end,label\na,1,2,run\ncafé,1,2,run\n"
    reading = read_annotation_file(write(tmp_path, text.encode("latin-1")))
    assert list(segments(reading)) == ["a"]
    expected = "video id 'caf\\xe9' is not UTF-8 text; save the file as UTF-8"
    assert reasons(reading) == [("3", expected)]
    entries = '{"database": {"café": {"annotations": []}, "a": {"annotations": []}}}'
    reading = read_annotation_file(write(tmp_path, entries.encode("latin-1")))
    assert list(segments(reading)) == ["a"]
    assert reasons(reading) == [("database.caf\\xe9", expected)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        ("{}x".encode("utf-16-le"), "not text, or UTF-16 without a byte order mark"),
        (b"\xff\xfea", r"broken UTF-16 \(byte 2\)"),
        (b"\x89PNG\r\n\x1a\n\0\0", "not text"),
        (b'{"database": {', "line 1: not JSON"),
        (b'{"database": []}', 'no object "database"'),
        (b"[1, 2]", "not ground truth or annotations: not a JSON object"),
        (b'{"a": 1}', "neither ActivityNet annotations"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"name,from,to,what\na,1,2,run\n", "row 1: no column start: the first line must name"),
        (b"hello\n", "row 1: no column video"),
    ],
)
def test_a_file_of_no_use_is_one_line(tmp_path, content, message):
    path = write(tmp_path, content)
    with pytest.raises(InputError, match=rf"^{path}: [^\n]*{message}[^\n]*$"):
        read_annotation_file(path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"subset": "dev"}, f"unknown subset 'dev'; {KNOWN}"),
        ({"subset": 3}, f"unknown subset '3'; {KNOWN}"),
        ({"annotations": 5}, "annotations are not a list"),
        ({"annotations": None}, "annotations are not a list"),
    ],
)
def test_an_entry_of_no_use_is_one_line(tmp_path, change, reason):
    reading = read_annotation_file(write(tmp_path, activitynet(a=ENTRY | change, b=ENTRY)))
    assert list(segments(reading)) == ["b"]
    assert reasons(reading) == [("database.a", reason)]


def test_entries_that_are_no_entries(tmp_path):
    text = activitynet(a=7, b={"duration": 1}, **{"c/d": ENTRY, "": ENTRY, "e\nf": ENTRY})
    assert reasons(read_annotation_file(write(tmp_path, text))) == [
        ("database.a", "not an object with annotations"),
        ("database.b", "no list of annotations"),
        ("database.c/d", "video id 'c/d' cannot be a file's stem; ids hold no '/'"),
        ("database.", "no video id"),
        ("database.e\\nf", "video id 'e\\nf' holds a control character"),
    ]


def test_repeated_json_keys_are_found(tmp_path):
    text = '{"database": {"a": {"annotations": []}, "a": {"annotations": [1]},'
    text += '"b": {"annotations": [], "annotations": [2]}}}'
    reading = read_annotation_file(write(tmp_path, text))
    assert segments(reading) == {"a": []}
    assert reasons(reading) == [
        ("database.b", "key 'annotations' is there twice"),
        ("database.a", "this id is there twice; its first entry counts"),
    ]


def test_segments_that_are_no_segments(tmp_path):
    items = [5, {}, {"segment": [1]}, {"segment": "1,2"}, {"segment": [1, 2], "label": "run"}]
    reading = read_annotation_file(write(tmp_path, activitynet(a=ENTRY | {"annotations": items})))
    assert segments(reading) == {"a": [(1, 2, "run")]}
    assert reasons(reading) == [
        (f"database.a.annotations[{number}]", "no segment [start, end]") for number in range(4)
    ]


def test_rows_of_a_table_that_are_no_rows(tmp_path):
    text = "video,start,end,label,subset\na,1,2,run,val\na,1,2,run,dev\na,3,4,run,train\n"
    text += 'a,1,2,run,val,more\n"a,1,2,run\n,1,2,run\n'
    reading = read_annotation_file(write(tmp_path, text))
    assert segments(reading) == {"a": [("1", "2", "run")]}
    assert reasons(reading) == [
        ("3", f"unknown subset 'dev'; {KNOWN}"),
        ("4", "subset training, but earlier rows put 'a' in validation"),
        ("5", "6 values in a table of 5 columns"),
        ("6", "not a row of a table: unexpected end of data"),
        ("7", "no video id"),
    ]


def test_thumos14_text_files(tmp_path):
    write(tmp_path, "video_validation_0000266  72.8 76.4\n\n", "BaseballPitch_val.txt")
    write(tmp_path, "video_validation_0000266 1 2\nvideo_test_1 3\n", "Ambiguous_val.txt")
    reading = read_annotation_file(tmp_path)
    assert segments(reading) == {
        "video_validation_0000266": [("1", "2", "Ambiguous"), ("72.8", "76.4", "BaseballPitch")]
    }
    assert [record.subset for record in reading.records] == ["training"]
    assert reasons(reading) == [("2", "'video start end' is wanted")]
    without = read_annotation_file(tmp_path, keep_ambiguous=False)
    assert segments(without) == {"video_validation_0000266": [("72.8", "76.4", "BaseballPitch")]}


def test_video_info_takes_the_same_row_twice_but_not_two_truths():
    text = "video,numFrame,seconds,fps,rfps,subset\na,300,10,25,30,training\n"
    text += "a,300,10,25,30,training\na,300,11,25,30,training\nb,1,1,1,1,odd\n"
    reading = Reading()
    reading.records = list(iterate_video_info("info.csv", text, reading))
    record = reading.records[0]
    assert (record.seconds, record.frames, record.fps, record.subset) == (10, 300, 30, "training")
    assert reasons(reading) == [
        ("4", "values for 'a' differ from row 2, which counts"),
        ("5", f"unknown subset 'odd'; {KNOWN}"),
    ]


def test_both_forms_of_thumos14_say_the_same(shared_data):
    folder = shared_data / "thumos14"
    one = read_annotation_file(folder / "test_Annotation.csv")
    two = read_annotation_file(folder / "thumos14_test_groundtruth.csv")
    for reading in (one, two):
        assert len(reading.records) == 213
        assert {record.subset for record in reading.records} == {"validation"}
        assert reasons(reading) == []
    rows = [
        Counter((each.video_id, *found) for each in reading.records for found in each.parsed())
        for reading in (one, two)
    ]
    assert rows[0].total() == rows[1].total() == 3457
    assert rows[0] == rows[1]
    assert sum(count for key, count in rows[0].items() if key[3] == "Ambiguous") == 99
    dropped = read_annotation_file(folder / "test_Annotation.csv", keep_ambiguous=False)
    assert sum(len(record.instances) for record in dropped.records) == 3457 - 99
    training = read_annotation_file(folder / "val_Annotation.csv")
    assert len(training.records) == 200
    assert {record.subset for record in training.records} == {"training"}


@pytest.mark.parametrize(
    ("video_id", "reason"),
    [
        ("..", "video id '..' cannot be a file's stem; ids hold no '/'"),
        ("v" * 252, "cannot be a file's stem: 252 bytes, at most 251"),
        ("視" * 100, "cannot be a file's stem: 300 bytes, at most 251"),
    ],
)
def test_ids_that_name_no_file_are_refused(tmp_path, video_id, reason):
    content = f"video,start,end,label\na,0,1,run\n{video_id},0,1,run\n{'v' * 251},0,1,run\n"
    reading = read_annotation_file(write(tmp_path, content, "a.csv"))
    assert list(segments(reading)) == ["a", "v" * 251]
    ((row, found),) = reasons(reading)
    assert row == "3"
    assert found.endswith(reason)
    assert len(found) < 200


def test_labels_have_a_length():
    RawInstance(start=0, end=1, label="x" * 1000).parsed()
    with pytest.raises(ValueError, match="^.{,150}too long: 1001 characters, at most 1000$"):
        RawInstance(start=0, end=1, label="x" * 1001).parsed()


def test_a_duration_too_short_to_divide_by_is_none(tmp_path):
    entry = {**ENTRY, "duration": 1e-320, "annotations": []}
    (record,) = read_annotation_file(write(tmp_path, activitynet(a=entry))).records
    assert record.seconds == 0.0


def outcome(read, path):
    """Return what a reading has of each video, or its error."""
    try:
        return [vars(record) for record in read(path)]
    except InputError as error:
        return str(error)


def streamed(path):
    return list(stream_annotation_file(path)[1])


def at_once(path):
    return read_annotation_file(path, strict=True).records


SUBSETS = st.sampled_from(["training", "val", "", "mine"])
TIMES = st.sampled_from([0, 1.5, "2", None, [1]])
SEGMENTS = st.lists(TIMES, min_size=1, max_size=3)
INSTANCES = st.fixed_dictionaries({"segment": SEGMENTS}, optional={"label": st.text(max_size=2)})
FOUND = st.fixed_dictionaries(
    {"subset": SUBSETS},
    optional={"annotations": st.lists(INSTANCES, max_size=2), "duration": TIMES},
)
DATABASES = st.dictionaries(st.text(max_size=2), FOUND | st.integers(), max_size=4)


@given(DATABASES, st.integers(1, 60), st.data())
def test_a_stream_is_what_is_read_at_once(tmp_path_factory, database, characters, data):
    path = tmp_path_factory.getbasetemp() / "streamed.json"
    text = json.dumps({"version": 1, "database": database, "taxonomy": []}, ensure_ascii=False)
    cut = data.draw(st.integers(0, len(text)) | st.just(len(text)))
    path.write_text(text[:cut], encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "_CHARACTERS", characters)
        found, wanted = outcome(streamed, path), outcome(at_once, path)
    if cut < len(text) and isinstance(wanted, str):
        assert isinstance(found, str)  # a stream may find a wrong entry before the cut
    else:
        assert found == wanted


@pytest.mark.parametrize(
    "content",
    [
        '{"database": {"a": ENTRY, "a": ENTRY}}',
        '{"database": {"a": ENTRY, "b": {"subset": "training", "subset": "testing"}}}',
        '{"database": {"a": ENTRY}, "database": {"b": ENTRY}}',
        '{"database": {"a": ENTRY}} more',
        '{"database": {"a": ENTRY}, "b": "\x00"}',
        '{"database": {}}',
        '{"database": []}',
        '{"v_a": ENTRY}',
        "{}",
        "[]",
        "",
        "video,start,end,label\na,1,2,run\n",
        b"\xef\xbb\xbf" + activitynet(a=ENTRY).encode(),
        activitynet(a=ENTRY).encode("utf-16"),
        activitynet(café=ENTRY).encode("latin-1"),
    ],
)
def test_a_stream_of_any_file_is_what_is_read_at_once(tmp_path, content):
    if isinstance(content, str):
        content = content.replace("ENTRY", json.dumps(ENTRY))
    path = write(tmp_path, content)
    assert outcome(streamed, path) == outcome(at_once, path)


def test_a_stream_of_a_folder_or_of_nothing_is_what_is_read_at_once(tmp_path):
    assert outcome(streamed, tmp_path) == outcome(at_once, tmp_path)
    missing = tmp_path / "missing"
    assert "cannot be read: No such file" in outcome(streamed, missing)
    assert outcome(streamed, missing) == outcome(at_once, missing)
