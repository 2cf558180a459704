"""Videos and results in S3, by Snakemake's storage plugin and a server of these tests."""

import importlib.util
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from dataset.conftest import encode_video
from workflow.conftest import Project, copy_program

pytestmark = pytest.mark.workflow

NEEDED = ("moto", "boto3", "snakemake_storage_plugin_s3", "flask")
FEATURES = "results/features/features.h5"
CONFIG: dict[str, Any] = {
    "dataset": {"annotations": "truth.csv", "videos_per_shard": 1},
    "video": {"keep": False},
    "features": {"rescale": {"components": 4}},
}


@dataclass(frozen=True)
class Bucket:
    """A bucket for one test."""

    client: Any
    name: str

    def keys(self) -> set[str]:
        listed = self.client.list_objects_v2(Bucket=self.name)
        return {each["Key"] for each in listed.get("Contents", [])}

    def upload(self, path: Path, key: str) -> None:
        self.client.upload_file(str(path), self.name, key)

    def download(self, key: str, path: Path) -> Path:
        self.client.download_file(self.name, key, str(path))
        return path


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    """A client of an S3 server that Snakemake knows too, by its environment."""
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        pytest.skip(
            f"{', '.join(missing)} missing: pip install 'actionspan[s3]' 'moto[server]' "
            "(docs/cluster.md)"
        )
    import boto3
    from moto.server import ThreadedMotoServer

    own = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    own.start()
    host, port = own.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "tests")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "tests")
        patch.setenv("SNAKEMAKE_STORAGE_S3_ENDPOINT_URL", f"http://{host}:{port}")
        yield boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1")
    own.stop()


@pytest.fixture
def bucket(server, request) -> Bucket:
    name = f"bucket-{abs(hash(request.node.name)) % 10**8}"
    server.create_bucket(Bucket=name)
    return Bucket(server, name)


@pytest.fixture(scope="module")
def videos(tmp_path_factory) -> Path:
    """Three videos of different lengths and the annotations of two; one name is taken."""
    folder = tmp_path_factory.mktemp("videos")
    for name, frames in (("a.mp4", 40), ("b.mp4", 60), ("c c.mp4", 50)):
        encode_video(folder / name, times=range(frames))
    shutil.copy(folder / "a.mp4", folder / "b.avi")
    rows = "a,1,2,jump,training\nb,2,4,jump,validation\nc c,1,3,run,training\n"
    (folder / "truth.csv").write_text(f"video,start,end,label,subset\n{rows}")
    return folder


@pytest.fixture(scope="module")
def local(videos, tmp_path_factory) -> Project:
    """A run with everything on this disk."""
    made = copy_program(tmp_path_factory.mktemp("local"))
    shutil.copy(videos / "truth.csv", made.folder)
    shutil.copytree(videos, made.folder / "videos")
    done = made.snakemake(FEATURES, "--show-failed-logs", config=with_videos("videos"))
    assert done.returncode == 0, done.stdout + done.stderr
    return made


def with_videos(place: str, **dataset: Any) -> dict[str, Any]:
    return {**CONFIG, "dataset": {**CONFIG["dataset"], "videos": place, **dataset}}


def copy_of(path: Path) -> dict[str, np.ndarray]:
    with h5py.File(path) as file:
        return {name: file[name][:] for name in ("features", "video_id")}


def assert_same(one: Path, two: Path) -> None:
    first, second = copy_of(one), copy_of(two)
    assert len(first["video_id"]) == 3
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])


def fetched(folder: Path) -> list[str]:
    """Return the files of storage that lie on the disk."""
    place = folder / ".snakemake/storage"
    return sorted(path.name for path in place.rglob("*") if path.is_file())


def test_videos_in_s3_are_fetched_for_their_jobs_alone(bucket, videos, local, tmp_path):
    for path in videos.iterdir():
        bucket.upload(path, f"videos/{path.name}")
    bucket.upload(videos / "a.mp4", "videos/deeper/d.mp4")
    project = copy_program(tmp_path)
    place = f"s3://{bucket.name}/videos/"
    config = with_videos(place, annotations=f"{place}truth.csv")
    done = project.snakemake(FEATURES, "--show-failed-logs", config=config)
    assert done.returncode == 0, done.stdout + done.stderr
    assert_same(tmp_path / FEATURES, local.folder / FEATURES)
    assert fetched(tmp_path) == []
    rejected = project.text("results/dataset/rejected_input.tsv")
    assert f"{place}b.mp4\t\tvideo id 'b' is taken by b.avi" in rejected
    assert project.planned(FEATURES, config=config) == {}
    # another video is fetched, the others are not
    encode_video(tmp_path / "a.mp4", times=range(45))
    bucket.upload(tmp_path / "a.mp4", "videos/a.mp4")
    assert project.planned(FEATURES, config=config)["features_encode"] == 1


def test_results_in_s3_are_those_of_this_disk(bucket, videos, local, tmp_path):
    project = copy_program(tmp_path)
    shutil.copy(videos / "truth.csv", tmp_path)
    shutil.copytree(videos, tmp_path / "videos")
    config = with_videos("videos")
    storage = ("--default-storage-provider", "s3")
    storage += ("--default-storage-prefix", f"s3://{bucket.name}/mine")
    done = project.snakemake(FEATURES, *storage, "--show-failed-logs", config=config)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (tmp_path / "results").exists()
    assert {key for key in bucket.keys() if not key.startswith("mine/results/")} == set()
    assert f"mine/{FEATURES}" in bucket.keys()
    assert "mine/results/logs/features_rescale/features.log" in bucket.keys()
    made = bucket.download(f"mine/{FEATURES}", tmp_path / "features.h5")
    assert_same(made, local.folder / FEATURES)
    # another machine goes on where this one stopped
    other = copy_program(tmp_path / "other")
    shutil.copy(videos / "truth.csv", other.folder)
    shutil.copytree(videos, other.folder / "videos")
    assert other.planned(FEATURES, *storage, config=config) == {}


def test_jobs_that_share_no_disk_with_snakemake(bucket, videos, local, tmp_path):
    """Each job unpacks the sources, fetches its files, and stores what it makes."""
    if importlib.util.find_spec("snakemake_executor_plugin_cluster_generic") is None:
        pytest.skip("cluster-generic missing: pip install 'actionspan[slurm]'")
    project = copy_program(tmp_path)
    for path in videos.iterdir():
        bucket.upload(path, f"videos/{path.name}")
    node = tmp_path / "node"  # a disk of its own: jobs begin in this empty folder
    submit = tmp_path / "submit.sh"
    submit.write_text(
        f'#!/bin/sh\nmkdir -p {node}/$$ && cd {node}/$$ && sh "$1" > job.log 2>&1\n'
        'echo $? > status; echo "$PWD"\n'
    )
    submit.chmod(0o755)
    status = tmp_path / "status.sh"
    status.write_text('#!/bin/sh\n[ "$(cat "$1/status")" = 0 ] && echo success || echo failed\n')
    status.chmod(0o755)
    place = f"s3://{bucket.name}/videos"
    config = with_videos(place, annotations=f"{place}/truth.csv")
    done = project.snakemake(
        FEATURES,
        *("--executor", "cluster-generic", "--jobs", "2"),
        *("--cluster-generic-submit-cmd", str(submit)),
        *("--cluster-generic-status-cmd", str(status)),
        *("--seconds-between-status-checks", "1", "--shared-fs-usage", "none"),
        *("--default-storage-provider", "s3"),
        *("--default-storage-prefix", f"s3://{bucket.name}/mine"),
        *("--envvars", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
        config=config,
    )
    logs = "".join(path.read_text()[-3000:] for path in node.rglob("job.log"))
    assert done.returncode == 0, done.stdout + done.stderr + logs
    made = bucket.download(f"mine/{FEATURES}", tmp_path / "features.h5")
    assert_same(made, local.folder / FEATURES)


@pytest.mark.parametrize(
    ("videos_in", "line"),
    [
        ("s3://{}/empty", "dataset.videos: no video in s3://"),
        ("s3://no-such-bucket/videos", "dataset.videos: s3://no-such-bucket/videos: cannot be"),
        ("gs://{}/videos", "dataset.videos: gs://"),
    ],
)
def test_a_place_without_videos_is_one_line(bucket, videos_in, line, tmp_path):
    project = copy_program(tmp_path)
    config = with_videos(videos_in.format(bucket.name), annotations="s3://any/truth.csv")
    status, text = project.dry_run(FEATURES, config=config)
    assert status != 0
    assert line in text
    assert "Traceback" not in text


