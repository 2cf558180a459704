"""Models by name from a hub, here a server on this machine, and the cards that introduce them."""

import hashlib
import json
import pickle
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from actionspan.cli import main
from actionspan.demo.data_set import render_demo
from actionspan.demo.scenario import DemoSettings, demo_video_names
from actionspan.errors import InputError
from actionspan.proposals.bundle_files import bundle_path, included_model
from actionspan.proposals.model_card import card_of
from actionspan.propose import Proposer

REVISIONS = {"main": "a" * 40, "v1": "b" * 40}


class Hub(ThreadingHTTPServer):
    """A hub with repositories; `asked` are the paths that it was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.asked: list[str] = []


class _Answer(BaseHTTPRequestHandler):
    server: Hub

    def do_GET(self) -> None:  # noqa: N802
        self.server.asked.append(self.path)
        words = self.path.split("?")[0].strip("/").split("/")
        api = words[:2] == ["api", "models"]
        owner, name, _, revision, *rest = words[2:] if api else [*words, "", ""]
        files = self.server.repositories.get(f"{owner}/{name}")
        commit = REVISIONS.get(revision, revision if revision in REVISIONS.values() else None)
        if files is None:
            self._send(404, b"", {"X-Error-Code": "RepoNotFound"})
        elif commit is None:
            self._send(404, b"", {"X-Error-Code": "RevisionNotFound"})
        elif api and words[4:5] == ["tree"]:
            listed = [
                {"type": "file", "path": each, "size": len(content), "oid": "0"}
                for each, content in files.items()
            ]
            self._send(200, json.dumps(listed).encode())
        elif api:
            siblings = [{"rfilename": each} for each in files]
            body = {"_id": "1", "id": f"{owner}/{name}", "sha": commit, "siblings": siblings}
            self._send(200, json.dumps(body).encode())
        elif (content := files.get("/".join(filter(None, rest)))) is not None:
            etag = hashlib.sha1(content + commit.encode()).hexdigest()  # noqa: S324
            self._send(200, content, {"ETag": f'"{etag}"', "X-Repo-Commit": commit})
        else:
            self._send(404, b"", {"X-Error-Code": "EntryNotFound"})

    do_HEAD = do_GET

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub with the included model as org/demo; what is fetched is kept in tmp_path."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "kept"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with Hub() as server:
        address = f"http://127.0.0.1:{server.server_port}"
        template = address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
        monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr("huggingface_hub.file_download.HUGGINGFACE_CO_URL_TEMPLATE", template,
                            raising=False)  # fmt: skip
        server.repositories["org/demo"] = {
            "model.safetensors": included_model().read_bytes(),
            "pytorch_model.bin": b"never asked for",
            "README.md": b"# a card",
        }
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def offline(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


def test_a_model_is_fetched_once_and_then_used_without_a_network(hub, monkeypatch):
    path = bundle_path(Path("hf:org/demo"))
    assert path.read_bytes() == included_model().read_bytes()
    files = [asked for asked in hub.asked if "/resolve/" in asked]
    assert files
    assert all(asked.endswith("/model.safetensors") for asked in files)  # no pickle, no card
    hub.asked.clear()
    offline(monkeypatch)
    assert bundle_path(Path("hf:org/demo")) == path
    assert hub.asked == []


def test_a_revision_is_another_model(hub, monkeypatch):
    main_one, other = (bundle_path(Path(f"hf:org/demo{each}")) for each in ("", "@v1"))
    assert main_one.parent.name == REVISIONS["main"]
    assert other.parent.name == REVISIONS["v1"]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("hf:org/none", "hf:org/none: the model does not exist, or is private"),
        ("hf:org/demo@v9", "hf:org/demo@v9: org/demo has no revision v9"),
        ("hf:org/pickled", "hf:org/pickled: no model.safetensors in it, and nothing else"),
        ("hf:org/a/b", "hf:org/a/b: HFValidationError"),
        ("hf:", "hf:: "),
    ],
)
def test_a_model_that_is_none_is_one_line(hub, name, line):
    hub.repositories["org/pickled"] = {"model.pt": pickle.dumps(1), "pytorch_model.bin": b""}
    with pytest.raises(InputError) as caught:
        bundle_path(Path(name))
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)
    assert not [asked for asked in hub.asked if "resolve" in asked]


def test_a_pickle_under_the_name_of_safetensors_is_refused(hub):
    hub.repositories["org/evil"] = {"model.safetensors": pickle.dumps(print)}
    with pytest.raises(InputError, match="not a complete model"):
        Proposer("hf:org/evil")


def test_without_a_network_a_line_names_the_command(hub, monkeypatch):
    offline(monkeypatch)
    line = "hf:org/demo: its weights are not on this machine; run `hf download org/demo`"
    with pytest.raises(InputError, match=line):
        bundle_path(Path("hf:org/demo"))


def test_a_folder_of_that_name_is_meant_first(hub, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = Path("hf:org/demo")
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(included_model().read_bytes())
    assert bundle_path(folder) == folder / "model.safetensors"


@pytest.mark.full
def test_propose_takes_it_by_name(hub, tmp_path, capfd):
    settings = DemoSettings(videos=1, shortest_seconds=5.0, longest_seconds=6.0)
    render_demo(tmp_path, settings, 1)
    video, out = tmp_path / demo_video_names(1)[0], tmp_path / "out"
    words = ["propose", str(video), "--no-page", "-q", "--out"]
    assert main([*words, str(out), "--model", "hf:org/demo"]) == 0
    assert main([*words, str(tmp_path / "ours"), "--model", "demo"]) == 0
    ours = (tmp_path / "ours/events.json").read_text()
    assert (out / "events.json").read_text() == ours
    assert main([*words, str(out), "--model", "hf:org/none"]) == 2
    assert capfd.readouterr().err.splitlines()[-1].endswith("does not exist, or is private")


def test_a_card_has_the_facts_of_the_file():
    card = card_of(included_model(), "Demo", "apache-2.0", "40 rendered videos.")
    _, front, text = card.split("---\n", 2)
    assert yaml.safe_load(front) == {
        "license": "apache-2.0",
        "library_name": "actionspan",
        "tags": ["temporal-action-proposals", "temporal-action-localization", "video",
                 "actionspan", "span"],
    }  # fmt: skip
    assert "# Demo\n" in text
    assert "## Data\n\n40 rendered videos.\n" in text
    # as docs/demo_model.md has them
    for name, value in {"network": "span", "members": 15, "epochs": 8, "events": "ranks",
                        "labels": "none", "sees": "curves of motion"}.items():  # fmt: skip
        assert f"| {name} | {value} |\n" in text
    assert "- Events have no labels.\n" in text
    assert "- Events have ranks" in text


def test_a_licence_that_is_no_plain_word_stays_yaml():
    front = card_of(included_model(), "A", "mine: all\n---\nx", "").split("\n---\n")[0]
    assert yaml.safe_load(front.removeprefix("---\n"))["license"] == "mine: all\n---\nx"
