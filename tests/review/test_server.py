"""Who is answered by the served page, and what."""

import errno
import http.client
import json
import logging
import socket
import threading
import time
from pathlib import Path
from urllib.parse import quote

import pytest
import uvicorn

from actionspan.cli import main
from actionspan.errors import JobError
from actionspan.review.corrections import Corrections
from actionspan.review.server import make_app

CHANGE = {"version": 0, "state": {"segments": [], "done": True}, "rows": []}


class Still:
    """Work that has nothing to do."""

    def __init__(self, folder: Path) -> None:
        self.page, self.asked = folder / "index.html", 0
        self.page.write_text("<p>page")
        (folder / "film é.mp4").write_bytes(bytes(range(100)))
        self.folder = folder
        self.corrections = Corrections(folder / "kept", ["film é"], folder / "corrections.csv")

    def status(self):
        return {"asked": self.asked}

    def video(self, video_id):
        return self.folder / f"{video_id}.mp4" if video_id == "film é" else None

    def learn(self):
        self.asked += 1


@pytest.fixture
def work(tmp_path):
    return Still(tmp_path)


class Answer:
    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status_code, self.headers, self.content = answer.status, answer.headers, answer.read()
        self.text = self.content.decode("latin1")

    def json(self):
        return json.loads(self.content)


class Client:
    """A browser that keeps a cookie and says where its requests come from."""

    def __init__(self, port: int) -> None:
        self.port, self.origin = port, f"http://127.0.0.1:{port}"
        self.headers: dict[str, str] = {}

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        known = {**self.headers, **(headers or {})}
        connection.request(method, quote(path, safe="/?=%"), body, known)
        return Answer(connection.getresponse())

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def post(self, path):
        return self.ask("POST", path)

    def put(self, path, json=None, content=b""):
        return self.ask("PUT", path, as_json(json) if json is not None else content)


def as_json(content) -> bytes:
    return json.dumps(content).encode()


@pytest.fixture
def stranger(work):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        app = make_app(work, "secret", port, "only once")
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield Client(port)
        server.should_exit = True
        thread.join()


@pytest.fixture
def client(stranger):
    answer = stranger.get("/?token=secret")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "httponly" in cookie.lower()
    assert "samesite=strict" in cookie.lower()
    stranger.headers = {"Cookie": cookie.split(";")[0], "Origin": stranger.origin}
    return stranger


@pytest.mark.parametrize(
    "path", ["/", "/?token=wrong", "/status", "/corrections", "/videos/film é"]
)
def test_without_the_token_nothing_is_answered(stranger, path):
    assert stranger.get(path).status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:9", "null", ""])
def test_another_origin_changes_nothing(client, work, origin):
    client.headers["Origin"] = origin
    assert client.put("/corrections/film é", json=CHANGE).status_code == 403
    assert client.post("/learn").status_code == 403
    assert work.corrections.all() == {}
    assert work.asked == 0


def test_a_strangers_name_for_this_machine_is_refused(client):
    answer = client.get("/status", headers={"Host": "evil.example:8000"})
    assert answer.status_code == 400


def test_the_page_its_videos_in_pieces_and_the_status(client):
    assert client.get("/").text == "<p>page"
    part = client.get("/videos/film é", headers={"Range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, bytes(range(10, 20)))
    assert client.get("/videos/other").status_code == 404
    assert client.get("/videos/..%2Fcorrections.csv").status_code == 404
    assert client.post("/learn").json() == {"asked": 1}


def test_corrections_are_kept_and_a_second_window_is_told(client, work):
    assert client.put("/corrections/film é", json=CHANGE).json() == {"version": 1}
    again = client.put("/corrections/film é", json=CHANGE)
    assert (again.status_code, again.json()["state"]) == (409, CHANGE["state"])
    assert client.get("/corrections").json()["film é"]["version"] == 1
    assert client.put("/corrections/other", json=CHANGE).status_code == 404


@pytest.mark.parametrize("body", [b"no JSON", b"[]", b'{"version": 0, "state": {}, "rows": 3}'])
def test_a_change_that_is_none_is_refused(client, work, body):
    assert client.put("/corrections/film é", content=body).status_code in (400, 404)
    assert work.corrections.all() == {}


def test_a_change_larger_than_any_is_refused(client):
    assert client.put("/corrections/film é", content=b" " * (5 << 20)).status_code == 413


@pytest.mark.parametrize(
    "body",
    [
        b'{"version": 0, "state": {"x": 1e999}, "rows": []}',
        b'{"version": 0, "state": {"x": NaN}, "rows": []}',
        b'{"version": 0, "state": {"x": "\\ud83d"}, "rows": []}',
        b'{"version": 0.0, "state": null, "rows": []}',
        b'{"version": 0, "state": {}}',
        b'{"version": 0, "state": {"x": ' + b"[" * 5000 + b"]" * 5000 + b'}, "rows": []}',
    ],
)
def test_what_would_spoil_the_folder_is_refused(client, body):
    assert client.put("/corrections/film é", content=body).status_code == 400
    assert client.get("/corrections").json() == {}
    assert client.put("/corrections/film é", json=CHANGE).status_code == 200


def test_a_full_disk_is_a_line_in_the_page_and_one_in_the_log(client, monkeypatch, capfd, work):
    def full(*_, **__):
        raise JobError(f"{work.folder}: the disk is full; make room and run it again")

    with monkeypatch.context() as disk:
        disk.setattr("actionspan.review.corrections.write_json", full)
        for _ in range(3):
            answer = client.put("/corrections/film é", json=CHANGE)
            assert (answer.status_code, answer.text) == (
                507,
                f"{work.folder}: the disk is full; make room\n",
            )
    line = f"not saved: {work.folder}: the disk is full; make room\n"
    assert capfd.readouterr().err == line
    assert client.put("/corrections/film é", json=CHANGE).status_code == 200


def test_a_folder_that_cannot_be_written_is_a_line_with_the_files_own_name(
    client, monkeypatch, work
):
    def read_only(self, *_, **__):
        raise PermissionError(errno.EROFS, "Read-only file system", str(self))

    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_text", read_only)
        answer = client.put("/corrections/film é", json=CHANGE)
    assert answer.status_code == 507
    assert "partial" not in answer.text
    assert answer.text.endswith(".json: Read-only file system\n")


def test_a_tab_that_is_closed_while_it_saves_is_no_traceback(client, caplog):
    logging.getLogger("uvicorn.error").addHandler(caplog.handler)
    head = f"PUT /corrections/x HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in client.headers.items())
    with socket.create_connection(("127.0.0.1", client.port)) as tab:
        tab.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        time.sleep(0.3)
    time.sleep(0.3)
    assert client.get("/status").status_code == 200
    assert caplog.records == []


def test_a_page_that_is_gone_is_a_line(client, work, capfd):
    work.page.unlink()
    answer = client.get("/")
    assert answer.status_code == 503
    assert "put it back" in answer.text
    assert capfd.readouterr().err == ""


def test_a_name_that_is_no_text_does_not_end_the_status(client, work, monkeypatch):
    monkeypatch.setattr(work, "status", lambda: {"doing": "film \udce9"})
    assert client.get("/status").json() == {"doing": "film \udce9"}


def test_the_word_of_the_opened_address_is_good_once(stranger):
    opened = stranger.get("/?token=only%20once")
    assert opened.status_code == 303
    cookie = opened.headers["set-cookie"].split(";")[0]
    assert "once" not in cookie
    assert stranger.get("/status", headers={"Cookie": cookie}).status_code == 200
    assert stranger.get("/?token=only%20once").status_code == 403
    assert stranger.get("/?token=secret").status_code == 303


@pytest.mark.parametrize("path", ["/", "/?token=secret", "/status", "/none"])
def test_no_other_page_may_frame_it_or_learn_its_address(stranger, path):
    headers = stranger.get(path).headers
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["content-security-policy"] == "frame-ancestors 'none'"


@pytest.mark.parametrize("port", [-1, 70000])
def test_a_port_that_is_none_is_named(tmp_path, port, capsys):
    (tmp_path / "a.mp4").touch()
    assert main(["review", str(tmp_path), "--port", str(port)]) == 2
    assert f"--port {port}: not from 1 to 65535" in capsys.readouterr().err
