"""Work behind the page without any model: videos are not encoded, their proposals are given."""

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import pytest
import uvicorn

from actionspan.proposals.bundle_files import included_model
from actionspan.propose.results import Result, source_of
from actionspan.review import learning
from actionspan.review import work as work_module
from actionspan.review.footage import Encoded
from actionspan.review.server import make_app
from actionspan.review.work import ReviewWork
from report.conftest import closing_contexts
from review.footage import encoded
from worlds.videos import video_of

DONE = {"segments": [], "done": True}
GONE = {"sha256": "", "error": "no such file"}


def row(start, end, score=0.5):
    return {"segment": [float(start), float(end)], "score": score, "label": ""}


A, B, C = row(0, 10), row(20, 30), row(40, 50)


def result(one: Encoded, events=(), **more) -> Result:
    facts = {"duration_seconds": 60.0, "labelled": False, "curves": {}, "model": ""}
    given = {"proposals": events, "events": events, "source": one.source, **facts, **more}
    return Result(video_id=one.video.video_id, path=str(one.video.path), **given)


def encode_all(paths, folder=None, how=None, cameras=None):
    """Encode nothing; the digest of a video is its text."""
    for path in paths:
        there = path.exists()
        facts = {"sha256": path.read_bytes().hex(), "error": ""} if there else GONE
        video = video_of(path.stem, 2.0, path=path, **facts)
        yield Encoded(video=video, shard=path, source=source_of(path) if there else {})


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Start work on videos that are files of their names, in which these events are found."""
    monkeypatch.setattr(work_module, "encode_all", encode_all)

    def start(events, **more) -> ReviewWork:
        for name in events:
            if not (path := tmp_path / f"{name}.mp4").exists():
                path.write_text(name)
        work = ReviewWork(
            tmp_path / "out", {name: tmp_path / f"{name}.mp4" for name in events}, **more
        )
        monkeypatch.setattr(
            work, "_propose", lambda bundle, one, before: result(one, events[one.video.video_id])
        )
        return work

    return start


@contextmanager
def serving(work, token: str, once: str) -> Iterator[int]:
    """Serve a page; yield its port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        app = make_app(work, token, port, once)
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield port
        finally:  # of a test that fails too, or its thread keeps the process alive
            server.should_exit = True
            thread.join()


@pytest.fixture
def browse(work, chromium) -> Iterator[Callable]:
    """Open the page of `work` in the browser."""
    with serving(work, "x", "once") as port, closing_contexts(chromium) as new_context:

        def browse(width: int = 1440, **more: object):
            tab = new_context(width, **more).new_page()
            tab.goto(f"http://127.0.0.1:{port}/?token=x")
            tab.wait_for_selector("#list li:nth-child(2)", state="attached")
            return tab

        yield browse


def save(work: ReviewWork, name: str, version: int = 0, state=None, rows=None) -> None:
    """Save that a video is done, and that nothing happens in it."""
    rows = [[name, "", "", "", "none"]] if rows is None else rows
    work.corrections.save(name, version, DONE if state is None else state, rows)


@contextmanager
def reviewing(clips: Path, port: int = 0) -> Iterator[tuple[str, subprocess.Popen]]:
    """Start the server; yield its address and its process."""
    command = [sys.executable, "-m", "actionspan", "review", clips, "--no-browser"]
    with subprocess.Popen(
        [*map(str, command), "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        text=True,
    ) as process:
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.kill()


@pytest.fixture(scope="session")
def footage(tmp_path_factory):
    """Four videos, and what happens in each."""
    folder = tmp_path_factory.mktemp("footage")
    made = [encoded(folder, f"video{number}", number) for number in range(4)]
    return [one for one, _ in made], {one.video.video_id: rows for one, rows in made}


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """Learn in this process, the included model each time; what is asked to be learned from."""
    same, trained = tmp_path / "same", []
    same.mkdir()
    shutil.copy(included_model(), same / "model.safetensors")

    def train(own, known, out, seed):
        trained.append({one.video.video_id: len(known[one.video.video_id]) for one in own})
        shutil.copytree(same, out)

    def submit(work, *given):
        work(*given)
        return Mock(result=lambda: None)

    monkeypatch.setattr(learning, "worker_pool", lambda _: Mock(submit=submit))
    monkeypatch.setattr(learning, "_train", train)
    return trained
