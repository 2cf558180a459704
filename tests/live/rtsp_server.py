"""A camera that speaks RTSP, of GStreamer: its pictures are numbered by the time they are taken.

A program of its own, run by the Python of the system, which has GStreamer's modules: see `rtsp.py`.
It prints the port, and then a line for each client. Lines of its standard input make it `pause` and
`go on`.
"""

import argparse
import array
import math
import sys
import threading
import time

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer  # noqa: E402

HEIGHT, WIDTH, BITS, SIDE = 64, 128, 12, 16  # as video/numbered.py draws
SAMPLES, LOUD = 8000, 0.5  # a second, and the amplitude of the sine
ENCODERS = {
    "h264": "x264enc tune=zerolatency speed-preset=ultrafast key-int-max=10 ! rtph264pay "
    "config-interval=-1",
    "h265": "x265enc tune=zerolatency speed-preset=ultrafast key-int-max=10 ! h265parse ! "
    "rtph265pay config-interval=-1",
    "jpeg": "jpegenc ! rtpjpegpay",
}


def numbered(number: int) -> bytes:
    """Return an I420 picture with the bits of a number as squares."""
    luma = bytearray(b"\x60" * (HEIGHT * WIDTH))
    for bit in range(BITS):
        value = b"\xdc" if number >> bit & 1 else b"\x1e"
        x = SIDE * (1 + bit % 6)
        for y in range(SIDE * (1 + bit // 6), SIDE * (2 + bit // 6)):
            luma[y * WIDTH + x : y * WIDTH + x + SIDE] = value * SIDE
    return bytes(luma) + b"\x80" * (HEIGHT * WIDTH // 2)


def sine(number: int, rate: int) -> bytes:
    """Return the sound of an amplitude of `LOUD` during a picture, 16 bits."""
    count = SAMPLES // rate
    places = range(number * count, (number + 1) * count)
    values = [math.sin(2 * math.pi * 440 * place / SAMPLES) for place in places]
    return array.array("h", [round(LOUD * 32767 * value) for value in values]).tobytes()


class Camera:
    """Pushes pictures, and sound, into every client's pipeline, by the clock."""

    def __init__(self, rate: int, begun: float) -> None:
        self.rate, self.begun = rate, begun
        self.paused = False
        self.sounds = 0

    def configure(self, _: object, media: GstRtspServer.RTSPMedia) -> None:
        sources = [media.get_element().get_by_name(name) for name in ("camera", "microphone")]
        GLib.timeout_add(1000 // self.rate, self.push, *sources)

    def push(self, source: Gst.Element, microphone: Gst.Element | None) -> bool:
        if microphone is not None:
            self.sounds += 1
            microphone.emit("push-buffer", Gst.Buffer.new_wrapped(sine(self.sounds, self.rate)))
        if self.paused:
            return True
        number = int((time.time() - self.begun) * self.rate) % (1 << BITS)
        return source.emit("push-buffer", Gst.Buffer.new_wrapped(numbered(number))) in (
            Gst.FlowReturn.OK,
            Gst.FlowReturn.FLUSHING,
        )


def listen(camera: Camera, loop: GLib.MainLoop) -> None:
    for line in sys.stdin:
        camera.paused = line.strip() == "pause"
    loop.quit()  # whoever started it has gone


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", default="0")
    parser.add_argument("--rate", type=int, default=25)
    parser.add_argument("--begun", type=float, default=time.time())
    parser.add_argument("--codec", choices=ENCODERS, default="h264")
    parser.add_argument("--sound", action="store_true")
    parser.add_argument("--password", help="of the user `viewer`")
    parser.add_argument("--transport", choices=["TCP", "UDP", "any"], default="any")
    words = parser.parse_args()
    Gst.init(None)
    camera, loop = Camera(words.rate, words.begun), GLib.MainLoop()
    server = GstRtspServer.RTSPServer(address="127.0.0.1", service=words.port)
    factory = GstRtspServer.RTSPMediaFactory()
    caps = f"video/x-raw,format=I420,width={WIDTH},height={HEIGHT},framerate={words.rate}/1"
    line = (
        f"appsrc name=camera is-live=true do-timestamp=true format=time caps={caps} ! "
        f"{ENCODERS[words.codec]} name=pay0 pt=96"
    )
    if words.sound:
        # not audiotestsrc: what can seek is asked to, and the pictures cannot
        heard = f"audio/x-raw,format=S16LE,rate={SAMPLES},channels=1,layout=interleaved"
        line += f" appsrc name=microphone is-live=true do-timestamp=true format=time caps={heard}"
        line += " ! alawenc ! rtppcmapay name=pay1 pt=8"
    factory.set_launch(f"( {line} )")
    if words.transport != "any":
        factory.set_protocols(getattr(GstRtsp.RTSPLowerTrans, words.transport))
    factory.connect("media-configure", camera.configure)
    if words.password:
        auth, token = GstRtspServer.RTSPAuth(), GstRtspServer.RTSPToken()
        token.set_string("media.factory.role", "viewer")
        auth.add_basic(GstRtspServer.RTSPAuth.make_basic("viewer", words.password), token)
        server.set_auth(auth)
        permissions = GstRtspServer.RTSPPermissions()
        permissions.add_permission_for_role("viewer", "media.factory.access", True)
        permissions.add_permission_for_role("viewer", "media.factory.construct", True)
        factory.set_permissions(permissions)
    server.get_mount_points().add_factory("/live", factory)
    if not server.attach(None):
        sys.exit("the port is taken")
    server.connect("client-connected", lambda *_: print("client", flush=True))
    print(server.get_bound_port(), flush=True)
    threading.Thread(target=listen, args=(camera, loop), daemon=True).start()
    loop.run()


if __name__ == "__main__":
    main()
