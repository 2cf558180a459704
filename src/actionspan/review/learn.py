"""Learn from corrected videos, and keep the better model: yours or the included one."""

import argparse
from pathlib import Path

from actionspan.dataset.settings import add_reading, how_read
from actionspan.errors import InputError, counted
from actionspan.jobs.shards import add_jobs, add_zones


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add = parser.add_argument
    add("videos", type=Path, nargs="+", metavar="VIDEO", help="video files, or folders of them")
    corrected = "corrections.csv of a page, or annotations in any form: all that happens in the "
    corrected += "videos they name; other videos are not opened"
    add("--annotations", type=Path, required=True, metavar="FILE", help=corrected)
    add_reading(parser)
    add_zones(parser)
    folder = "folder for model.safetensors and learned.json (default: mine)"
    add("-o", "--out", type=Path, default=Path("mine"), help=folder)
    kept = "folder where the features of videos are kept (default: features, in --out)"
    add("--features", type=Path, metavar="DIR", help=kept)
    file = "file of a page: the stretches of other videos in which single events were judged"
    add("--stretches", type=Path, metavar="FILE", help=file)
    add("--threads", type=int, default=1, help="cores of the encoders (default: 1)")
    add_jobs(parser)


def run(arguments: argparse.Namespace) -> int:
    """Encode the corrected videos, learn from them, and print the result."""
    from actionspan.dataset.completing import Truth
    from actionspan.propose.command import named_videos
    from actionspan.review.footage import encode_readable, encoding
    from actionspan.review.learning import learn
    from actionspan.review.stretches import read_stretches
    from actionspan.video.zones import read_zones

    # 1. the corrected videos
    videos, _ = named_videos(arguments.videos)
    cameras = read_zones(arguments.zones)
    known = Truth(arguments.annotations, videos, **how_read(arguments))
    corrected = [path for name, path in videos.items() if name in known.instances]
    judged = read_stretches(arguments.stretches) if arguments.stretches else {}
    others = [path for name, path in videos.items() if name in judged and path not in corrected]
    # 2. their features, and what happens in them
    folder = arguments.features or arguments.out / "features"
    how = encoding(arguments, len(corrected) + len(others))
    encoded = encode_readable(corrected, folder, how, cameras=cameras)
    facts = [(one.video.video_id, one.video.duration_seconds) for one in encoded]
    single = encode_readable(others, folder, how, cameras=cameras) if others else []
    stretches = [(one, each) for one in single for each in judged[one.video.video_id]]
    truth = {name: known.within(name, seconds) for name, seconds in facts}
    if not corrected:
        raise InputError(f"{arguments.annotations}: names no video of these")
    if not any(truth.values()):
        some = counted(len(corrected), "video")
        line = f"nothing happens in the {some} that it names and that can be read"
        raise InputError(f"{arguments.annotations}: {line}; correct one in which something does")
    # 3. the model
    print(learn(encoded, truth, arguments.out, stretches=stretches).sentence())
    print(f"next: actionspan propose VIDEO --model {arguments.out} --out found")
    return 1 if len(encoded) < len(corrected) else 0
