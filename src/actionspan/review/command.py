"""Serve a page of your videos: you correct the events while a model learns from them."""

import argparse
import secrets
import signal
import socket
import webbrowser
from pathlib import Path

from actionspan.errors import InputError
from actionspan.jobs.shards import add_jobs
from actionspan.settings import at_least_one

_HIGHEST = 65535  # port


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add = parser.add_argument
    add("videos", type=Path, nargs="+", metavar="VIDEO", help="video files, or folders of them")
    folder = "folder for corrections.csv, the model and all else (default: VIDEO-review next to it)"
    add("-o", "--out", type=Path, help=folder)
    add("--port", type=int, default=0, help="of the page (default: any that is free)")
    add("--no-browser", action="store_true", help="print the address, and open nothing")
    copies = "do not copy videos that browsers cannot play; by default the page plays a copy"
    add("--no-copies", action="store_true", help=copies)
    add("--threads", type=int, default=1, help="cores of the encoders (default: 1)")
    add_jobs(parser)


def run(arguments: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C; all corrections are on the disk by then."""
    from actionspan.propose.command import named_videos

    at_least_one("--threads", arguments.threads)
    if not 0 <= arguments.port <= _HIGHEST:
        raise InputError(f"--port {arguments.port}: not from 1 to {_HIGHEST}, or 0 for any")
    videos, _ = named_videos(arguments.videos)
    if not videos:
        raise InputError("no video to review")
    out = arguments.out or beside(arguments.videos[0], next(iter(videos.values())))
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind(("127.0.0.1", arguments.port))
        taken.listen(128)  # who opens the address at once is answered a little later
    except OSError:
        raise InputError(f"--port {arguments.port}: is in use, or may not be used") from None
    import uvicorn

    from actionspan.review.footage import encoding
    from actionspan.review.server import make_app
    from actionspan.review.work import ReviewWork

    token, once = secrets.token_urlsafe(16), secrets.token_urlsafe(16)
    port, copies = taken.getsockname()[1], not arguments.no_copies
    here = f"http://127.0.0.1:{port}/"
    how = encoding(arguments, len(videos))
    with ReviewWork(out, videos, how, copies=copies, address=here) as work:
        app = make_app(work, token, port, once)
        config = uvicorn.Config(
            app, log_level="warning", timeout_graceful_shutdown=1, lifespan="off"
        )
        server = uvicorn.Server(config)
        # else its own way to end would end the process before the lines below
        signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
        try:
            kept = f"Ctrl-C ends it; corrections are in {work.corrections.table}"
            print(f"{here}?token={token}\n{kept}", flush=True)
            if not arguments.no_browser:  # others see the command line of a browser
                webbrowser.open(f"{here}?token={once}")
            server.run(sockets=[taken])
        except KeyboardInterrupt:
            pass
    return 0


def beside(word: Path, first: Path) -> Path:
    """Return the folder next to the one that `word` names, or next to the first video."""
    place = word.resolve() if word.is_dir() else first.resolve().with_suffix("")
    return place.with_name(f"{place.name}-review")
