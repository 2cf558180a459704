"""What features.h5 says about itself, for captions."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from actionspan.annotations.tables import read_name, write_annotations
from actionspan.dataset.index import data_name
from actionspan.errors import InputError
from actionspan.features.collect import collect
from actionspan.features.settings import EncoderSettings, RescaleSettings, SequenceSettings
from actionspan.features.store import read_description


def test_the_encoders_are_named_with_their_weights_and_pictures():
    trained = {f"{name}_weights": Path(name, "model.safetensors") for name in ("rgb", "flow")}
    histogram = {"flow_weights": Path("a/flow.pt"), "flow_histogram": True}
    for given, algorithm, words in (
        (
            histogram,
            "dis",
            "pooled features of efficientnet_lite0 on RGB and on what moves in it, "
            "efficientnet_lite0 with weights flow.pt on dis flow, a histogram of flow",
        ),
        (
            {"source": "scores", "mover": False, **trained},
            "tvl1",
            "class scores of efficientnet_lite0 with weights model.safetensors on RGB, "
            "efficientnet_lite0 with weights model.safetensors on tvl1 flow",
        ),
        (
            {"source": "motion", "mover": False},
            "dis",
            "frame differences and the magnitude of dis flow",
        ),
    ):
        assert EncoderSettings(**given).described(algorithm) == words
    with pytest.raises(ValueError, match="mover: source is motion, which has no streams; leave it"):
        EncoderSettings(source="motion")


def test_the_description_and_the_name_of_the_data_go_into_features(
    tmp_path, write_tables, write_shard
):
    shard = write_shard("s", {"a": {"rgb": np.ones((5, 3))}})
    with h5py.File(shard, "a") as file:
        file.attrs["description"] = "numbers"
    videos, annotations = write_tables({"a": "training"})
    write_annotations(annotations, [], "some videos")
    assert read_name(annotations) == "some videos"
    (tmp_path / "annotations.csv").write_text("video_id,start,end,label\n")
    assert read_name(tmp_path / "annotations.csv") == "a data set without a name"
    plain = RescaleSettings(components=0, standardise="none")
    collect([shard], videos, annotations, tmp_path / "f.h5", plain)
    assert read_description(tmp_path / "f.h5") == ("numbers", "some videos")
    with pytest.raises(InputError, match="s.h5: no attribute data"):
        read_description(shard)


@pytest.mark.parametrize("with_cues", [False, True])
def test_only_a_file_with_squares_says_that_it_has_them(
    tmp_path, write_tables, write_shard, with_cues
):
    """The papers' models see features.h5, which has none."""
    rows = np.random.default_rng(0).random((5, 3))
    shard = write_shard("s", {"a": {"rgb": rows, "flow": rows, "mover": rows}})
    said = EncoderSettings().described("dis")
    with h5py.File(shard, "a") as file:
        file.attrs["description"] = said
    videos, annotations = write_tables({"a": "training"})
    how = SequenceSettings(components=0).rescaling() if with_cues else RescaleSettings(components=0)
    collect([shard], videos, annotations, tmp_path / "f.h5", how, with_cues=with_cues)
    found, _ = read_description(tmp_path / "f.h5")
    without = EncoderSettings(mover=False).described("dis")
    assert found == (said if with_cues else without)


def test_a_data_set_is_named_by_its_folder_or_its_annotations(tmp_path):
    folder = tmp_path / "cats" / "videos"
    assert data_name(folder, tmp_path / "a.json") == "the videos of cats/videos"
    assert data_name(None, folder / "a.json") == "the data set of videos/a.json"
