# What the rules share: the checked configuration, the list of videos, and functions of both.

import json
import os
import re
import shlex
import sys
from pathlib import Path

ROOT = Path(workflow.basedir)
# The rules run `python -m actionspan` of this checkout, installed or not, in any environment.
sys.path.insert(0, str(ROOT / "src"))
os.environ.update(PYTHONPATH=str(ROOT / "src"))

from actionspan.plan.checking import (
    check_config,
    check_settings,
    encoders_of,
    trains_classifiers,
)
from actionspan.plan.flags import flags
from actionspan.demo.names import demo_video_names
from actionspan.dataset.sharding import assign_shards, find_videos, left_out
from actionspan.errors import InputError
from actionspan.parallel.settings import ON_CPUS, processes
from actionspan.recognition.clip_lists import list_clips
from actionspan.papers.aavg.comparisons import (
    COMPARISONS,
    compared_runs,
    curve_figures,
    rate_runs,
    run_paths,
)
from actionspan.papers.aavg.settings import ExperimentSettings
from actionspan.papers.aavg.learnings import Learning
from actionspan.recognition.settings import RecognitionSettings
from actionspan.settings import from_mapping
from actionspan.plan.sources import source_files
from actionspan.temporal.settings import MODELS as KNOWN_MODELS


def annotation_files(name):
    """Return the files of the annotations: one, or in a folder THUMOS14's text files."""
    path = Path(name)
    return sorted(map(str, path.glob("*.txt"))) if path.is_dir() else [name]


def checked_videos(name):
    """Check the configuration and return {video id: path}.

    Raises:
        InputError: Something in it is wrong; the line names the key.
    """
    check_config(config, ROOT / "workflow/schemas/config.schema.yaml", name)
    check_settings(config, name)
    dataset = config["dataset"]
    external = config["features"]["source"] == "external"
    if dataset["videos"] == "demo":
        return {
            Path(file).stem: f"results/dataset/demo/{file}"
            for file in demo_video_names(config["demo"]["videos"])
        }
    videos = (
        find_videos(Path(dataset["videos"])) if dataset["videos"] is not None else {}
    )
    if dataset["videos"] is not None and not videos:
        raise InputError(f"{name}: dataset.videos: no video in {dataset['videos']}")
    if not (dataset["annotations"] and Path(dataset["annotations"]).exists()):
        raise InputError(
            f"{name}: dataset.annotations: {dataset['annotations']}: no such file; training needs "
            "annotations (`actionspan propose` finds proposals in videos without any)"
        )
    if not annotation_files(dataset["annotations"]):
        raise InputError(
            f"{name}: dataset.annotations: {dataset['annotations']}: a folder without .txt files; "
            "those of THUMOS14 are <Class>_val.txt and <Class>_test.txt"
        )
    if external and not Path(config["features"]["external"]["folder"] or "").is_dir():
        folder = config["features"]["external"]["folder"]
        raise InputError(f"{name}: features.external.folder: {folder}: no such folder")
    if dataset["videos"] is None and not external:
        raise InputError(
            f"{name}: dataset.videos: null goes with features.source: external"
        )
    return {video: str(path) for video, path in videos.items()}


def checked_shards(name):
    """Return {shard: its video ids}; more than Snakemake plans quickly is an error."""
    per_shard = config["dataset"]["videos_per_shard"]
    shards = assign_shards(VIDEOS, per_shard)
    if len(shards) > 2048:
        raise InputError(
            f"{name}: dataset.videos_per_shard: {per_shard} makes {len(shards)} shards; at most "
            f"2048 are planned: give {-(-len(VIDEOS) // 2048)} or more, or auto"
        )
    return shards


def checked_clips():
    """Return the trimmed clips for recognition by id, if there are any."""
    recognition = config["recognition"]
    if recognition["clips"] is None:
        return {}
    splits = recognition["splits"] and Path(recognition["splits"])
    fraction = recognition["store"]["validation_fraction"]
    clips = list_clips(
        Path(recognition["clips"]), splits, recognition["split"], fraction
    )
    return {clip.clip_id: clip for clip in clips}


CONFIG_NAME = " + ".join(os.path.relpath(path) for path in workflow.configfiles)
try:
    PATHS = checked_videos(CONFIG_NAME)
    VIDEOS = list(PATHS)
    SHARD_VIDEOS = checked_shards(CONFIG_NAME)
    CLIPS = checked_clips()
except InputError as error:
    sys.exit(str(error))

EXTERNAL = config["features"]["source"] == "external"
SHARDS = list(SHARD_VIDEOS)
MODELS = config["temporal"]["models"]
RUN = f"{config['temporal']['exchange']}-{config['temporal']['ranks']}"
ALL_CORES = workflow.cores or 1
# Timed runs are short, and keep the last epoch so that each does the same work.
SCALING_TRAINING = {"epochs": config["scaling"]["epochs"], "keep": "last"}
BASELINES = [
    name
    for name in config["evaluation"]["baselines"]
    if not (EXTERNAL and name == "difference")
]
DEMO = config["dataset"]["videos"] == "demo"
TRIMMED = config["recognition"]["clips"] is not None
CLIP_SHARDS = assign_shards(CLIPS, "auto") if TRIMMED else SHARD_VIDEOS
STREAMS = ["rgb", "flow"]
TRAINED_SCORES = trains_classifiers(config)
# Classifiers see L flows at once, whatever pooled features have.
FRAMES = dict(config["video"]["frames"])
ENCODERS = encoders_of(config)
if TRAINED_SCORES:
    FRAMES["stack"] = config["recognition"]["store"]["stack"]
# The rows of the paper's ablation, whichever models a plain run has.
ABLATION = ["origin", "se", "dense", "mtn"]
LOSS_MODELS = ["origin", "cnn2", "cnn4", "mtn"]
ANNOTATIONS = (
    "results/dataset/demo/annotations.json"
    if DEMO
    else config["dataset"]["annotations"]
)


def one_of(names):
    """Return a pattern that matches exactly these names (and nothing where there are none)."""
    return "|".join(re.escape(name) for name in names) or "(?!)"


def seeded(names):
    """Return a pattern of these names and of their further seeds: mtn, mtn-seed2, mtn-seed10."""
    return f"({one_of(names)})(-seed([2-9]|[1-9][0-9]+))?"


def base_name(name):
    """Return the model or baseline of a name: mtn of mtn-seed2."""
    return name.partition("-seed")[0]


def seed_number(name):
    """Return which seed a name stands for: 2 of mtn-seed2, 1 of mtn."""
    return int(name.partition("-seed")[2] or 1)


def seeded_flags(section, name, *keys):
    """Return a section as flags, its seed moved on by the seeds that come before that of `name`."""
    return flags({**section, "seed": section["seed"] + seed_number(name) - 1}, *keys)


def seed_names(methods):
    """Return the names of all seeds of the papers' tables; a method without chance has one."""
    count = config["evaluation"]["seeds"]
    return [
        name
        for method in methods
        for name in (
            method,
            *(
                f"{method}-seed{seed}"
                for seed in range(2, count + 1)
                if method not in ("sliding", "difference")
            ),
        )
    ]


def video_scores(methods):
    """Return the scores by video of all seeds of these methods."""
    return expand("results/evaluation/videos/{name}.tsv", name=seed_names(methods))


def training_logs(models):
    """Return the logs of training of all seeds of these models."""
    return expand(f"results/temporal/{{name}}/{RUN}/log.tsv", name=seed_names(models))


def features_in_words():
    """Return what the features are, for the captions of the papers' tables."""
    if EXTERNAL:
        folder = Path(config["features"]["external"]["folder"])
        return f"features from the folder {folder.resolve().name}"
    encoders, flow = ENCODERS, config["video"]["flow"]
    streams = []
    for stream, source in ("rgb", "RGB"), ("flow", f"{flow['algorithm']} flow"):
        weights = encoders[f"{stream}_weights"]
        named = f" with weights {Path(weights).name}" if weights else ""
        streams.append(f"{encoders[f'{stream}_encoder']}{named} on {source}")
    if encoders["flow_histogram"]:
        streams.append("a histogram of flow")
    kind = {"pooled": "pooled features", "scores": "class scores"}
    return f"{kind[config['features']['source']]} of {', '.join(streams)}"


def data_in_words():
    """Return the name of the data set, for the captions of the papers' tables."""
    if DEMO:
        return "the rendered demo set"
    videos = config["dataset"]["videos"]
    path = Path(videos or config["dataset"]["annotations"]).resolve()
    name = "/".join(path.parts[-2:])  # the last part alone is often `videos`
    return f"the videos of {name}" if videos else f"the data set of {name}"


def run_pattern():
    """Return the pattern of names like ring-4; none is for one rank."""
    several = [name for name in ON_CPUS if name != "none"]
    return f"none-1|({one_of(several)})-[1-9][0-9]*"


def run_processes(wildcards):
    """Return how many processes train together: the ranks, and a server where it has its own."""
    exchange, _, ranks = wildcards.run.rpartition("-")
    return processes(exchange, int(ranks))


def run_threads(wildcards):
    return run_processes(wildcards) * config["temporal"]["threads"]


def run_memory(wildcards):
    return 1000 + 1000 * run_processes(wildcards)


def run_launch(wildcards):
    """Return what starts the ranks; one process is started like any other command.

    It is a resource, so that another launcher makes nothing anew.
    """
    count = run_processes(wildcards)
    return f"{config['mpi']['launcher']} -n {count}" if count > 1 else ""


def run_flags(wildcards):
    exchange, _, ranks = wildcards.run.rpartition("-")
    if exchange == "none":
        return ""
    parallel = flags(config["temporal"]["parallel"])
    return f"--exchange={exchange} --ranks={ranks} {parallel}"


def scaling_runs():
    """Return the names of the timed runs; the single rank without an exchange is the reference."""
    named = expand(
        "{exchange}-{ranks}",
        exchange=config["scaling"]["exchanges"],
        ranks=config["scaling"]["ranks"],
    )
    return ["none-1", *named]


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
    difference = base_name(wildcards.baseline) == "difference"
    return "results/features/features.h5" if difference else []


def baseline_probabilities(wildcards):
    """Only TAG groups actionness: that of the base network, of the same seed."""
    name = wildcards.baseline
    if base_name(name) != "tag":
        return []
    return f"results/temporal/{name.replace('tag', 'origin', 1)}/{RUN}/probabilities.h5"


def baseline_settings(wildcards):
    """Return the settings that this baseline reads, so that the others make it not anew."""
    name = wildcards.baseline
    keys = {
        "random": ["seed"],
        "sliding": ["overlap", "shortest_window", "window_prior"],
    }.get(base_name(name), [])
    words = seeded_flags(config["evaluation"]["baseline"], name, "proposals", *keys)
    if keys:
        return words
    # those that group a signal have the models' Soft-NMS, but a length of their own
    suppression = dict(config["proposals"]["suppression"])
    del suppression["keep"]
    return f"{words} {flags(suppression)}"


def weights_files(*named):
    """Return the weights that are files (others are names of published weights, or none)."""
    return [
        name for name in named if name and (Path(name).suffix or Path(name).exists())
    ]


def external_files():
    """Return the feature files that people brought, so that a changed one re-runs what it made."""
    folder = config["features"]["external"]["folder"] if EXTERNAL else None
    return sorted(str(path) for path in Path(folder).iterdir()) if folder else []


def wanted_bundles():
    """Models of features that were made elsewhere cannot take videos: they have no bundle."""
    return (
        [] if EXTERNAL else expand("results/proposals/{model}/model.pt", model=MODELS)
    )


def bundle_settings():
    """Return the settings that `actionspan propose` needs to repeat the stages on a new video."""
    return {
        "frames": FRAMES,
        "flow": config["video"]["flow"],
        "encoders": {
            "source": config["features"]["source"],
            **ENCODERS,
        },
        "candidates": config["proposals"]["candidates"],
        "ranking": config["proposals"]["ranking"],
        "suppression": config["proposals"]["suppression"],
    }


def passed_over():
    """Return the files of the video folder that are left out, and why (a second of one name)."""
    if DEMO or config["dataset"]["videos"] is None:
        return {}
    return left_out(Path(config["dataset"]["videos"]))


def clip_files():
    """Return the trimmed clips and the files that divide them into subsets."""
    splits = config["recognition"]["splits"]
    lists = sorted(map(str, Path(splits).glob("*.txt"))) if splits else []
    return [*(str(clip.path) for clip in CLIPS.values()), *lists]


def shard_clips(wildcards):
    return [CLIPS[clip] for clip in CLIP_SHARDS[wildcards.clip_shard]]


def shard_clip_files(wildcards):
    return [str(clip.path) for clip in shard_clips(wildcards)]


def learning_of(wildcards):
    """Return how this classifier is trained: as configured, or as its run is named."""
    section = config["recognition"]
    if "learning" in wildcards.keys():
        return Learning.of_name(wildcards.learning)
    steps = section["training"]["averaging_steps"]
    return Learning(section["exchange"], steps, section["learners"])


def learner_settings(wildcards):
    learning = learning_of(wildcards)
    return learning.applied(config["recognition"]["training"])


def learner_processes(wildcards):
    """Return how many processes train together; in_process puts averaged learners into one."""
    learning = learning_of(wildcards)
    if config["recognition"]["in_process"] and learning.exchange == "aavg":
        return 1
    return processes(learning.exchange, learning.learners)


def learner_threads(wildcards):
    return learner_processes(wildcards) * config["recognition"]["threads"]


def learner_memory(wildcards):
    """Return MB: of libraries, and of what a network of the default's size keeps of the largest batch."""
    training = config["recognition"]["training"]
    batch = 80 * training["batch_cap"] * (training["input_size"] / 224) ** 2
    return 1000 + round(1500 + batch) * learning_of(wildcards).learners


def learner_launch(wildcards):
    count = learner_processes(wildcards)
    return f"{config['mpi']['launcher']} -n {count}" if count > 1 else ""


def learner_flags(wildcards):
    """Return how learners are joined; of temporal.parallel only what such an exchange looks at."""
    learning = learning_of(wildcards)
    keys = ["stall_seconds", "cuda_aware"]
    if learning.exchange not in ("none", "aavg", "periodic"):
        keys += ["bucket_kib", "auto_kib", "staleness"]
    return (
        f"--exchange={learning.exchange} --learners={learning.learners}"
        f" {flags(config['temporal']['parallel'], *keys)} {flags(learner_settings(wildcards))}"
    )


def rgb_classifier(wildcards):
    """Return the RGB network that flow starts from, of the same run."""
    settings = from_mapping(RecognitionSettings, learner_settings(wildcards))
    if wildcards.stream != "flow" or not settings.is_on("transfer"):
        return []
    if "learning" in wildcards.keys():
        run = learning_of(wildcards).trained_as("rgb").name
        return f"results/recognition/runs/{run}/rgb/model.pt"
    return "results/recognition/rgb/model.pt"


def experiments():
    """Return the settings of paper 003's experiments, and how many learners train together."""
    section = config["recognition"]
    return from_mapping(ExperimentSettings, section["experiments"]), section["learners"]


def figure_logs(wildcards):
    """Return the logs of all seeds of the runs in a figure of accuracy over epochs."""
    settings, learners = experiments()
    comparison, _, stream = wildcards.figure.rpartition("_")
    runs = COMPARISONS[comparison].runs(settings, learners)
    return run_paths(runs, [stream], settings.seeds, "log.tsv")


def rate_logs(wildcards):
    """Return the logs of the sweep of the learning rate."""
    settings, learners = experiments()
    configured = config["recognition"]["training"]["learning_rate"]
    runs = rate_runs(settings, learners, configured)
    return run_paths(runs, STREAMS, settings.rate_seeds, "log.tsv")


def compared(file):
    """Return a file of all seeds and streams of all runs that are compared."""
    settings, learners = experiments()
    return run_paths(compared_runs(settings, learners), STREAMS, settings.seeds, file)


def table_scores(wildcards):
    """Return the scores of AAVG1 to AAVG4."""
    settings, learners = experiments()
    runs = [
        run
        for run in compared_runs(settings, learners)
        if run.exchange == "aavg" and run.interval == -1
    ]
    return run_paths(runs, STREAMS, settings.seeds, "scores.json")


def classifiers_in_words():
    """Return how classifiers are trained, and on what, for captions."""
    section, training = config["recognition"], config["recognition"]["training"]
    data = data_in_words()
    if TRIMMED:
        folder = Path(section["clips"]).resolve()
        data = f"the clips of {'/'.join(folder.parts[-2:])}"
    start = "public weights" if training["pretrained"] else "random weights"
    if section["weights"]:
        start = f"the weights {Path(section['weights']).name}"
    count = section["learners"]
    return (
        f"{training['network']} from {start}, {training['optimiser']} at"
        f" {training['learning_rate']:g}, {count} learner{'s' if count > 1 else ''},"
        f" {training['epochs']} epochs, batches of {training['batch_size']} a learner at the"
        f" start, on {data}"
    )
