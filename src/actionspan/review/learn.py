"""Learn from corrected videos, and keep the better model: yours or the included one."""

import argparse
import sys
from pathlib import Path

from actionspan.dataset.settings import add_reading, how_read
from actionspan.errors import InputError, counted
from actionspan.jobs.shards import ShardWork, add_jobs, videos_at_once


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    add = parser.add_argument
    add("videos", type=Path, nargs="+", metavar="VIDEO", help="video files, or folders of them")
    corrected = "corrections.csv of a page, or annotations in any form: all that happens in the "
    corrected += "videos they name; other videos are not opened"
    add("--annotations", type=Path, required=True, metavar="FILE", help=corrected)
    add_reading(parser)
    folder = "folder for model.safetensors and learned.json (default: mine)"
    add("-o", "--out", type=Path, default=Path("mine"), help=folder)
    kept = "folder where the features of videos are kept (default: features, in --out)"
    add("--features", type=Path, metavar="DIR", help=kept)
    add("--threads", type=int, default=1, help="cores of the encoders (default: 1)")
    add_jobs(parser)


def run(arguments: argparse.Namespace) -> int:
    """Encode the corrected videos, learn from them, and say what came of it."""
    from actionspan.dataset.completing import Truth
    from actionspan.jobs.progress import progress
    from actionspan.propose.command import named_videos
    from actionspan.review.footage import encode_all
    from actionspan.review.learning import learn

    videos, passed = named_videos(arguments.videos)
    for path, reason in passed.items():
        print(f"{path}: {reason}", file=sys.stderr)
    known = Truth(arguments.annotations, videos, **how_read(arguments))
    corrected = [name for name in videos if name in known.instances]
    encoded = []
    paths = [videos[name] for name in corrected]
    jobs = videos_at_once(arguments.jobs, len(paths), arguments.threads)
    how = ShardWork(processes=jobs, threads=arguments.threads)
    every = encode_all(paths, arguments.features or arguments.out / "features", how)
    for one in progress(every, "features", len(paths)):
        if one.video.error:
            print(f"{one.video.path}: {one.video.error}", file=sys.stderr)
        else:
            encoded.append(one)
    truth = {
        one.video.video_id: known.within(one.video.video_id, one.video.duration_seconds)
        for one in encoded
    }
    if not corrected:
        raise InputError(f"{arguments.annotations}: names no video of these")
    if not any(truth.values()):
        some = counted(len(corrected), "video")
        line = f"nothing happens in the {some} that it names and that can be read"
        raise InputError(f"{arguments.annotations}: {line}; correct one in which something does")
    learned = learn(encoded, truth, arguments.out)
    print(learned.sentence())
    print(f"next: actionspan propose VIDEO --model {arguments.out} --out found")
    return 1 if len(encoded) < len(corrected) else 0
