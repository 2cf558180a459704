"""Who is answered by the served page, and what."""

import errno
import http.client
import json
import logging
import socket
import time
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock
from urllib.parse import quote

import pytest

from actionspan.cli import main
from actionspan.errors import InputError, JobError
from actionspan.review.corrections import Corrections
from actionspan.review.keys import LabelKeys
from review.conftest import serving

CHANGE = {"version": 0, "state": {"segments": [], "done": True}, "rows": []}
FILM = "/corrections/film é"


class Still:
    """Work that has nothing to do."""

    def begin(self, folder: Path) -> None:
        """Begin with an empty folder."""
        self.page, self.asked = folder / "index.html", 0
        self.page.write_text("<p>page")
        (folder / "film é.mp4").write_bytes(bytes(range(100)))
        self.folder = folder
        self.corrections = Corrections(folder / "kept", ["film é"], folder / "corrections.csv")
        self.keys = LabelKeys(folder)

    def status(self):
        return {"asked": self.asked}

    def listing(self):
        return [{"video": "film é"}]

    def events(self, video_id):
        return {"film é": {"duration_seconds": None, "events": None}}.get(video_id)

    def video(self, video_id):
        return self.folder / f"{video_id}.mp4" if video_id == "film é" else None

    def learn(self):
        self.asked += 1


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode("latin1")

    @property
    def json(self) -> Any:
        return json.loads(self.content)


class Client:
    """A browser that keeps a cookie and says where its requests come from."""

    def __init__(self, work: Still, port: int) -> None:
        self.work, self.port = work, port
        self.headers: dict[str, str] = {}

    def __call__(self, method: str, path: str, content: Any = None, **headers: str) -> Answer:
        body = content if isinstance(content, bytes | None) else json.dumps(content).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, quote(path, safe="/?=%"), body, {**self.headers, **headers})
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers, answer.read())


@pytest.fixture(scope="module")
def served():
    """Work and the port that it is served at."""
    work = Still()
    with serving(work, "secret", "only once") as port:
        yield work, port


@pytest.fixture
def stranger(served, tmp_path):
    work, port = served
    work.begin(tmp_path)
    return Client(work, port)


@pytest.fixture
def client(stranger):
    answer = stranger("GET", "/?token=secret")
    assert (answer.status, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "httponly" in cookie.lower()
    assert "samesite=strict" in cookie.lower()
    origin = f"http://127.0.0.1:{stranger.port}"
    stranger.headers = {"Cookie": cookie.split(";")[0], "Origin": origin}
    return stranger


def test_without_the_token_nothing_is_answered_and_no_page_may_frame_it(stranger):
    for path, status in {
        **dict.fromkeys(("/", "/?token=wrong", "/status", "/corrections", "/videos/film é"), 403),
        "/none": 403,
        "/?token=secret": 303,
    }.items():
        answer = stranger("GET", path)
        assert answer.status == status
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["content-security-policy"] == "frame-ancestors 'none'"


def test_another_origin_changes_nothing_and_another_name_is_refused(client):
    for origin in ("http://evil.example", "http://127.0.0.1:9", "null", ""):
        assert client("PUT", FILM, CHANGE, Origin=origin).status == 403
        assert client("POST", "/learn", Origin=origin).status == 403
    assert client.work.corrections.all() == {}
    assert client.work.asked == 0
    assert client("GET", "/status", Host="evil.example:8000").status == 400


def test_the_page_its_videos_in_pieces_and_the_status(client):
    assert client("GET", "/").text == "<p>page"
    part = client("GET", "/videos/film é", Range="bytes=10-19")
    assert (part.status, part.content) == (206, bytes(range(10, 20)))
    assert client("GET", "/videos/other").status == 404
    assert client("GET", "/videos/..%2Fcorrections.csv").status == 404
    answer = client("POST", "/learn")
    assert (answer.status, "no video is done" in answer.json["error"]) == (409, True)
    assert client("PUT", FILM, CHANGE).status == 200
    assert client("POST", "/learn").json == {"asked": 1}


def test_corrections_are_kept_and_a_second_window_is_told(client):
    assert client("PUT", FILM, CHANGE).json == {"version": 1}
    again = client("PUT", FILM, CHANGE)
    assert (again.status, again.json["state"]) == (409, CHANGE["state"])
    assert client("GET", "/corrections").json["film é"]["version"] == 1


def test_a_change_that_is_none_is_refused_and_spoils_nothing(client):
    deep = b'{"version": 0, "state": {"x": ' + b"[" * 5000 + b"]" * 5000 + b'}, "rows": []}'
    for body, status, line in (
        (b"no JSON", 400, "Expecting value"),
        (b"[]", 400, "a change has version, rows, and state or done"),
        (b'{"version": 0, "state": {}}', 400, "a change has version, rows, and state or done"),
        (deep, 400, "nested too deep"),
        (b" " * (5 << 20), 413, "too large"),
    ):
        answer = client("PUT", FILM, body)
        assert answer.status == status
        assert line in answer.text
    assert client("GET", "/corrections").json == {}
    assert client("PUT", FILM, CHANGE).status == 200


def test_a_full_disk_is_a_line_in_the_page_and_one_in_the_log(client, monkeypatch, capfd):
    folder = client.work.folder
    full = Mock(side_effect=JobError(f"{folder}: the disk is full; make room and run it again"))
    with monkeypatch.context() as disk:
        disk.setattr("actionspan.review.corrections.write_json", full)
        for _ in range(3):
            answer = client("PUT", FILM, CHANGE)
            assert answer.status == 507
            assert answer.json["error"] == f"{folder}: the disk is full; make room"
    assert capfd.readouterr().err == f"not saved: {folder}: the disk is full; make room\n"
    assert client("PUT", FILM, CHANGE).status == 200


def test_a_folder_that_cannot_be_written_is_a_line_with_the_files_own_name(client, monkeypatch):
    def read_only(self, *_, **__):
        raise PermissionError(errno.EROFS, "Read-only file system", str(self))

    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_text", read_only)
        answer = client("PUT", FILM, CHANGE)
    assert answer.status == 507
    assert "partial" not in answer.text
    assert answer.json["error"].endswith(".json: Read-only file system")


def test_a_tab_that_is_closed_while_it_saves_is_no_traceback(client, caplog):
    logging.getLogger("uvicorn.error").addHandler(caplog.handler)
    head = f"PUT /corrections/x HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in client.headers.items())
    with socket.create_connection(("127.0.0.1", client.port)) as tab:
        tab.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        time.sleep(0.3)
    time.sleep(0.3)
    assert client("GET", "/status").status == 200
    assert caplog.records == []


def test_a_page_that_is_gone_is_a_line_and_a_name_that_is_no_text_is_sent(
    client, monkeypatch, capfd
):
    client.work.page.unlink()
    answer = client("GET", "/")
    assert answer.status == 503
    assert "put it back" in answer.text
    assert capfd.readouterr().err == ""
    monkeypatch.setattr(client.work, "status", lambda: {"doing": "film \udce9"})
    assert client("GET", "/status").json == {"doing": "film \udce9"}


def test_the_word_of_the_opened_address_is_good_once(stranger):
    opened = stranger("GET", "/?token=only%20once")
    assert opened.status == 303
    cookie = opened.headers["set-cookie"].split(";")[0]
    assert "once" not in cookie
    assert stranger("GET", "/status", Cookie=cookie).status == 200
    assert stranger("GET", "/?token=only%20once").status == 403
    assert stranger("GET", "/?token=secret").status == 303


GROOM = {"key": "g", "label": "groom", "subject": "mouse A", "point": False}


def test_keys_of_labels_are_kept_and_what_is_no_key_is_refused(client):
    folder = client.work.folder
    assert client("GET", "/keys").json == {"keys": []}
    assert client("PUT", "/keys", [GROOM]).json == {"keys": [GROOM]}
    assert LabelKeys(folder).all() == [GROOM]
    for wrong, said in (
        ({}, "not a list of at most 200 keys"),
        ([GROOM, GROOM], "key 'g' is there twice"),
        ([{**GROOM, "key": "F1"}], "'F1' is not one letter or digit"),
        ([{**GROOM, "label": " "}], "key 'g' needs a label"),
        ([{**GROOM, "label": "a\0b"}], "control character"),
        ([{**GROOM, "subject": "\ud83d"}], "not UTF-8"),
        ([{**GROOM, "point": 1}], "key 'g' needs point true or false"),
    ):
        answer = client("PUT", "/keys", wrong)
        assert (answer.status, said in answer.text) == (400, True), answer.text
    assert client("PUT", "/keys", b"[" * 100_000).status == 400
    assert LabelKeys(folder).all() == [GROOM]
    (folder / "keys.json").write_text("[1]")
    with pytest.raises(InputError, match=r"keys\.json: key no\. 1 is not an object"):
        LabelKeys(folder)
    boris = folder / "lab.boris"
    groom = {"type": "State event", "key": "x", "code": "groom"}
    lever = {"type": "Point event", "key": "1", "code": "lever"}
    behaviours = [groom, lever, {**groom, "code": "again"}, {**groom, "key": ""}, None]
    conf = {str(place): each for place, each in enumerate(behaviours)}
    boris.write_text(json.dumps({"behaviors_conf": conf, "observations": {}}))
    (folder / "keys.json").unlink()
    assert LabelKeys(folder, boris).all() == [
        {"key": "x", "label": "groom", "subject": "", "point": False},
        {"key": "1", "label": "lever", "subject": "", "point": True},
    ]
    assert LabelKeys(folder).all() == LabelKeys(folder, boris).all(), "they are the folder's now"


def test_a_script_sends_the_token_with_each_request(stranger):
    for header in ("Bearer wrong", "Bearer", "Basic secret", ""):
        assert stranger("GET", "/videos", Authorization=header).status == 403
    stranger.headers = {"Authorization": "Bearer secret"}
    assert stranger("GET", "/videos").json == {"videos": [{"video": "film é"}]}
    assert stranger("PUT", FILM, CHANGE).json == {"version": 1}  # without an origin
    assert stranger("GET", "/status", Host="evil.example:8000").status == 400


def test_every_refusal_is_one_line_of_json(stranger):
    closed = stranger("GET", "/status")
    stranger.headers = {"Authorization": "Bearer secret"}
    for answer, status, line in (
        (closed, 403, "open the address that `actionspan review` printed"),
        (stranger("GET", "/none"), 404, "GET /none: Not Found"),
        (stranger("POST", "/status"), 405, "POST /status: Method Not Allowed"),
        (stranger("GET", "/events/other"), 404, "nothing is called 'other'"),
        (stranger("PUT", "/corrections/other", CHANGE), 404, "nothing is called 'other'"),
        (stranger("PUT", FILM, b"{"), 400, "Expecting property name"),
    ):
        assert (answer.status, answer.text.count("\n")) == (status, 1), line
        assert answer.json["error"].startswith(line)


def test_a_port_that_is_none_is_named(tmp_path, capsys):
    (tmp_path / "a.mp4").touch()
    for port in (-1, 70000):
        assert main(["review", str(tmp_path), "--port", str(port)]) == 2
        assert f"--port {port}: not from 1 to 65535" in capsys.readouterr().err
