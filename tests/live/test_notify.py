"""Messages of a stream: each once, signed, tried again, and never in the way."""

import base64
import hashlib
import hmac
import json
import socket
import sys
import threading
import time
from contextlib import suppress
from functools import partial

import pytest

from actionspan.cli import main
from actionspan.live import notify
from actionspan.live.notify import Notifier
from actionspan.live.play import Player
from actionspan.live.sink import EVENTS
from live.camera import HttpCamera
from live.fakes import events, player, run_stream
from live.receivers import Broker, WebHook
from worlds.waiting import eventually

SOON = (0.01,) * 3  # waits
LOST = "1 of 1 message not delivered; events.jsonl has all"


@pytest.fixture(autouse=True)
def _plain(monkeypatch):
    """No proxy between here and here, and the model of the other tests."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv("ACTIONSPAN_NOTIFY_SECRET", raising=False)
    monkeypatch.setattr(Player, "load", lambda *_: player())


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


def send(url, *names, waits=SOON):
    with notifier(url, waits) as made:
        for name in names:
            made.send({"id": name})


def names(hook):
    return [message["id"] for message in hook.messages]


def test_each_proposal_is_delivered_once_and_signed(video, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("ACTIONSPAN_NOTIFY_SECRET", "géheim")
    with WebHook() as hook:
        assert stream(video, tmp_path, hook.url) == 0
    expected = events(tmp_path, "proposal")
    assert len(expected) > 5
    more = {"source": str(video), "video": "v", "id": 0}
    assert [{**message, "id": 0} for message in hook.messages] == [
        {**event, **more} for event in expected
    ]
    assert len(set(names(hook))) == len(expected)
    for request in hook.requests:
        signature = hmac.new("géheim".encode(), request.body, hashlib.sha256).hexdigest()
        assert request.headers["X-Actionspan-Signature"] == f"sha256={signature}"
        assert request.headers["Content-Type"] == "application/json"
    written = capsys.readouterr()
    assert "heim" not in written.out + written.err + (tmp_path / EVENTS).read_text()
    assert written.err.count("\n") == 1


def test_a_message_of_a_camera_has_the_date_of_its_first_frame(film, tmp_path):
    runs = [[], []]
    with HttpCamera(film, 100.0, password="geheim") as camera:
        for run in runs:
            run_stream(camera.url, tmp_path, on_proposal=run.append, duration=0.5)
    (start,) = events(tmp_path, "start")
    assert runs[1]
    for message in runs[1]:
        assert (message["began"], message["source"]) == (start["began"], start["source"])
    assert "geheim" not in json.dumps(runs)
    first, second = (run[-1] for run in runs)
    assert (first["start"], first["end"]) == (second["start"], second["end"])
    assert first["id"] != second["id"], "another half second of the same camera"


def test_by_their_ids_a_resumed_stream_tells_each_proposal_once(video, tmp_path):
    whole, other, told = [], [], []
    run_stream(video, tmp_path / "whole", on_proposal=whole.append)

    def killed(message):
        told.append(message)
        if len(told) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_stream(video, tmp_path / "out", on_proposal=killed, state_seconds=1e-9)
    run_stream(video, tmp_path / "out", on_proposal=told.append, resume=True)
    assert len(told) > len(whole), "the last one was not in the state yet"
    known = {message["id"]: message for message in whole}
    assert {message["id"]: message for message in told} == known
    run_stream(video, tmp_path, on_proposal=other.append, made=player(made_of="another"))
    assert known.keys().isdisjoint(message["id"] for message in other)


def test_a_busy_receiver_is_tried_again_with_the_same_message_after_longer_waits(capsys):
    with WebHook(503, 429) as hook:
        send(hook.url, "a", "b", waits=(0.05, 0.1))
    assert names(hook) == ["a", "a", "a", "b"], "the end waits for what is left"
    first, second, third, _ = (request.at for request in hook.requests)
    assert second - first >= 0.05
    assert third - second >= 0.1
    assert "X-Actionspan-Signature" not in hook.requests[0].headers
    shown = f"--notify http://127.0.0.1:{hook.port}: HTTP status 503; "
    assert capsys.readouterr().err == f"{shown}trying again while the stream continues\n"
    assert 240 < sum(notify._WAITS) < 360


@pytest.mark.parametrize(
    ("statuses", "how"),
    [
        ((500,) * 4, "trying again while the stream continues"),
        ((400,), "not tried again; the stream continues"),
        ((302,), "not tried again; the stream continues"),
        ((307,), "not tried again; the stream continues"),
    ],
)
def test_a_message_is_given_up_after_its_last_retry_or_at_once(statuses, how, capsys):
    with WebHook() as other, WebHook(*statuses, location=other.url) as hook:
        send(hook.url, "a", "b")
    assert names(hook) == ["a"] * len(statuses) + ["b"]
    assert other.requests == [], "no redirect is followed"
    first, last = capsys.readouterr().err.splitlines()
    assert first.endswith(f"HTTP status {statuses[0]}; {how}")
    assert last.endswith(": 1 of 2 messages not delivered; events.jsonl has all")


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
        send(f"http://127.0.0.1:{server.getsockname()[1]}", "a")
        thread.join(10)
        assert not thread.is_alive()
    first, last = capsys.readouterr().err.splitlines()
    assert first.endswith(": what?; trying again while the stream continues")
    assert last.endswith(LOST)


def test_a_dead_receiver_is_said_and_does_no_harm(
    video, whole, tmp_path, capsys, monkeypatch, nobody
):
    monkeypatch.setattr(notify, "Notifier", partial(Notifier, end_seconds=0.1))
    assert stream(video, tmp_path, f"http://127.0.0.1:{nobody}/") == 0
    kinds = [event["event"] for event in events(tmp_path)]
    assert kinds == [event["event"] for event in events(whole)]
    first, lost, summary = capsys.readouterr().err.splitlines()
    shown = f"--notify http://127.0.0.1:{nobody}: "
    assert first == f"{shown}Connection refused; trying again while the stream continues"
    number = kinds.count("proposal")
    assert lost == f"{shown}{number} of {number} messages not delivered; events.jsonl has all"
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
    assert names(hook) == [0, 7, 8, 9]
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
        with suppress(ValueError, KeyboardInterrupt), made:
            made.send({})
            if ends == "stopping":
                stopping.set()
            elif ends is not None:
                raise ends
        assert time.monotonic() - began < 30
    assert LOST in capsys.readouterr().err


def test_user_and_password_are_sent_and_nothing_secret_is_shown(capsys, monkeypatch):
    """The password is in the address or, where others do not see it, in the environment."""
    monkeypatch.setenv("ACTIONSPAN_NOTIFY_PASSWORD", "p@ss")
    with WebHook(401) as hook:
        for login in ("me:m%40ne@", "me@", ""):
            send(f"http://{login}127.0.0.1:{hook.port}/services/hush?token=silent#part", "a")
    for request in hook.requests:
        assert request.path == "/services/hush?token=silent"
        assert request.headers["Host"] == f"127.0.0.1:{hook.port}"
    pairs = [base64.b64encode(pair).decode() for pair in (b"me:m@ne", b"me:p@ss")]
    sent = [request.headers["Authorization"] for request in hook.requests]
    assert sent == [*(f"Basic {pair}" for pair in pairs), None]
    shown = f"--notify http://127.0.0.1:{hook.port}: "
    assert capsys.readouterr().err.splitlines() == [
        f"{shown}HTTP status 401; not tried again; the stream continues",
        f"{shown}{LOST}",
    ]


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


@pytest.fixture
def mqtt():
    pytest.importorskip("paho.mqtt", reason='needs pip install "actionspan[mqtt]"')


@pytest.mark.usefixtures("mqtt")
class TestMqtt:
    """Against a broker of ours."""

    def test_each_proposal_is_published_once(self, video, tmp_path, capsys):
        with Broker() as broker:
            url = f"mqtt://me:p%40ss@127.0.0.1:{broker.port}/home/front%20door"
            assert stream(video, tmp_path, url) == 0
        expected = events(tmp_path, "proposal")
        for (topic, qos, body), event in zip(broker.published, expected, strict=True):
            assert (topic, qos) == ("home/front door", 1)
            assert event.items() < json.loads(body).items()
        assert set(broker.logins) == {("me", "p@ss")}
        assert capsys.readouterr().err.count("\n") == 1

    def test_what_is_not_acknowledged_is_published_again(self, capsys):
        began = time.monotonic()
        with Broker(hangs_up=1) as broker:
            send(broker.url, "a", "b")
        assert [json.loads(body)["id"] for *_, body in broker.published] == ["a", "a", "b"]
        assert time.monotonic() - began < notify._ANSWER_SECONDS, "a closed connection is seen"
        (line,) = capsys.readouterr().err.splitlines()
        assert "the broker hung up; trying again" in line

    @pytest.mark.parametrize(("code", "times"), [(5, 1), (3, 4)], ids=["rights", "unavailable"])
    def test_only_a_broker_that_may_accept_later_is_tried_again(self, code, times, capsys):
        with Broker(code) as broker:
            send(broker.url, "a")
        assert len(broker.logins) == times
        first, last = capsys.readouterr().err.splitlines()
        assert "the broker answers " in first
        assert ("trying again" in first) == (times > 1)
        assert last.endswith(LOST)

    def test_silence_is_no_acknowledgement(self, capsys, monkeypatch):
        monkeypatch.setattr(notify, "_ANSWER_SECONDS", 0.2)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            send(f"mqtt://127.0.0.1:{silent.getsockname()[1]}/door", "a", waits=())
        first, last = capsys.readouterr().err.splitlines()
        assert "the broker does not answer" in first
        assert last.endswith(LOST)

    def test_a_broker_that_is_gone_is_said(self, nobody, capsys):
        send(f"mqtt://127.0.0.1:{nobody}/door", "a")
        first, _ = capsys.readouterr().err.splitlines()
        assert first.endswith("Connection refused; trying again while the stream continues")
