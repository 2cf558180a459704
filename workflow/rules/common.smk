# What the rules share: the checked configuration, the list of videos, and functions of both.

import json
import re
import shlex
import sys
from pathlib import Path

ROOT = Path(workflow.basedir)
sys.path.insert(0, str(ROOT / "src"))

from actionspan.config import check_config
from actionspan.dataset.demo_names import demo_video_names
from actionspan.dataset.sharding import assign_shards, find_videos
from actionspan.errors import InputError
from actionspan.schema import check_settings
from actionspan.sources import source_files


def checked_videos():
    """Check the configuration and return {video id: path}; end with one line where it is wrong."""
    try:
        names = [str(path) for path in workflow.configfiles] or ["config.yaml"]
        check_config(
            config, ROOT / "workflow/schemas/config.schema.yaml", " + ".join(names)
        )
        check_settings(config, " + ".join(names))
        if config["dataset"]["videos"] == "demo":
            folder = "results/dataset/demo"
            return {
                Path(name).stem: f"{folder}/{name}"
                for name in demo_video_names(config["demo"]["videos"])
            }
        if config["dataset"]["videos"] is None:
            return {}
        return {
            video: str(path)
            for video, path in find_videos(Path(config["dataset"]["videos"])).items()
        }
    except InputError as error:
        sys.exit(str(error))


PATHS = checked_videos()
VIDEOS = list(PATHS)
SHARD_VIDEOS = assign_shards(VIDEOS, config["dataset"]["videos_per_shard"])
EXTERNAL = config["features"]["source"] == "external"
SHARDS = list(SHARD_VIDEOS)
MODELS = config["temporal"]["models"]
BASELINES = [
    name
    for name in config["evaluation"]["baselines"]
    if not (EXTERNAL and name == "difference")
]
DEMO = config["dataset"]["videos"] == "demo"
ANNOTATIONS = (
    "results/dataset/demo/annotations.json"
    if DEMO
    else config["dataset"]["annotations"]
)


def one_of(names):
    """Return a pattern that matches exactly these names (and nothing where there are none)."""
    return "|".join(re.escape(name) for name in names) or "(?!)"


def flags(section, *keys):
    """Return a section of the configuration as command-line flags.

    `keys` names the values wanted (all where none is named). A true value becomes `--key`, a false
    one `--no-key`, an empty one nothing.
    """
    words = []
    for key, value in section.items():
        flag = key.replace("_", "-")
        if (keys and key not in keys) or value is None:
            continue
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words.append(f"--{flag}={shlex.quote(str(value))}")
    return " ".join(words)


def shard_videos(wildcards):
    return [PATHS[video] for video in SHARD_VIDEOS[wildcards.shard]]


def feature_shards():
    names = ["external"] if EXTERNAL else SHARDS
    return expand("results/features/shards/{shard}.h5", shard=names)


def wanted_chapters():
    """Chapters are files of one video each: made by default for sets a person can browse."""
    if len(VIDEOS) > 1000:
        return []
    return expand(
        "results/proposals/{model}/chapters/{video}.vtt", model=MODELS, video=VIDEOS
    )


def wanted_timelines():
    """A few timelines, evenly spread over the videos; every other one can be named."""
    count = min(config["evaluation"]["timelines"], len(VIDEOS))
    chosen = [VIDEOS[i * len(VIDEOS) // count] for i in range(count)]
    return expand(
        "results/evaluation/timelines/{model}/{video}.svg",
        model=MODELS[-1],
        video=chosen,
    )


def baseline_features(wildcards):
    """Only the frame-difference baseline looks at the video."""
    return "results/features/features.h5" if wildcards.baseline == "difference" else []


def weights_files():
    """Return the encoders' weights that are files (others are names of published weights)."""
    encoders = config["features"]["encoders"]
    named = [encoders["rgb_weights"], encoders["flow_weights"]]
    return [name for name in named if name and Path(name).suffix]


def bundle_settings():
    """Return the settings that `actionspan propose` needs to repeat the stages on a new video."""
    return {
        "frames": config["video"]["frames"],
        "flow": config["video"]["flow"],
        "encoders": {
            "source": config["features"]["source"],
            **config["features"]["encoders"],
        },
        "candidates": config["proposals"]["candidates"],
        "suppression": config["proposals"]["suppression"],
    }
