"""Cameras that speak RTSP, and a line between camera and viewer that holds back what is sent."""

import contextlib
import socket
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from queue import SimpleQueue

import pytest

_SYSTEM = Path("/usr/bin/python3")  # has the modules of Debian's packages
_CHECK = """
import gi
gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import Gst, GstRtspServer
Gst.init(None)
wanted = "appsrc x264enc x265enc jpegenc alawenc h265parse "
wanted += "rtph264pay rtph265pay rtpjpegpay rtppcmapay"
missing = [name for name in wanted.split() if Gst.ElementFactory.find(name) is None]
raise SystemExit(f"GStreamer lacks {missing}" if missing else 0)
"""


def needs_rtsp() -> None:
    if not _SYSTEM.exists():
        pytest.skip(f"no {_SYSTEM}, which would run GStreamer's RTSP server")
    check = subprocess.run([_SYSTEM, "-c", _CHECK], capture_output=True, text=True, check=False)
    if check.returncode:
        why = check.stderr.strip().splitlines()[-1:]
        pytest.skip(f"GStreamer's RTSP server (gir1.2-gst-rtsp-server-1.0) is missing: {why}")


class RtspCamera:
    """A process that serves numbered pictures; a context manager."""

    def __init__(self, *words: str, password: str | None = None) -> None:
        self._words = list(words) + (["--password", password] if password else [])
        self.password = password
        self.port = 0
        self._process: subprocess.Popen[str]

    def url(self, port: int | None = None) -> str:
        user = f"viewer:{self.password}@" if self.password else ""
        return f"rtsp://{user}127.0.0.1:{port or self.port}/live"

    def __enter__(self) -> "RtspCamera":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Listen, on the port of before."""
        script = Path(__file__).with_name("rtsp_server.py")
        self._process = subprocess.Popen(
            [_SYSTEM, script, "--port", str(self.port), *self._words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def kill(self) -> None:
        """End it as a loss of power would."""
        self._process.kill()
        self._process.communicate()

    def say(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()


class Line:
    """A line to a port of this machine that can hold back what comes from there.

    Nothing is lost: what is held back is delivered at once afterwards.
    """

    def __init__(self, port: int) -> None:
        self._to = port
        self._open = threading.Event()
        self._open.set()
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self) -> None:
        self._open.clear()

    def deliver(self) -> None:
        self._open.set()

    def close(self) -> None:
        self._listener.close()
        self._open.set()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                viewer, _ = self._listener.accept()
                self.connections += 1
                camera = socket.create_connection(("127.0.0.1", self._to))
                kept: SimpleQueue[bytes] = SimpleQueue()
                for work in (
                    partial(self._up, viewer, camera),
                    partial(self._keep, camera, kept),
                    partial(self._down, viewer, kept),
                ):
                    threading.Thread(target=work, daemon=True).start()

    def _up(self, viewer: socket.socket, camera: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := viewer.recv(65536):
                camera.sendall(data)
        with contextlib.suppress(OSError):
            camera.shutdown(socket.SHUT_RDWR)

    def _keep(self, camera: socket.socket, kept: SimpleQueue[bytes]) -> None:
        data = b" "
        while data:
            data = b""
            with contextlib.suppress(OSError):
                data = camera.recv(65536)
            kept.put(data)

    def _down(self, viewer: socket.socket, kept: SimpleQueue[bytes]) -> None:
        with contextlib.suppress(OSError):
            while data := kept.get():
                self._open.wait()
                viewer.sendall(data)
            self._open.wait()
            viewer.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def line_to(port: int) -> Iterator[Line]:
    line = Line(port)
    try:
        yield line
    finally:
        line.close()
