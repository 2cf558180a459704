"""Who gets messages: a web server that answers as it is told, and a tiny MQTT broker."""

import json
import socketserver
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class _Server:
    def __init__(self, server: Any) -> None:
        self._server = server
        self._server.daemon_threads = True
        self.port = server.server_address[1]

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.release()
        self._server.shutdown()
        self._server.server_close()

    def release(self):
        """Answer what was held."""


class WebHook(_Server):
    """Answers each request with the next of `statuses`, then with 204."""

    def __init__(self, *statuses: int, holds: bool = False, location: str | None = None) -> None:
        super().__init__(ThreadingHTTPServer(("127.0.0.1", 0), _Posted))
        self._server.hook = self
        self.statuses, self.location = list(statuses), location
        self.requests: list[_Posted] = []
        self.may_answer = threading.Event()
        if not holds:
            self.may_answer.set()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def messages(self):
        return [json.loads(request.body) for request in self.requests]

    def release(self):
        self.may_answer.set()


class _Posted(BaseHTTPRequestHandler):
    def do_POST(self):
        server: Any = self.server
        hook = server.hook
        self.at = time.monotonic()
        self.body = self.rfile.read(int(self.headers["Content-Length"]))
        status = hook.statuses.pop(0) if hook.statuses else 204
        hook.requests.append(self)
        hook.may_answer.wait(60)
        self.send_response(status)
        if hook.location is not None:
            self.send_header("Location", hook.location)
        self.end_headers()

    do_GET = do_POST

    def log_message(self, *_):
        pass


class Broker(_Server):
    """Speaks as much MQTT 3.1.1 as a message with QoS 1 needs.

    `code` answers a CONNECT; the first `hangs_up` messages are not acknowledged.
    """

    def __init__(self, code: int = 0, hangs_up: int = 0) -> None:
        super().__init__(socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Session))
        self._server.broker = self
        self.code, self.hangs_up = code, hangs_up
        self.logins: list[tuple[str, ...]] = []
        self.published: list[tuple[str, int, bytes]] = []  # topic, QoS, message

    @property
    def url(self):
        return f"mqtt://127.0.0.1:{self.port}/door"


class _Session(socketserver.StreamRequestHandler):
    def handle(self):
        server: Any = self.server
        broker = server.broker
        while head := self.rfile.read(1):
            length, shift = 0, 0
            while True:
                (byte,) = self.rfile.read(1)
                length += (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            body = self.rfile.read(length)
            kind, flags = head[0] >> 4, head[0] & 15
            if kind == 1:  # CONNECT: 10 bytes of what is asked, the client's id, then the login
                broker.logins.append(tuple(_texts(body[10:])[1:]))
                self.wfile.write(bytes([0x20, 2, 0, broker.code]))
            elif kind == 3:  # PUBLISH
                (topic,) = _texts(body, 1)
                at = 2 + len(topic.encode())
                broker.published.append((topic, flags >> 1 & 3, body[at + 2 :]))
                if broker.hangs_up:
                    broker.hangs_up -= 1
                    return
                self.wfile.write(bytes([0x40, 2]) + body[at : at + 2])
            elif kind == 14:  # DISCONNECT
                return


def _texts(data: bytes, most: int = 9) -> list[str]:
    texts = []
    while data and len(texts) < most:
        end = 2 + int.from_bytes(data[:2], "big")
        texts.append(data[2:end].decode())
        data = data[end:]
    return texts
