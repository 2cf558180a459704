"""Messages of proposals to a web hook (HTTP) or an MQTT topic, while the stream runs."""

import base64
import hmac
import json
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http.client import HTTPException
from queue import Empty, SimpleQueue
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from actionspan import __version__
from actionspan.errors import InputError, counted, printable

_PORTS = {"mqtt": 1883, "mqtts": 8883}
_WAITS = (0.5, 1.0, 2.0, 4.0, 8.0, *[15.0] * 19)  # seconds before each retry: five minutes in all
_ANSWER_SECONDS = 10.0  # for a connection, and for an answer
_END_SECONDS, _STOP_SECONDS = 30.0, 5.0  # to deliver the rest: at the end, after a signal
_MOST = 1000  # messages that wait
_LONGEST = 100  # characters of a reason
_LATER = (408, 429)  # statuses 4xx that may be better later
_UNAVAILABLE = 0x88  # a CONNACK that is not a refusal


class _Refused(Exception):
    """The receiver would refuse this message again."""


class Notifier:
    """Delivers messages in order, in a thread of its own; a context manager.

    Its end waits a bounded time for the rest. On standard error it reports the first failure, and
    at the end how many messages were not delivered.

    Args:
        url: A web hook (http, https) or a topic (mqtt, mqtts); may hold user and password.
        stopping: Set when the end should come soon.
        waits: Seconds before each retry of a message.
        most: Messages that wait; beyond them the oldest is given up.
        end_seconds: How long the end may wait.

    Raises:
        InputError: The URL is wrong, or a package is missing. The line shows no secret.
    """

    def __init__(
        self,
        url: str,
        stopping: threading.Event,
        *,
        waits: Sequence[float] = _WAITS,
        most: int = _MOST,
        end_seconds: float = _END_SECONDS,
    ) -> None:
        parts = _parsed(url)
        self._receiver = _Topic(parts) if parts.scheme in _PORTS else _WebHook(parts)
        # without the path, which is the secret of many web hooks
        self._shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._stopping, self._waits, self._most = stopping, waits, most
        self._end_seconds = end_seconds
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._given = self._delivered = 0
        self._failed = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="notify", daemon=True)

    def send(self, message: Mapping[str, Any]) -> None:
        """Queue a message, to be sent as one JSON object; never wait."""
        self._given += 1
        if self._queue.qsize() >= self._most:
            with suppress(Empty):  # the thread has just taken it
                self._queue.get_nowait()
        self._queue.put(json.dumps(message).encode())

    def __enter__(self) -> "Notifier":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._queue.put(None)
        began = time.monotonic()
        while self._thread.is_alive():
            soon = kind is not None or self._stopping.is_set()
            most = _STOP_SECONDS if soon else self._end_seconds
            if kind is KeyboardInterrupt or time.monotonic() - began >= most:
                break
            self._thread.join(0.02)
        self._over.set()
        if lost := self._given - self._delivered:
            known = counted(self._given, "message")
            self._warn(f"{lost} of {known} not delivered; events.jsonl has all")

    def _work(self) -> None:
        while not self._over.is_set() and (body := self._queue.get()) is not None:
            self._delivered += self._delivers(body)

    def _delivers(self, body: bytes) -> bool:
        """Try until a message is delivered; False: it is given up."""
        for wait in (*self._waits, None):
            try:
                self._receiver.deliver(body)
                return True
            except Exception as error:  # whatever a library raises, the thread must continue
                again = isinstance(error, OSError | HTTPException)
                if not self._failed and not self._over.is_set():
                    self._failed = True
                    how = "trying again while" if again else "not tried again;"
                    self._warn(f"{_reason(error)}; {how} the stream continues")
                if not again or wait is None or self._over.wait(wait):
                    break
        return False

    def _warn(self, line: str) -> None:
        with suppress(OSError, ValueError):  # nobody reads standard error
            print(f"--notify {self._shown}: {line}", file=sys.stderr, flush=True)


def _parsed(url: str) -> SplitResult:
    """Return the parts of a URL; errors show nothing of it but the scheme."""
    if not url.isascii() or not url.isprintable() or " " in url:
        raise InputError("--notify: write spaces and characters beyond ASCII as %20, …")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise InputError("--notify: the host or the port is not valid") from None
    if parts.scheme not in ("http", "https", *_PORTS):
        raise InputError("--notify: give a URL that begins with http, https, mqtt or mqtts and ://")
    if not parts.hostname:
        raise InputError(f"--notify {parts.scheme}://: the host is missing")
    if "@" in parts.path + parts.query + parts.fragment:
        # else a host that is shown could be part of a password with a slash
        raise InputError("--notify: write @ in a path as %40, / ? # in a password as %2F %3F %23")
    return parts


def _login(parts: SplitResult) -> tuple[str, str] | None:
    """Return user and password; others see a command, so they may be elsewhere."""
    if parts.username is None:
        return None
    password = unquote(parts.password or "") or os.environ.get("ACTIONSPAN_NOTIFY_PASSWORD", "")
    return unquote(parts.username), password


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, URLError) else error
    reason = getattr(cause, "strerror", None) or str(cause).strip() or type(cause).__name__
    return printable(reason[:_LONGEST])


class _Unredirected(HTTPRedirectHandler):
    """Follows no redirect: messages go to the host that was named."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _WebHook:
    """POSTs messages."""

    def __init__(self, parts: SplitResult) -> None:
        self._url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        self._secret = os.fsencode(os.environ.get("ACTIONSPAN_NOTIFY_SECRET", ""))
        self._opener = build_opener(_Unredirected)
        agent = f"actionspan/{__version__}"
        self._headers = {"Content-Type": "application/json", "User-Agent": agent}
        if login := _login(parts):
            pair = base64.b64encode(":".join(login).encode()).decode()
            self._headers["Authorization"] = f"Basic {pair}"

    def deliver(self, body: bytes) -> None:
        headers = dict(self._headers)
        if self._secret:
            signature = hmac.new(self._secret, body, "sha256").hexdigest()
            headers["X-Actionspan-Signature"] = f"sha256={signature}"
        try:
            self._opener.open(Request(self._url, body, headers), timeout=_ANSWER_SECONDS).close()
        except HTTPError as error:
            error.close()
            again = error.code >= 500 or error.code in _LATER
            raise (OSError if again else _Refused)(f"HTTP status {error.code}") from None


class _Topic:
    """Publishes messages with QoS 1, each over a connection of its own: none is kept alive."""

    def __init__(self, parts: SplitResult) -> None:
        self._topic = unquote(parts.path.removeprefix("/"))
        if not self._topic:
            raise InputError(f"--notify {parts.scheme}://: give a topic, as in mqtt://host/door")
        if parts.query or parts.fragment or {*"+#\0"} & {*self._topic}:
            raise InputError(f"--notify {parts.scheme}://: a topic has no + or #, and ? as %3F")
        try:
            from paho.mqtt.client import Client
            from paho.mqtt.enums import CallbackAPIVersion
        except ImportError:
            needed = 'needs paho-mqtt: pip install "actionspan[mqtt]"'
            raise InputError(f"--notify {parts.scheme}:// {needed}") from None
        # 23 characters, the most in MQTT 3.1
        self._client: Callable[[], Any] = lambda: Client(
            CallbackAPIVersion.VERSION2,
            client_id=f"actionspan-{secrets.token_hex(6)}",
            reconnect_on_failure=False,
        )
        self._parts = parts

    def deliver(self, body: bytes) -> None:
        parts = self._parts
        client = self._client()
        client.connect_timeout = _ANSWER_SECONDS
        if login := _login(parts):
            client.username_pw_set(*login)
        if parts.scheme == "mqtts":
            client.tls_set()
        codes: list[Any] = []
        acknowledged = threading.Event()
        client.on_connect = lambda _client, _data, _flags, code, _: codes.append(code)
        client.on_publish = lambda *_: acknowledged.set()
        client.connect(parts.hostname or "", parts.port or _PORTS[parts.scheme])
        sent, until = False, time.monotonic() + _ANSWER_SECONDS
        while not acknowledged.is_set():
            lost = client.loop(0.1)
            if codes and codes[0].is_failure:
                again = codes[0].value == _UNAVAILABLE
                raise (OSError if again else _Refused)(f"the broker answers {codes[0]}")
            if not acknowledged.is_set() and (lost or time.monotonic() >= until):
                raise OSError(f"the broker {'hung up' if lost else 'does not answer'}")
            if codes and not sent:
                client.publish(self._topic, body, qos=1)
                sent = True
        client.disconnect()
