import json

import pytest

from actionspan.annotations.tables import (
    Annotation,
    Instance,
    read_annotations,
    read_instances,
    write_annotations,
)
from actionspan.errors import InputError

JUMP = Instance(start=0.1, end=1 / 3, label="saut à ski")
KNOWN = [
    Annotation(video_id="a", subset="training", duration_seconds=9.5, instances=(JUMP,)),
    Annotation(video_id="b", subset="testing", duration_seconds=3.0),
]


def test_canonical_annotations_come_back(tmp_path):
    path = tmp_path / "annotations.json"
    write_annotations(path, KNOWN)
    assert read_annotations(path) == KNOWN
    content = json.loads(path.read_text())
    assert list(content) == ["version", "taxonomy", "database"]
    assert content["database"]["b"] == {"subset": "testing", "duration": 3.0, "annotations": []}


def test_annotations_of_another_form_do_where_they_have_what_is_needed(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("video,start,end,label,duration,subset\na,1,2,run,9,val\n")
    (known,) = read_annotations(path)
    assert (known.subset, known.duration_seconds) == ("validation", 9.0)
    path.write_text("video,start,end,label\na,1,2,run\n")
    assert read_instances(path) == {"a": (Instance(start=1.0, end=2.0, label="run"),)}
    with pytest.raises(InputError, match="video 'a': duration 0 s; a positive duration is needed"):
        read_annotations(path)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"subset": None}, "video 'a': no 'subset'"),
        ({"duration": "long"}, "video 'a': duration 0 s; a positive duration is needed"),
        ({"annotations": {}}, "video 'a': no 'annotations'"),
        ({"annotations": [{"segment": [1, 2]}]}, "video 'a', instance 1: no label"),
        ({"annotations": [{"segment": [1, "x"], "label": "a"}]}, "video 'a', instance 1: end 'x'"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, change, line):
    path = tmp_path / "annotations.json"
    entry = {"subset": "training", "duration": 9, "annotations": []} | change
    path.write_text(json.dumps({"database": {"a": entry}}))
    with pytest.raises(InputError, match=f"^{path}: {line}"):
        read_annotations(path)
