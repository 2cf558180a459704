"""Videos and results in S3, by Snakemake's storage plugin and a server of these tests."""

import importlib.util
import itertools
import logging
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import pytest

from dataset.conftest import encode_video
from runs.conftest import Project, copy_program
from worlds.h5_content import content

pytestmark = pytest.mark.workflow

NEEDED = ("moto", "boto3", "snakemake_storage_plugin_s3", "flask")
NUMBERS = itertools.count()
SHARDS = ("a", "b")  # of one video each
FRAMES = [f"results/video/frames/{shard}.h5" for shard in SHARDS]
STREAMS = "results/papers/partime/frames.h5"
TARGETS = ("results/dataset/videos.tsv", *FRAMES, STREAMS, "--notemp")
FEATURES = "results/features/shards/a.h5"


@dataclass(frozen=True)
class Bucket:
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

    logging.getLogger("werkzeug").setLevel(logging.WARNING)
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
def bucket(server) -> Bucket:
    name = f"bucket-{next(NUMBERS)}"
    server.create_bucket(Bucket=name)
    return Bucket(server, name)


@pytest.fixture(scope="module")
def videos(tmp_path_factory) -> Path:
    """Two videos and their annotations; of another the name is taken."""
    folder = tmp_path_factory.mktemp("videos")
    for name, frames in (("a.avi", 40), ("b.mp4", 60)):
        encode_video(folder / name, times=range(frames))
    shutil.copy(folder / "a.avi", folder / "a.mp4")
    rows = "a,1,2,jump,training\nb,2,4,jump,validation\n"
    (folder / "truth.csv").write_text(f"video,start,end,label,subset\n{rows}")
    return folder


@pytest.fixture(scope="module")
def local(videos, tmp_path_factory) -> Path:
    made = with_data(tmp_path_factory.mktemp("local"), videos)
    made.make(*TARGETS, config=configured())
    return made.folder


def with_data(folder: Path, videos: Path) -> Project:
    folder.mkdir(exist_ok=True)
    shutil.copy2(videos / "truth.csv", folder)
    shutil.copytree(videos, folder / "videos")
    return copy_program(folder)


def configured(place: str = "videos", annotations: str = "truth.csv", keep: bool = True) -> dict:
    dataset = {"videos": place, "annotations": annotations, "videos_per_shard": 1}
    return {"dataset": dataset, "video": {"keep": keep}}


def assert_same(one: Path, two: Path) -> None:
    first, second = ({name: held[1:] for name, held in content(x).items()} for x in (one, two))
    assert first == second
    assert any(first.values())


def fetched(folder: Path) -> list[str]:
    """Return the videos from storage that lie on the disk."""
    place = folder / ".snakemake/storage"
    return sorted(path.name for path in place.rglob("*") if path.suffix in (".avi", ".mp4"))


def test_videos_in_s3_are_fetched_for_their_jobs_alone(bucket, videos, local, tmp_path):
    for path in videos.iterdir():
        bucket.upload(path, f"videos/{path.name}")
    bucket.upload(videos / "b.mp4", "videos/deeper/c.mp4")
    project = copy_program(tmp_path)
    place = f"s3://{bucket.name}/videos/"
    config = configured(place, f"{place}truth.csv")
    project.make(*TARGETS, config=config)
    for name in (*FRAMES, STREAMS):
        assert_same(tmp_path / name, local / name)
    assert fetched(tmp_path) == []
    rejected = project.text("results/dataset/rejected_input.tsv")
    assert f"{place}a.mp4\t\ta.avi has the same name, which is the id of a video" in rejected
    assert project.planned(*TARGETS, config=config) == {}
    # another video in its place is fetched, the other is not
    encode_video(tmp_path / "a.avi", times=range(45))
    bucket.upload(tmp_path / "a.avi", "videos/a.avi")
    assert project.planned(*TARGETS, config=config)["video_frames"] == 1


def test_one_pass_over_videos_in_s3(bucket, videos, tmp_path):
    bucket.upload(videos / "a.avi", "a.avi")
    bucket.upload(videos / "truth.csv", "truth.csv")
    project = copy_program(tmp_path)
    place = f"s3://{bucket.name}"
    config = configured(place, f"{place}/truth.csv", keep=False)
    project.make(FEATURES, config=config)
    with h5py.File(tmp_path / FEATURES) as file:
        assert len(file["a/rgb"]) == 5  # 40 frames, 8 a snippet
    assert fetched(tmp_path) == []


def test_results_in_s3_are_those_of_this_disk(bucket, videos, local, tmp_path):
    project = with_data(tmp_path / "one", videos)
    storage = ("--default-storage-provider", "s3")
    storage += ("--default-storage-prefix", f"s3://{bucket.name}/mine")
    project.make(*TARGETS, *storage, config=configured())
    assert not (project.folder / "results").exists()
    keys = bucket.keys()
    assert {key for key in keys if not key.startswith("mine/results/")} == set()
    assert "mine/results/logs/video_frames/a.log" in keys
    for name in FRAMES:
        assert_same(bucket.download(f"mine/{name}", tmp_path / "frames.h5"), local / name)
    # another machine goes on where this one stopped
    other = with_data(tmp_path / "other", videos)
    assert other.planned(*TARGETS, *storage, config=configured()) == {}


def test_jobs_of_a_cluster_work_on_the_disk_of_their_node(bucket, videos, local, tmp_path):
    """Each job has a folder of its own, fetches what it reads and stores what it makes."""
    if importlib.util.find_spec("snakemake_executor_plugin_cluster_generic") is None:
        pytest.skip("cluster-generic missing: pip install 'actionspan[slurm]'")
    for path in videos.iterdir():
        bucket.upload(path, f"videos/{path.name}")
    project = copy_program(tmp_path)
    submit, status = tmp_path / "submit.sh", tmp_path / "status.sh"
    submit.write_text(
        f'#!/bin/sh\nexport SCRATCH={tmp_path}/scratch/$$\nmkdir -p "$SCRATCH"\n'
        'sh "$1" > "$SCRATCH/job.log" 2>&1\necho $? > "$SCRATCH/status"\necho "$SCRATCH"\n'
    )
    status.write_text('#!/bin/sh\n[ "$(cat "$1/status")" = 0 ] && echo success || echo failed\n')
    for script in (submit, status):
        script.chmod(0o755)
    place = f"s3://{bucket.name}/videos"
    done = project.snakemake(
        *TARGETS,
        *("--executor", "cluster-generic", "--jobs", "2", "--seconds-between-status-checks", "1"),
        *("--cluster-generic-submit-cmd", str(submit)),
        *("--cluster-generic-status-cmd", str(status)),
        *("--default-storage-provider", "s3"),
        *("--default-storage-prefix", f"s3://{bucket.name}/mine"),
        *("--shared-fs-usage", "persistence", "software-deployment", "sources", "source-cache"),
        *("--remote-job-local-storage-prefix", "$SCRATCH"),
        config=configured(place, f"{place}/truth.csv"),
    )
    logs = "".join(path.read_text()[-3000:] for path in tmp_path.glob("scratch/*/job.log"))
    assert done.returncode == 0, done.stdout + done.stderr + logs
    assert len([*tmp_path.glob("scratch/*/job.log")]) >= 4
    for name in FRAMES:
        assert_same(bucket.download(f"mine/{name}", tmp_path / "frames.h5"), local / name)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("videos_in", "line"),
    [
        ("s3://{}/empty", "dataset.videos: no video in s3://"),
        ("s3://no-such-bucket/videos", "dataset.videos: s3://no-such-bucket/videos: cannot be"),
    ],
)
def test_a_place_without_videos_is_one_line(bucket, videos_in, line, tmp_path):
    project = copy_program(tmp_path)
    config = configured(videos_in.format(bucket.name), "s3://any/truth.csv")
    status, text = project.dry_run(*TARGETS, config=config)
    assert status != 0
    assert line in text
    assert "Traceback" not in text
