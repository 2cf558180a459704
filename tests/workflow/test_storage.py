"""Files in S3 as the plan sees them, without Snakemake."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from actionspan.errors import InputError
from actionspan.jobs import memory
from actionspan.workflow.dataset import DatasetPlan, Storage, is_uri
from actionspan.workflow.features import found_weights
from workflow.conftest import merged


class Registry:
    """Snakemake's `storage`, with nothing behind it."""

    default_storage_provider = None

    def s3(self, uri: str) -> SimpleNamespace:
        return SimpleNamespace(uri=uri)


class Away(Registry):
    default_storage_provider = "s3"


def test_a_uri_begins_with_its_scheme():
    paths = ("s3://b/v", "gs://b/v", "videos", "/s3:/b", None)
    assert [is_uri(path) for path in paths] == [True, True, False, False, False]


def test_only_what_a_person_gives_is_kept_out_of_the_storage_of_results():
    storage = Storage(Registry(), lambda path: f"local {path}")
    given = storage.given(["mine.csv", "results/features/features.h5", "s3://b/mine.csv"])
    assert given[:2] == ["local mine.csv", "results/features/features.h5"]
    assert given[2].uri == "s3://b/mine.csv"


def test_other_files_are_seen_by_size_and_any_time_or_by_content(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = ["a.mp4", "results/made.mp4", "s3://b/c.mp4", "missing.mp4"]
    Path("results").mkdir()
    for path in paths[:2]:
        Path(path).write_bytes(b"1234")
        os.utime(path, (1, 1))

    def changed(before: str, *, content: bool = False) -> bool:
        return Storage().seen(paths, content=content) != before

    by_time, by_content = Storage().seen(paths), Storage().seen(paths, content=True)
    os.utime("results/made.mp4", (9, 9))
    assert not changed(by_time)
    os.utime("a.mp4", (0, 0))
    assert changed(by_time)
    assert not changed(by_content, content=True)
    Path("a.mp4").write_bytes(b"12345")
    os.utime("a.mp4", (1, 1))
    assert changed(by_time)
    Path("a.mp4").write_bytes(b"4321")
    assert changed(by_content, content=True)


def test_results_are_in_storage_where_snakemake_says_so():
    assert [Storage(x).holds_results for x in (None, Registry(), Away())] == [False, False, True]


@pytest.mark.parametrize("folder", ["gs://b/v", "http://b/v"])
def test_another_kind_of_storage_says_what_is_understood(folder):
    with pytest.raises(InputError, match="my.yaml: dataset.videos: .*://b/v: a folder, or s3://"):
        Storage(Registry()).names(folder, "my.yaml: dataset.videos")


def test_a_missing_plugin_says_how_to_get_it(planned):
    with pytest.raises(InputError, match=r"s3://b/v: needs pip install 'actionspan\[s3\]'"):
        planned({"dataset": {"videos": "s3://b/v/", "annotations": "s3://b/truth.csv"}})


def test_the_first_videos_by_name_are_fetched_where_videos_are_not_on_this_disk(config):
    config = merged(config, {"demo": {"videos": 5}})
    here, away = (DatasetPlan(config, "config.yaml", Storage(x)) for x in (Registry(), Away()))
    assert here.first_fetched(2) == []
    assert away.first_fetched(2) == sorted(here.paths.values())[:2]


@pytest.fixture
def shards(config, tmp_path, monkeypatch):
    """Return how many shards 96 videos have on so many cores, with memory for 8 jobs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(memory, "_allowed_cores", lambda: 64)
    monkeypatch.setattr(memory, "_available_bytes", lambda: 35 * 10**9)
    known = merged(config, {"demo": {"videos": 96}})

    def planned(cores, storage=None, keep=False):
        plan = DatasetPlan(known, "config.yaml", storage or Storage(), cores)
        if keep:
            plan.keep_shards()
        return len(plan.shards)

    return planned


def test_a_small_set_has_a_shard_for_each_core_that_memory_allows(shards):
    assert [shards(cores) for cores in (1, 2, 4, 7, 8, 16)] == [4, 4, 4, 7, 8, 8]


def test_later_runs_and_jobs_elsewhere_make_as_many_shards_as_the_first(shards):
    assert shards(7, keep=True) == 7
    assert [shards(cores) for cores in (2, 16, None)] == [7, 7, 7]


def test_cores_do_not_count_where_jobs_run_elsewhere_or_results_are_there(shards):
    assert [shards(None), shards(7, Storage(Away()), keep=True)] == [4, 4]
    assert not Path("results").exists()
    Path("results/dataset").mkdir(parents=True)
    Path("results/dataset/videos.tsv").touch()  # of a version that did not keep the number
    assert shards(7) == 6, "of 16 videos"


def test_weights_are_where_their_job_finds_them():
    rgb, tuned = "results/finetune/rgb/model.safetensors", "results/finetune/rgb/tuned_encoder"
    encoders = {"rgb_weights": rgb, "flow_weights": "s3://b/flow.pt", "clip_weights": "mine.pt"}
    encoders |= {"rgb_encoder": "resnet18", "input_size": 224}
    place = ".snakemake/storage/s3/b"
    there = found_weights({"rgb_encoder": tuned}, [f"{place}/{tuned}"])
    assert there == {"rgb_encoder": f"{place}/{tuned}"}
    moved = {"rgb_weights": f"{place}/me/{rgb}", "flow_weights": f"{place}/flow.pt"}
    assert found_weights(encoders, [*moved.values(), "mine.pt"]) == encoders | moved
    assert found_weights(encoders, [rgb]) == encoders
