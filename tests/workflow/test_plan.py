"""What the Snakefile asks of the plan: videos, runs, seeds, flags and the files of a plain run."""

import os
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from actionspan.errors import InputError
from actionspan.evaluation.settings import BASELINES
from actionspan.workflow.outcomes import OutcomesPlan
from actionspan.workflow.runs import flags, seeded_flags
from workflow.conftest import Wildcards, merged

NO_FILE = "other: no file of this video in dataset.videos"
NO_VIDEOS = "dataset: {videos: null, annotations: truth.json}\n"


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ("temporal: {trainin: {}}", "temporal.trainin: unknown key; did you mean training?"),
        ("dataset: {videos: no/such/folder}", "no/such/folder"),
        ("dataset: {videos: null}", "dataset.annotations: None: no such file"),
        ("dataset: {annotations: mine.csv}", "mine.csv is not used with dataset.videos: demo; na"),
        ("temporal: {ranks: 2}", "temporal: exchange none with ranks 2: none is for 1 rank"),
        ("temporal: {parallel: {stall_seconds: 0.0}}", "stall_seconds"),
        ("recognition: {learners: 2, exchange: none}", "recognition: exchange none"),
        ("recognition: {store: {height: 100}}", "recognition.store: height"),
        ("recognition: {clips: nowhere}", "nowhere: not a folder of clips"),
        (
            "features: {encoders: {clip_encoder: i3d, clip_size: 224}}",
            "features.encoders.clip_size: 224 is more than video.frames.clip_side, 128",
        ),
        ("evaluation: {folds: 61}", "evaluation.folds: 61 folds of 36 videos; at most one for"),
        ("report: {model: stream}", "report.model: 'stream' is not one of temporal.models: "),
        ("dataset: {videos: ., annotations: empty}", "empty: a folder without annotation files (."),
        (NO_VIDEOS, "dataset.videos: null goes with features.source"),
        (
            NO_VIDEOS + "features: {source: external, external: {folder: gone}}",
            "gone: no such folder",
        ),
        ("features: {source: external}", "features.external.folder: None: no such folder"),
        (
            "{demo: {videos: 3000}, dataset: {videos_per_shard: 1}}",
            "makes 3000 shards; at most 2000 are planned: give 2",
        ),
    ],
)
def test_a_wrong_configuration_is_one_line(planned, wrong, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("actionspan.workflow.dataset.MOST_SHARDS", 2000)
    for name in ("v.mp4", "truth.json"):
        Path(name).touch()
    Path("empty").mkdir()
    with pytest.raises(InputError) as error:
        planned(yaml.safe_load(wrong))
    assert line in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("key", "file"),
    [
        ("dataset.annotations", "<b>.csv"),
        ("recognition.clips", "jump<b>/a.mp4"),
        ("features.external.folder", "<b>.npy"),
    ],
)
def test_a_file_whose_name_snakemake_changes_is_named(planned, tmp_path, key, file):
    for path in (tmp_path / "v.mp4", tmp_path / "in" / file):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "in" / "{b} is none to a function.csv").touch()
    folder = str(tmp_path / "in")
    changes = {"dataset": {"videos": str(tmp_path), "annotations": folder}}
    if key == "recognition.clips":
        changes["recognition"] = {"clips": folder}
    if key == "features.external.folder":
        changes["features"] = {"source": "external", "external": {"folder": folder}}
    wrong = f"config.yaml: {key}: {tmp_path}/in/{file}: Snakemake takes <b> for a path variable"
    with pytest.raises(InputError, match=f"^{re.escape(wrong)}; rename it$"):
        planned(changes)


def test_a_file_of_the_folder_itself_is_no_flag(planned, tmp_path, monkeypatch):
    for name in ("-x.mp4", "y.mp4", "-x.csv", "y.csv"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    plan = planned({"dataset": {"videos": ".", "annotations": "."}})
    assert plan.dataset.paths == {"-x": str(tmp_path / "-x.mp4"), "y": "y.mp4"}
    assert plan.dataset.annotation_files == [str(tmp_path / "-x.csv"), "y.csv"]


def test_the_demo_brings_its_videos_and_annotations(planned):
    plan = planned({"demo": {"videos": 6}, "dataset": {"videos_per_shard": 2}})
    assert plan.dataset.videos == [f"demo_{number:03d}" for number in range(6)]
    assert plan.dataset.annotation_files == ["results/dataset/demo/annotations.json"]
    shard, videos = next(iter(plan.dataset.shards.items()))
    paths = plan.dataset.shard_videos(Wildcards(shard=shard))
    assert [path.rpartition("/")[2].partition(".")[0] for path in paths] == videos
    assert plan.dataset.other_videos(Wildcards(shard=shard)) == []
    assert sorted(sum(plan.dataset.shards.values(), [])) == plan.dataset.videos
    assert plan.dataset.passed_over == {}


def test_of_videos_on_this_disk_the_newest_of_a_shard_is_an_input(planned, tmp_path):
    for second, name in enumerate("bca"):
        (tmp_path / f"{name}.mp4").touch()
        os.utime(tmp_path / f"{name}.mp4", (second, second))
    (tmp_path / "notes.csv").touch()
    given = {"videos": str(tmp_path), "annotations": str(tmp_path / "notes.csv")}
    plan, shard = planned({"dataset": {**given, "videos_per_shard": 3}}), Wildcards(shard="0000")
    assert plan.dataset.shard_videos(shard) == [str(tmp_path / "a.mp4")]
    assert plan.dataset.other_videos(shard) == [str(tmp_path / f"{name}.mp4") for name in "bc"]


def test_own_videos_are_found_and_what_is_passed_over_has_its_reason(planned, tmp_path):
    for name in ("a.mp4", "a.avi", "b.mkv", "notes.txt"):
        (tmp_path / name).touch()
    annotations = str(tmp_path / "notes.txt")
    plan = planned({"dataset": {"videos": str(tmp_path), "annotations": annotations}})
    assert plan.dataset.videos == ["a", "b"]
    assert plan.dataset.annotation_files == [annotations]
    assert len(plan.dataset.passed_over) == 1
    assert plan.video_pattern == "a|b"


GIVEN = {"rgb_weights": "a.pt", "flow_weights": "b.pt"}


def test_flags_survive_the_shell():
    section = {"name": "it's a; test", "yes": True, "no": False, "gone": None, "batch_size": 3}
    expected = ["--name=it's a; test", "--yes", "--no-no", "--batch-size=3"]
    assert shlex.split(flags(section)) == expected
    assert flags(section, "batch_size") == "--batch-size=3"


def test_a_further_seed_moves_the_seed_on_and_changes_nothing_else():
    section = {"seed": 5, "epochs": 3}
    assert seeded_flags(section, "mtn") == "--seed=5 --epochs=3"
    assert seeded_flags(section, "mtn-seed3") == "--seed=7 --epochs=3"


@pytest.mark.parametrize(
    ("run", "processes", "launch"),
    [
        ("none-1", 1, ""),
        ("ring-1", 1, ""),
        ("ring-3", 3, "mpiexec -n 3"),
        ("ps-2", 3, "mpiexec -n 3"),  # a server has a process of its own
        ("ps_worker-2", 2, "mpiexec -n 2"),
    ],
)
def test_a_run_starts_its_processes(planned, run, processes, launch):
    ranks = planned({"temporal": {"threads": 2}}).ranks
    wildcards = Wildcards(run=run)
    assert ranks.processes(wildcards) == processes
    assert ranks.threads(wildcards) == 2 * processes
    assert ranks.memory(wildcards) == 1000 + 1000 * processes
    assert ranks.launch(wildcards) == launch


def test_a_single_rank_has_no_flags_of_an_exchange(planned):
    ranks = planned().ranks
    assert ranks.run == "none-1"
    assert ranks.flags(Wildcards(run="none-1")) == ""
    assert ranks.flags(Wildcards(run="ring-2")).startswith("--exchange=ring --ranks=2 --bucket-kib")


def test_timed_runs_have_a_reference_and_keep_the_last_epoch(planned):
    ranks = planned({"scaling": {"exchanges": ["ring", "ps"], "ranks": [2], "epochs": 7}}).ranks
    assert ranks.scaling_runs == ["none-1", "ring-2", "ps-2"]
    assert ranks.scaling_training.items() >= {"epochs": 7, "keep": "last"}.items()


@pytest.mark.parametrize(
    ("section", "values", "readers"),
    [
        ("evaluation", {"baseline": {"seed": 2}}, {"random"}),
        ("evaluation", {"baseline": {"overlap": 0.5}}, {"sliding"}),
        ("evaluation", {"baseline": {"shortest_window": 0.1}}, {"sliding"}),
        ("evaluation", {"baseline": {"window_prior": "none"}}, {"sliding"}),
        ("evaluation", {"baseline": {"tiles": 7}}, {"tiles"}),
        ("evaluation", {"baseline": {"proposals": 90}}, {*BASELINES}),
        ("proposals", {"suppression": {"slope": 0.3}}, {"difference", "tag"}),
        ("proposals", {"suppression": {"keep": 50}}, set()),
    ],
)
def test_a_baseline_has_the_flags_it_reads(planned, section, values, readers):
    before, after = planned().outcomes, planned({section: values}).outcomes
    changed = {
        name
        for name in BASELINES
        for wildcards in (Wildcards(method=name), Wildcards(method=f"{name}-fold2"))
        if before.baseline_flags(wildcards) != after.baseline_flags(wildcards)
    }
    assert changed == readers


@pytest.mark.parametrize(
    ("method", "features", "probabilities"),
    [
        ("difference", ["features.h5"], []),
        ("difference-fold2", ["folds/2/features.h5"], []),
        ("cuts-fold2", ["folds/2/sequences.h5"], []),
        ("random", [], []),
        ("sliding", [], []),
        ("tag-seed3", [], ["origin-seed3"]),
        ("tag-seed2-fold1", [], ["origin-seed2-fold1"]),
    ],
)
def test_a_baseline_looks_at_what_it_groups(planned, method, features, probabilities):
    outcomes, wildcards = planned().outcomes, Wildcards(method=method)
    made = [f"results/temporal/{run}/none-1/probabilities.h5" for run in probabilities]
    assert outcomes.baseline_features(wildcards) == [f"results/features/{x}" for x in features]
    assert outcomes.baseline_probabilities(wildcards) == made


@pytest.mark.parametrize("external", [False, True])
def test_cuts_is_for_those_who_name_it_and_have_videos(config, planned, external):
    assert "cuts" not in planned().outcomes.baselines
    named = {"evaluation": {"baselines": ["random", "cuts", "difference"]}}
    features = SimpleNamespace(external=external)
    made = OutcomesPlan(merged(config, named), [], features, "none-1").baselines
    assert made == (["random"] if external else ["random", "cuts", "difference"])


def bundle_of(outcomes: OutcomesPlan, wildcards: Wildcards) -> str:
    files = SimpleNamespace(model="", network_features="", classifier="", features="")
    made = SimpleNamespace(scorer="scorer.pt", bundle="", events="a/events.json", json="a/b.json")
    chapters, bundle = outcomes.rest(wildcards, files, made).split("--then")[1:]
    assert f"--proposals {made.json if 'mtn' in wildcards.model else made.events}" in chapters
    return bundle


@pytest.mark.parametrize("model", ["mtn", "mtn-seed2", "span", "span-seed2"])
def test_span_has_inputs_of_its_own(planned, model):
    plan = planned({"temporal": {"models": ["mtn", "span"]}})
    outcomes, wildcards = plan.outcomes, Wildcards(model=model)
    span = model.startswith("span")
    name = "sequences" if span else "features"
    assert outcomes.network_features(wildcards) == f"results/features/{name}.h5"
    listed = "events" if span else "proposals"
    assert outcomes.listed(wildcards) == f"results/proposals/{model}/{listed}.json"
    given = shlex.split(bundle_of(outcomes, wildcards))
    assert given[given.index("scorer.pt") - 1] == f"--{'density' if span else 'evaluator'}"
    keys = {flag.partition("=")[0] for flag in given}
    assert ("--considered" in keys) == ("--overlap" in keys) == span
    assert ("--slope" in keys) == ("--boundary-power" in keys) == (not span)
    assert outcomes.evaluated == ["mtn"]
    assert outcomes.models == ["mtn", "span"]
    fold = Wildcards(model=f"{model.removesuffix('-seed2')}-seed2-fold3")
    assert outcomes.network_features(fold) == f"results/features/folds/3/{name}.h5"


def test_stream_has_causal_features_and_a_density_that_sees_a_short_way(planned):
    outcomes = planned({"temporal": {"models": ["span", "stream"]}}).outcomes
    for model in ("stream", "stream-seed2"):
        wildcards = Wildcards(model=model)
        assert outcomes.network_features(wildcards) == "results/features/causal.h5"
        assert "--ahead 1.0" in outcomes.density_flags(wildcards)
        assert "--least" in bundle_of(outcomes, wildcards)
    span = Wildcards(model="span")
    assert "--ahead" not in outcomes.density_flags(span)
    assert "--least" not in bundle_of(outcomes, span)
    fold = Wildcards(model="stream-fold2")
    assert outcomes.network_features(fold) == "results/features/folds/2/causal.h5"


def test_a_plain_run_of_external_features_has_no_video_and_no_bundle(planned, tmp_path):
    (tmp_path / "truth.json").touch()
    np.save(tmp_path / "v1.npy", np.zeros(3))
    plan = planned(
        {
            "dataset": {"videos": None, "annotations": str(tmp_path / "truth.json")},
            "features": {"source": "external", "external": {"folder": str(tmp_path)}},
        }
    )
    assert plan.dataset.videos == []
    assert plan.features.shard_files == ["results/features/shards/external.h5"]
    assert str(tmp_path / "v1.npy") in plan.features.external_files
    assert plan.outcomes.bundles == plan.outcomes.chapters == plan.outcomes.timelines == []
    assert "difference" not in plan.outcomes.baselines
    assert plan.video_pattern == "[^/]+"


def test_timelines_are_spread_over_the_videos(planned):
    plan = planned({"demo": {"videos": 10}, "evaluation": {"timelines": 3}})
    names = [path.rpartition("/")[2] for path in plan.outcomes.timelines]
    assert names == ["demo_000.svg", "demo_003.svg", "demo_006.svg"]
    assert len(plan.outcomes.chapters) == 10 * len(plan.outcomes.models)


def test_the_page_shows_the_last_model_or_the_one_that_is_named(planned):
    last, named = planned(), planned({"report": {"model": "mtn", "page": False}})
    assert last.outcomes.page == ["results/report/index.html"]
    assert last.outcomes.shown == last.outcomes.models[-1] == "span"
    assert last.outcomes.shown_events == ["results/proposals/span/events.json"]
    assert (named.outcomes.page, named.outcomes.shown_events) == ([], [])
    assert "results/evaluation/timelines/mtn/demo_000.svg" in named.outcomes.timelines


def test_a_video_has_its_file_and_copies_that_are_there_are_known(planned, tmp_path, monkeypatch):
    plan = planned({"demo": {"videos": 2}})
    (path,) = plan.dataset.video_file(Wildcards(video="demo_001"))
    assert path.startswith("results/dataset/demo/demo_001.")
    assert plan.dataset.video_file(Wildcards(video="other")) == [NO_FILE]
    assert plan.outcomes.made_copies == []
    monkeypatch.chdir(tmp_path)
    copy = tmp_path / "results/report/videos/demo_001.mp4"
    copy.parent.mkdir(parents=True)
    copy.touch()
    assert planned().outcomes.made_copies == ["results/report/videos/demo_001.mp4"]


def test_chapters_are_left_to_be_named_where_nobody_browses(planned):
    plan = planned({"demo": {"videos": 1001}})
    assert plan.outcomes.chapters == []
    assert plan.outcomes.chaptered == ["{video}"]  # and no output for each
    assert plan.dataset.missing_video(Wildcards(video=plan.dataset.videos[7])) == []
    assert plan.dataset.missing_video(Wildcards(video="other")) == [NO_FILE]


def test_clips_are_kept_where_a_network_sees_them_and_their_knobs_count_only_there(planned):
    other = {"video": {"frames": {"clip_rate": 10.0}}, "features": {"encoders": {"clip_size": 96}}}
    off, changed = planned().features, planned(other).features
    assert off.frames["clips"] is False
    assert (off.frames, off.encoders) == (changed.frames, changed.encoders)
    encoders = {"clip_encoder": "i3d", "clip_weights": "my_i3d.pt", "clip_size": 96}
    on = planned(other | {"features": {"encoders": encoders}}).features
    seen = {"clips": True, "clip_rate": 10.0, "clip_side": 128}
    assert on.frames == off.frames | seen
    assert on.encoders["clip_size"] == 96
    assert on.weights == ["my_i3d.pt"]


@pytest.mark.parametrize(
    ("features", "side"),
    [
        ({}, 224),
        ({"encoders": {"input_size": 112}}, 112),
        ({"encoders": {"mover": False}}, 0),
        ({"source": "finetuned"}, 0),
        ({"source": "scores"}, 0),
        ({"source": "motion"}, 0),
    ],
)
def test_squares_are_as_large_as_the_network_sees_where_they_are_encoded(planned, features, side):
    plan = planned({"features": features}).features
    assert plan.frames["mover_side"] == side
    assert plan.encoders["mover"] is (side > 0)


def test_frames_have_the_flows_that_trained_classifiers_see(planned):
    scores = {"features": {"source": "scores"}, "recognition": {"store": {"stack": 7}}}
    assert planned().features.frames["stack"] == 1
    trained = planned(scores).features
    assert trained.frames["stack"] == 7
    streams = ("rgb", "flow")
    assert trained.weights == [f"results/recognition/{x}/model.safetensors" for x in streams]
    given = planned({"features": {"encoders": GIVEN, "source": "scores"}}).features
    assert given.frames["stack"] == 1
    assert given.weights == ["a.pt", "b.pt"]


@pytest.mark.parametrize(
    ("changes", "folder"),
    [
        ({}, "new/"),
        ({"features": {"source": "scores"}}, ""),  # of all videos' segments classifiers learn
        ({"features": {"source": "scores", "encoders": GIVEN}}, "new/"),
        ({"features": {"source": "finetuned"}}, ""),
    ],
)
def test_features_are_made_of_the_frames_of_new_videos_where_others_may_stand(
    planned, changes, folder
):
    features = planned(changes).features
    assert features.frames_file == f"results/video/frames/{folder}{{shard}}.h5"
    assert features.flow_file == f"results/video/flow/{folder}{{shard}}.h5"
    recipe = ["results/features/recipe.json"]
    assert features.recipe(Wildcards(shard="0000")) == (recipe if folder else [])
    # whoever asks for the frames of all videos has them
    inputs = SimpleNamespace(recipe="a place/recipe.json")
    assert features.recipe_flag(Wildcards(shard="0000", new=""), inputs) == ""
    named = features.recipe_flag(Wildcards(shard="0000", new="new/"), inputs)
    assert named == "--recipe 'a place/recipe.json'"


def test_learners_of_one_process_are_started_like_any_command(planned):
    wildcards = Wildcards(stream="flow")
    together = planned({"recognition": {"learners": 3}}).recognition
    assert together.processes(wildcards) == 3
    assert together.launch(wildcards) == "mpiexec -n 3"
    alone = planned({"recognition": {"learners": 3, "in_process": True}}).recognition
    assert alone.processes(wildcards) == 1
    assert alone.launch(wildcards) == ""
    assert alone.memory(wildcards) == together.memory(wildcards)


def test_flow_starts_from_the_rgb_network_of_its_own_run(planned):
    classifier, folder = planned().recognition.rgb_classifier, "results/recognition"
    assert classifier(Wildcards(stream="rgb")) == []
    assert classifier(Wildcards(stream="flow")) == [f"{folder}/rgb/model.safetensors"]
    named = Wildcards(stream="flow", learning="aavg4-epoch-2-seed2")
    run = f"{folder}/runs/aavg3-epoch-2-seed2"
    assert classifier(named) == [f"{run}/rgb/model.safetensors"]


OWN_FLOW = {
    "training": {"network": "resnet152", "batch_size": 32, "aavg": ["average_state"]},
    "weights": "IMAGENET1K_V1",
    "flow": {"network": "bn_inception", "batch_size": 64, "epochs": 7, "weights": "inception.pth"},
}


def test_flow_has_a_network_a_batch_and_weights_of_its_own(planned):
    plan = planned({"recognition": OWN_FLOW, "features": {"source": "scores"}})
    recognition = plan.recognition
    rgb, flow = (recognition.flags(Wildcards(stream=stream)) for stream in ("rgb", "flow"))
    assert {"--network=resnet152", "--batch-size=32", "--epochs=20"} <= {*shlex.split(rgb)}
    assert {"--network=bn_inception", "--batch-size=64", "--epochs=7"} <= {*shlex.split(flow)}
    weights = {"rgb": ("IMAGENET1K_V1", []), "flow": ("inception.pth", ["inception.pth"])}
    for stream, (name, files) in weights.items():
        assert recognition.weights_flags(Wildcards(stream=stream)) == f"--weights={name}"
        assert recognition.weights(Wildcards(stream=stream)) == files
    # runs of the papers' experiments too
    named = Wildcards(stream="flow", learning="aavg3-k4-2")
    assert "--network=bn_inception" in shlex.split(recognition.flags(named))
    # the features are the scores of these two networks
    encoders = plan.features.encoders
    assert (encoders["rgb_encoder"], encoders["flow_encoder"]) == ("resnet152", "bn_inception")


def test_flow_is_as_rgb_where_it_has_nothing_of_its_own(planned):
    changed = {"training": {"network": "resnet18"}, "weights": "r18.pth"}
    recognition = planned({"recognition": changed}).recognition
    flags = [recognition.flags(Wildcards(stream=stream)) for stream in ("rgb", "flow")]
    assert flags[0] == flags[1]
    assert "--network=resnet18" in flags[0]
    assert recognition.weights(Wildcards(stream="flow")) == ["r18.pth"]


def test_trimmed_clips_are_listed_by_shard(planned, tmp_path):
    for kind in ("walk", "stand"):
        (tmp_path / kind).mkdir()
        for number in range(3):
            (tmp_path / kind / f"v {number}.mp4").write_bytes(b"x")
    recognition = planned({"recognition": {"clips": str(tmp_path)}}).recognition
    assert recognition.trimmed
    given = [recognition.shard_flags(Wildcards(clip_shard=shard)) for shard in recognition.shards]
    clips = [flag.removeprefix("--shard-clips=") for flag in shlex.split(" ".join(given))]
    assert sorted(clips) == sorted(recognition.clips)
    shard = next(iter(recognition.shards))
    rows = recognition.shard_rows(Wildcards(clip_shard=shard))
    assert {row.split()[0] for row in rows} <= {"walk", "stand"}
    assert len(recognition.clip_files) == 6
