"""Messages of a stream: each once, signed, tried again, and never in the way."""

import base64
import hashlib
import hmac
import json
import socket
import sys
import threading
import time
from dataclasses import replace
from functools import partial

import pytest

from actionspan.cli import main
from actionspan.live import notify
from actionspan.live.notify import Notifier
from actionspan.live.outputs import EVENTS
from actionspan.live.play import Player
from live.camera import HttpCamera
from live.fakes import player, run_stream
from live.receivers import Broker, WebHook
from live.watching import events, eventually
from video.numbered import encode

SOON = (0.01,) * 3  # waits
ALL = "; events.jsonl has all"


@pytest.fixture(autouse=True)
def _plain(monkeypatch):
    """No proxy between here and here, and the model of the other tests."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv("ACTIONSPAN_NOTIFY_SECRET", raising=False)
    monkeypatch.setattr(Player, "load", lambda *_: player())


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    return encode(tmp_path_factory.mktemp("video") / "v.mp4", 125)


@pytest.fixture
def nobody():
    """The port of a server that is gone."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def stream(video, out, url, *words):
    return main(["stream", str(video), "--model", "x", "--out", str(out), "--notify", url, *words])


def notifier(url, waits=SOON, stopping=None, **settings):
    return Notifier(url, stopping or threading.Event(), waits=waits, **settings)


def test_each_proposal_is_delivered_once_and_signed(video, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("ACTIONSPAN_NOTIFY_SECRET", "géheim")
    with WebHook() as hook:
        assert stream(video, tmp_path, hook.url) == 0
    expected = events(tmp_path, "proposal")
    assert len(expected) > 5
    more = {"source": str(video), "video": "v"}
    assert [{**message, "id": 0} for message in hook.messages] == [
        {**event, **more, "id": 0} for event in expected
    ]
    assert len({message["id"] for message in hook.messages}) == len(expected)
    for request in hook.requests:
        signature = hmac.new("géheim".encode(), request.body, hashlib.sha256).hexdigest()
        assert request.headers["X-Actionspan-Signature"] == f"sha256={signature}"
        assert request.headers["Content-Type"] == "application/json"
    written = capsys.readouterr()
    assert "heim" not in written.out + written.err + (tmp_path / EVENTS).read_text()
    assert written.err.count("\n") == 1


def test_without_a_secret_nothing_is_signed():
    with WebHook() as hook, notifier(hook.url) as made:
        made.send({})
        eventually(lambda: hook.requests)
    assert "X-Actionspan-Signature" not in hook.requests[0].headers


def test_a_message_of_a_camera_has_the_date_of_its_first_frame(video, tmp_path):
    runs = []
    with HttpCamera(video, 100.0, password="geheim") as camera:
        for _ in range(2):
            runs.append([])
            run_stream(camera.url, tmp_path, tell=runs[-1].append, duration=0.5)
    (start,) = events(tmp_path, "start")
    assert runs[1]
    for message in runs[1]:
        assert message["began"] == start["began"]
        assert message["source"] == start["source"]
    assert "geheim" not in json.dumps(runs)
    first, second = (run[-1] for run in runs)
    assert (first["start"], first["end"]) == (second["start"], second["end"])
    assert first["id"] != second["id"], "another half second of the same camera"


def test_by_their_ids_a_resumed_stream_tells_each_proposal_once(video, tmp_path):
    whole, told = [], []
    run_stream(video, tmp_path / "whole", tell=whole.append)

    def killed(message):
        told.append(message)
        if len(told) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_stream(video, tmp_path / "out", tell=killed, state_seconds=1e-9)
    run_stream(video, tmp_path / "out", tell=told.append, resume=True)
    assert len(told) > len(whole), "the last one was not in the state yet"
    assert {message["id"]: message for message in told} == {
        message["id"]: message for message in whole
    }


def test_ids_of_different_streams_differ(video, tmp_path):
    first, second = [], []
    run_stream(video, tmp_path, tell=first.append)
    run_stream(video, tmp_path, tell=second.append, made=replace(player(), made_of="another"))
    assert {each["id"] for each in first}.isdisjoint(each["id"] for each in second)


def test_a_busy_receiver_is_tried_again_with_the_same_message(capsys):
    with WebHook(503, 429) as hook, notifier(hook.url, (0.05, 0.1)) as made:
        made.send({"id": "a"})
        made.send({"id": "b"})
        eventually(lambda: len(hook.requests) == 4)
    assert [message["id"] for message in hook.messages] == ["a", "a", "a", "b"]
    first, second, third, _ = (request.at for request in hook.requests)
    assert second - first >= 0.05
    assert third - second >= 0.1
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        f"--notify http://127.0.0.1:{hook.port}: HTTP status 503; trying again while the stream "
        "goes on"
    )


def test_waits_grow_and_are_bounded():
    assert list(notify._WAITS) == sorted(notify._WAITS)
    assert notify._WAITS[1] == 2 * notify._WAITS[0]
    assert 240 < sum(notify._WAITS) < 360


def test_a_message_is_given_up_after_its_last_retry(capsys):
    with WebHook(500, 500, 500, 500) as hook, notifier(hook.url) as made:
        made.send({"id": "a"})
        made.send({"id": "b"})
    assert [message["id"] for message in hook.messages] == ["a"] * 4 + ["b"]
    first, last = capsys.readouterr().err.splitlines()
    assert "HTTP status 500" in first
    assert f": 1 of 2 messages not delivered{ALL}" in last


def test_what_is_refused_is_not_tried_again(capsys):
    with WebHook(400) as hook, notifier(hook.url) as made:
        made.send({"id": "a"})
        made.send({"id": "b"})
    assert [message["id"] for message in hook.messages] == ["a", "b"]
    first, last = capsys.readouterr().err.splitlines()
    assert first.endswith("HTTP status 400; not tried again; the stream goes on")
    assert f": 1 of 2 messages not delivered{ALL}" in last


@pytest.mark.parametrize("status", [302, 307])
def test_no_redirect_is_followed(status, capsys):
    with WebHook() as other, WebHook(status, location=other.url) as hook:
        with notifier(hook.url) as made:
            made.send({})
        assert len(hook.requests) == 1
    assert other.requests == []
    assert f"HTTP status {status}" in capsys.readouterr().err


def test_what_is_no_web_server_is_tried_again(capsys):
    def answer():
        for _ in range(1 + len(SOON)):
            connection, _ = server.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"what?\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with notifier(f"http://127.0.0.1:{server.getsockname()[1]}") as made:
            made.send({})
        thread.join(10)
        assert not thread.is_alive()
    first, last = capsys.readouterr().err.splitlines()
    assert first.endswith(": what?; trying again while the stream goes on")
    assert f": 1 of 1 message not delivered{ALL}" in last


def test_a_dead_receiver_is_said_and_does_no_harm(video, tmp_path, capsys, monkeypatch, nobody):
    run_stream(video, tmp_path / "alone")
    monkeypatch.setattr(notify, "Notifier", partial(Notifier, end_seconds=0.1))
    assert stream(video, tmp_path / "out", f"http://127.0.0.1:{nobody}/") == 0
    kinds = [event["event"] for event in events(tmp_path / "out")]
    assert kinds == [event["event"] for event in events(tmp_path / "alone")]
    first, lost, summary = capsys.readouterr().err.splitlines()
    shown = f"--notify http://127.0.0.1:{nobody}: "
    assert first == f"{shown}Connection refused; trying again while the stream goes on"
    number = kinds.count("proposal")
    assert lost == f"{shown}{number} of {number} messages not delivered{ALL}"
    assert summary.endswith("finished")


def test_a_slow_receiver_holds_nothing_up_and_few_messages_wait(capsys):
    with WebHook(holds=True) as hook, notifier(hook.url, most=3) as made:
        made.send({"id": 0})
        eventually(lambda: hook.requests)
        for number in range(1, 10):
            made.send({"id": number})
        assert len(hook.requests) == 1
        hook.release()
        eventually(lambda: len(hook.requests) == 4)
    assert [message["id"] for message in hook.messages] == [0, 7, 8, 9]
    assert "6 of 10 messages not delivered" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ends", "end_seconds", "stop_seconds"),
    [(None, 0.1, 60), ("stopping", 60, 0.1), (ValueError, 60, 0.1), (KeyboardInterrupt, 60, 60)],
)
def test_the_end_is_bounded(ends, end_seconds, stop_seconds, monkeypatch, capsys):
    monkeypatch.setattr(notify, "_STOP_SECONDS", stop_seconds)
    stopping, began = threading.Event(), time.monotonic()
    with WebHook(holds=True) as hook:
        made = notifier(hook.url, stopping=stopping, end_seconds=end_seconds)

        def block():
            with made:
                made.send({})
                if ends == "stopping":
                    stopping.set()
                elif ends is not None:
                    raise ends

        if ends in (None, "stopping"):
            block()
        else:
            with pytest.raises(ends):
                block()
        assert time.monotonic() - began < 30
    assert "1 of 1 message not delivered" in capsys.readouterr().err


def test_the_end_waits_for_what_is_left():
    with WebHook(503) as hook, notifier(hook.url, (0.1,)) as made:
        made.send({"id": "a"})
        made.send({"id": "b"})
    assert [message["id"] for message in hook.messages] == ["a", "a", "b"]


def test_the_password_may_be_where_others_do_not_see_it(monkeypatch):
    monkeypatch.setenv("ACTIONSPAN_NOTIFY_PASSWORD", "p@ss")
    with WebHook() as hook:
        for login in ("me@", "me:mine@", ""):
            with notifier(f"http://{login}127.0.0.1:{hook.port}/") as made:
                made.send({})
    sent = [request.headers["Authorization"] for request in hook.requests]
    pairs = [base64.b64encode(pair).decode() for pair in (b"me:p@ss", b"me:mine")]
    assert sent == [*(f"Basic {pair}" for pair in pairs), None]


def test_user_and_password_are_sent_and_nothing_secret_is_shown(capsys):
    with WebHook(401) as hook:
        address = f"http://me:p%40ss@127.0.0.1:{hook.port}/services/hush?token=silent#part"
        with notifier(address) as made:
            made.send({})
    (request,) = hook.requests
    assert request.path == "/services/hush?token=silent"
    assert request.headers["Host"] == f"127.0.0.1:{hook.port}"
    assert request.headers["Authorization"] == f"Basic {base64.b64encode(b'me:p@ss').decode()}"
    first, last = capsys.readouterr().err.splitlines()
    shown = f"--notify http://127.0.0.1:{hook.port}: "
    assert first == f"{shown}HTTP status 401; not tried again; the stream goes on"
    assert last == f"{shown}1 of 1 message not delivered{ALL}"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("host/secret", "http, https, mqtt or mqtts"),
        ("ftp://me:secret@host", "http, https, mqtt or mqtts"),
        ("https:///secret", "--notify https://: the host is missing"),
        ("http://:80/secret", "the host is missing"),
        ("http://host:secret/", "the host or the port is not valid"),
        ("http://host:70000/secret", "the host or the port is not valid"),
        ("http://[secret/", "the host or the port is not valid"),
        ("http://host/secret secret", "%20"),
        ("http://host/secré\n", "%20"),
        ("http://me:12/secret@host/", "%40"),
        ("mqtt://me:secret@host", "--notify mqtt://: give a topic"),
        ("mqtts://host/", "--notify mqtts://: give a topic"),
        ("mqtt://host/secret/%23", "a topic has no + or #"),
        ("mqtt://host/secret/+", "a topic has no + or #"),
        ("mqtt://host/door?secret", "? as %3F"),
    ],
)
def test_a_bad_url_is_refused_before_anything_is_done(url, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert stream("v.mp4", "out", url) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("actionspan stream: --notify")
    assert message in line
    assert "secr" not in line
    assert list(tmp_path.iterdir()) == []


def test_without_its_library_mqtt_is_refused_by_what_installs_it(tmp_path, capsys, monkeypatch):
    for name in ("paho", "paho.mqtt"):
        monkeypatch.setitem(sys.modules, name, None)
    assert stream("v.mp4", tmp_path / "out", "mqtt://host/door") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith('--notify mqtt:// needs paho-mqtt: pip install "actionspan[mqtt]"')


class TestMqtt:
    """Against a broker of ours."""

    @pytest.fixture(autouse=True)
    def _library(self):
        pytest.importorskip("paho.mqtt", reason='needs pip install "actionspan[mqtt]"')

    def test_each_proposal_is_published_once(self, video, tmp_path, capsys):
        with Broker() as broker:
            url = f"mqtt://me:p%40ss@127.0.0.1:{broker.port}/home/front%20door"
            assert stream(video, tmp_path, url) == 0
        expected = events(tmp_path, "proposal")
        assert len(broker.published) == len(expected)
        for (topic, qos, body), event in zip(broker.published, expected, strict=True):
            assert (topic, qos) == ("home/front door", 1)
            assert event.items() < json.loads(body).items()
        assert set(broker.logins) == {("me", "p@ss")}
        assert capsys.readouterr().err.count("\n") == 1

    def test_what_is_not_acknowledged_is_published_again(self, capsys):
        began = time.monotonic()
        with Broker(hangs_up=1) as broker, notifier(broker.url) as made:
            made.send({"id": "a"})
            made.send({"id": "b"})
        assert [json.loads(body)["id"] for *_, body in broker.published] == ["a", "a", "b"]
        assert time.monotonic() - began < notify._ANSWER_SECONDS, "a closed connection is seen"
        (line,) = capsys.readouterr().err.splitlines()
        assert "the broker hung up; trying again" in line

    @pytest.mark.parametrize(("code", "times"), [(5, 1), (3, 4)], ids=["rights", "unavailable"])
    def test_only_a_broker_that_may_accept_later_is_tried_again(self, code, times, capsys):
        with Broker(code) as broker, notifier(broker.url) as made:
            made.send({})
        assert len(broker.logins) == times
        first, last = capsys.readouterr().err.splitlines()
        assert "the broker says " in first
        assert ("trying again" in first) == (times > 1)
        assert f": 1 of 1 message not delivered{ALL}" in last

    def test_silence_is_no_acknowledgement(self, capsys, monkeypatch):
        monkeypatch.setattr(notify, "_ANSWER_SECONDS", 0.2)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            with notifier(f"mqtt://127.0.0.1:{port}/door", waits=()) as made:
                made.send({})
        first, last = capsys.readouterr().err.splitlines()
        assert "the broker does not answer" in first
        assert f": 1 of 1 message not delivered{ALL}" in last

    def test_a_broker_that_is_gone_is_said(self, nobody, capsys):
        with notifier(f"mqtt://127.0.0.1:{nobody}/door") as made:
            made.send({})
        first, _ = capsys.readouterr().err.splitlines()
        assert first.endswith("Connection refused; trying again while the stream goes on")
