"""A camera on the network: a local HTTP server that sends JPEGs as cheap cameras do."""

import base64
import contextlib
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import cv2
import numpy as np


def jpegs(pictures: Sequence[np.ndarray]) -> list[bytes]:
    return [cv2.imencode(".jpg", picture[..., ::-1])[1].tobytes() for picture in pictures]


class HttpCamera:
    """Serves JPEGs in a loop, so many a second; a context manager.

    With a password the user `viewer` must give it; otherwise anyone may look.
    """

    def __init__(
        self, pictures: Sequence[bytes], rate: float = 25.0, password: str | None = None
    ) -> None:
        self.pictures, self.rate, self.password = pictures, rate, password
        self.stalled = threading.Event()  # the connection stays, and nothing is sent
        self.hangs_up = threading.Event()
        self.connections = self.sent = self.port = 0
        self.between = b""  # sent after every fifth part
        self.more = 0  # bytes that a part is said to be longer than it is
        self.instead = b""  # an answer that is no video
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        user = f"viewer:{self.password}@" if self.password else ""
        return f"http://{user}127.0.0.1:{self.port}/video.mjpg"

    def __enter__(self) -> "HttpCamera":
        self.come_back()
        return self

    def __exit__(self, *_: object) -> None:
        self.go_away()

    def come_back(self) -> None:
        """Listen, on the port of before."""
        self.hangs_up.clear()
        server: Any = ThreadingHTTPServer(("127.0.0.1", self.port), _Viewed)
        server.daemon_threads, server.camera = True, self
        self._server, self.port = server, server.server_address[1]
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()

    def go_away(self) -> None:
        self.hangs_up.set()
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def hang_up(self) -> None:
        """End the connections there are; new ones are welcome."""
        self.hangs_up.set()
        time.sleep(max(0.1, 2 / self.rate))
        self.hangs_up.clear()


class _Viewed(BaseHTTPRequestHandler):
    def log_message(self, *words: object) -> None:
        pass

    def do_GET(self) -> None:
        server: Any = self.server
        camera: HttpCamera = server.camera
        wanted = base64.b64encode(f"viewer:{camera.password}".encode()).decode()
        if camera.password and self.headers.get("Authorization") != f"Basic {wanted}":
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="camera"')
            self.end_headers()
            return
        camera.connections += 1
        self.send_response(200)
        kind = "text/html" if camera.instead else "multipart/x-mixed-replace; boundary=frame"
        self.send_header("Content-Type", kind)
        self.end_headers()
        if camera.instead:
            self.wfile.write(camera.instead)
            return
        with contextlib.suppress(OSError):  # the viewer has gone
            self._send_frames(camera)

    def _send_frames(self, camera: HttpCamera) -> None:
        number = 0
        while not camera.hangs_up.is_set():
            if not camera.stalled.is_set():
                picture = camera.pictures[number % len(camera.pictures)]
                head = "--frame\r\nContent-Type: image/jpeg\r\n"
                head += f"Content-Length: {len(picture) + camera.more}\r\n\r\n"
                self.wfile.write(head.encode() + picture + b"\r\n")
                camera.sent += 1
                if camera.sent % 5 == 0:
                    self.wfile.write(camera.between)
            number += 1  # a camera goes on seeing while its line is down
            time.sleep(1 / camera.rate)
