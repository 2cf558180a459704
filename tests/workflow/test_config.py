"""The configuration, its schema and the settings agree, and each mistake is one line that helps."""

import dataclasses
import re
from pathlib import Path

import pytest
import yaml
from snakemake.cli import parse_config

from actionspan.cli import main
from actionspan.errors import InputError
from actionspan.settings import from_mapping
from actionspan.workflow.checking import check_config, check_settings, read_given
from actionspan.workflow.config import full_text, page_text, short_text
from actionspan.workflow.features import FeaturesPlan, encoders_of
from actionspan.workflow.plan import Plan
from actionspan.workflow.schema import build_schema
from actionspan.workflow.sections import OURS, defaults, fill_in, plain

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "workflow/schemas/config.schema.yaml"
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))

FULL = yaml.safe_load(full_text())
KNOBS = {f"{name}.{knob.name}": knob for name, section in OURS.items() for knob in section.knobs}


def load(path: Path) -> dict:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def section(config: dict, name: str) -> dict:
    for key in name.split("."):
        config = config[key]
    return config


def with_value(key: str, value) -> dict:
    """Return the defaults with one value changed."""
    config = defaults()
    *parents, last = key.split(".")
    (section(config, ".".join(parents)) if parents else config)[last] = value
    return config


def merged(base: dict, more: dict) -> dict:
    """Return `base` with the values of `more` laid over it, as Snakemake merges files."""
    made = dict(base)
    for key, value in more.items():
        inner = isinstance(value, dict) and isinstance(made.get(key), dict)
        made[key] = merged(made[key], value) if inner else value
    return made


def message(config: dict) -> str:
    with pytest.raises(InputError) as caught:
        check_config(config, "my.yaml")
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith("my.yaml: ")
    return line.removeprefix("my.yaml: ")


def test_the_schema_file_is_what_the_settings_say(capsys):
    assert load(SCHEMA) == build_schema(), "run `make config`"
    assert main(["schema"]) == 0
    assert capsys.readouterr().out == SCHEMA.read_text(encoding="utf-8")


def test_the_configuration_is_valid():
    config = defaults()
    check_config(config, "config.yaml")
    check_settings(config, "config.yaml")


@pytest.mark.parametrize("digits", [400, 5000])  # Python prints no more than 4,300
@pytest.mark.parametrize("key", ["video.flow.bound", "demo.videos", "evaluation.folds"])
def test_a_number_that_is_too_large_for_any_use_is_one_line(key, digits):
    line = message(with_value(key, -(10**digits)))
    assert line.startswith(f"{key} a number of ")
    assert len(line) < 200


@pytest.mark.parametrize("text", ["x" * 256, "é" * 128 + "/a.pt", "a/" * 2048])
def test_a_path_that_no_file_can_have_is_one_line(text):
    line = message(with_value("recognition.weights", text))
    assert line.startswith("recognition.weights '")
    assert line.endswith(": a file's name has at most 255 bytes, a path 4,095")
    assert len(line) < 500


def test_a_value_that_holds_itself_is_one_line():
    own = yaml.safe_load("&a {a: *a}")
    assert message(with_value("temporal.training", own)).startswith("temporal.training.a: ")
    assert message(with_value("temporal.models", own)).startswith(
        "temporal.models a dict of 1: one"
    )


def test_the_launcher_may_say_where_the_number_of_ranks_goes():
    check_config(with_value("mpi.launcher", "torchrun --nproc-per-node={ranks}"), "my.yaml")


@pytest.mark.parametrize(
    ("flags", "text", "file"),
    [
        ([], short_text, "config.yaml"),
        (["--full"], full_text, None),
        (["--page"], page_text, "docs/configuration.md"),
    ],
)
def test_a_file_is_what_the_settings_say(capsys, flags, text, file):
    assert file is None or (ROOT / file).read_text() == text(), "run `make config`"
    assert main(["config", *flags]) == 0
    assert capsys.readouterr().out == text()


def test_config_yaml_has_the_settings_that_matter_at_their_defaults():
    given = load(ROOT / "config.yaml")
    assert {"videos", "annotations"} < set(given["dataset"])
    keys = [key for key in KNOBS if _has(given, key)]
    assert len(keys) == 2 + 10
    assert all(section(given, key) == section(defaults(), key) for key in keys)
    fill_in(given)
    assert given == defaults()


def _has(config: dict, key: str) -> bool:
    for word in key.split("."):
        if word not in config:
            return False
        config = config[word]
    return True


def test_the_page_has_each_section_once_and_together_they_are_all():
    blocks = re.findall(r"## (\w+)\n\n```yaml\n(.*?)```", page_text(), re.DOTALL)
    assert [name for name, _ in blocks] == list(yaml.safe_load(full_text()))
    together: dict = {}
    for _, block in blocks:
        together |= yaml.safe_load(block)
    assert together == yaml.safe_load(full_text())


@pytest.mark.parametrize("name", OURS)
def test_a_section_has_the_keys_and_defaults_of_its_settings(name):
    given = section(FULL, name)
    inner = {key.split(".")[-1] for key in OURS if key.rpartition(".")[0] == name}
    defaults = {}
    for settings in OURS[name].settings:
        made = from_mapping(settings, given)
        assert made == settings()
        defaults |= dataclasses.asdict(made)
    # said by other keys: features.source, clip_encoder and mover of features.encoders, and
    # dataset.on_bad_input
    said = {"features.encoders": {"source"}, "video": {"on_bad_input"}}
    said["video.frames"] = {"clips", "mover_side"}
    elsewhere = said.get(name, set())
    assert set(given) - inner == set(defaults) - elsewhere


def test_the_configuration_is_a_page_to_read():
    text = full_text()
    for line in text.splitlines():
        assert len(line) <= 110
        assert line == line.rstrip()
    words = " ".join(line.partition("# ")[2] for line in text.splitlines())
    words = " ".join(words.split())
    for knob in KNOBS.values():
        assert knob.text in words
        assert all(re.search(rf"\b{choice}\b", words) for choice in knob.choices)


def test_every_key_has_a_help_and_every_bound_is_in_the_schema():
    keywords = {
        "above": "exclusiveMinimum",
        "least": "minimum",
        "below": "exclusiveMaximum",
        "most": "maximum",
    }
    for key, knob in KNOBS.items():
        assert knob.help.strip(" .") == knob.help, key
        schema = build_schema()
        for word in key.split("."):
            schema = schema["properties"][word]
        assert schema["description"] == knob.text
        if knob.also is not None:
            also, schema = schema["anyOf"]
            assert also == {"const": knob.also}
        if knob.pattern:
            schema, like = schema["anyOf"]
            assert like["pattern"] == f"^({knob.pattern})$"
        if knob.many:
            assert (schema["minItems"], schema["uniqueItems"]) == (knob.fewest, True)
            schema = schema["items"]
        for bound, word in keywords.items():
            assert schema.get(word) == getattr(knob, bound), key
        if knob.choices:
            assert schema["enum"] == [*knob.choices, *[None] * knob.optional]


@pytest.mark.parametrize("key", [key for key, knob in KNOBS.items() if knob.bounds])
def test_a_number_out_of_bounds_is_refused(key):
    knob = KNOBS[key]
    bounds = {knob.above: 0, knob.least: -1, knob.below: 0, knob.most: 1}
    for bound, step in bounds.items():
        if bound is None:
            continue
        line = message(with_value(key, [bound + step] if knob.many else bound + step))
        assert line.startswith(f"{key} ")
        assert line.endswith((knob.bounds, f"{knob.bounds}, one or more"))


def test_there_are_examples():
    assert EXAMPLES


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_valid_over_the_configuration(path):
    config = merged(defaults(), load(path))
    check_config(config, path.name)
    check_settings(config, path.name)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (
            "temporal.training.learnin_rate",
            0.1,
            "temporal.training.learnin_rate: unknown key; did you mean learning_rate?",
        ),
        ("datasets", {}, "datasets: unknown key; did you mean dataset?"),
        ("video.xyz", 1, "video.xyz: unknown key; known keys are processes, keep, decoder, "),
        (
            "temporal.training.epochs",
            "many",
            "temporal.training.epochs 'many': a whole number at least 1",
        ),
        (
            "temporal.training.epochs",
            2.5,
            "temporal.training.epochs 2.5: a whole number at least 1",
        ),
        (
            "temporal.training.epochs",
            20.0,
            "temporal.training.epochs 20.0: a whole number at least 1",
        ),
        ("temporal.training.seed", True, "temporal.training.seed True: a whole number from 0 to"),
        (
            "temporal.training.weight_decay",
            "1e-5",
            "temporal.training.weight_decay '1e-5': a number at least 0; YAML reads it as text: "
            "write it without quotes, and 1e-3 as 1.0e-3",
        ),
        ("dataset.ambiguous", "yes", "dataset.ambiguous 'yes': true or false"),
        ("dataset.videos", 3, "dataset.videos 3: a path"),
        ("video", None, "video None: must have keys: {KEY: VALUE}"),
        (
            "temporal.models",
            "mtn",
            "temporal.models 'mtn': write a list: [mtn]",
        ),
        (
            "temporal.training.decay_epochs",
            "20,30",
            "temporal.training.decay_epochs '20,30': write a list: [20, 30]",
        ),
        (
            "recognition.experiments.learning_rates",
            [0.1, "3e-4"],
            "recognition.experiments.learning_rates [0.1, '3e-4']: rising numbers, each above 0, "
            "one or more; YAML reads it as text: write it without quotes",
        ),
        (
            "recognition.training.aavg",
            ["momentum"],
            "recognition.training.aavg 'momentum': one of adaptive_batch, average_state, ",
        ),
        ("video.flow.bound", 0, "video.flow.bound 0: from 0.01 to 10000"),
        ("demo.shortest_seconds", 1, "demo.shortest_seconds 1: at least 5"),
        (
            "evaluation.protocol.confidence",
            1.0,
            "evaluation.protocol.confidence 1.0: above 0, below 1",
        ),
        (
            "dataset.videos_per_shard",
            -1,
            "dataset.videos_per_shard -1: at least 1, or auto",
        ),
        (
            "video.flow.preset",
            "slow",
            "video.flow.preset 'slow': one of ultrafast, fast, medium",
        ),
        (
            "temporal.models",
            ["mtn", "tem"],
            "temporal.models 'tem': one of origin, se, dense, mtn",
        ),
        ("video.processes", 0, "video.processes 0: from 1 to 4096"),
        ("dataset.validation_fraction", 1.5, "dataset.validation_fraction 1.5: from 0 to 1"),
        (
            "dataset.videos_per_shard",
            0,
            "dataset.videos_per_shard 0: at least 1, or auto",
        ),
        (
            "dataset.videos_per_shard",
            "all",
            "dataset.videos_per_shard 'all': a whole number at least 1, or auto",
        ),
        (
            "temporal.training.decay_epochs",
            [14, 7],
            "temporal.training.decay_epochs [14, 7]: ris",
        ),
        (
            "proposals.suppression.epsilon",
            float("nan"),
            "proposals.suppression.epsilon nan: a finite number from 1e-06 to 1000000",
        ),
        ("temporal.models", [], "temporal.models []: one or more of origin, se, "),
        (
            "temporal.models",
            ["mtn", "mtn"],
            "temporal.models ['mtn', 'mtn']: one or more of ",
        ),
    ],
)
def test_a_wrong_key_or_value_is_one_line(key, value, expected):
    assert message(with_value(key, value)).startswith(expected)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("recognition.clips", "a\0b", "recognition.clips 'a\\\\x00b': control characters cannot"),
        ("dataset.videos", "my\nvideos", "dataset.videos 'my\\\\nvideos': control characters"),
        ("dataset.video_info", "a{b}.csv", "dataset.video_info 'a{b}.csv': Snakemake takes braces"),
        (
            "dataset.annotations",
            "a<b>.csv",
            "dataset.annotations 'a<b>.csv': Snakemake takes <b> for a path variable; rename it",
        ),
        (
            "dataset.videos",
            "my<results>",
            "dataset.videos 'my<results>': Snakemake takes <results>",
        ),
        ("dataset.videos", "-v", "dataset.videos '-v': a command takes it for a flag; write the"),
        ("demo.videos", 10**12, "demo.videos 1000000000000: from 1 to 10000"),
        ("temporal.ranks", 10**12, "temporal.ranks 1000000000000: from 1 to 4096"),
        ("temporal.training.hidden", 10**12, "temporal.training.hidden 1000000000000: from 1 to"),
    ],
)
def test_what_no_run_could_take_is_one_line(key, value, expected):
    assert message(with_value(key, value)).startswith(expected)


def test_an_unknown_key_with_a_newline_is_one_line():
    config = defaults()
    config["video"]["two\nlines"] = 1
    assert message(config).startswith("video.two\\nlines: unknown key")


def test_a_missing_key_is_named():
    config = defaults()
    del config["video"]["flow"]["bound"]
    assert message(config) == "video.flow.bound: missing"
    del config["video"]
    assert message(config) == "video: missing"


def test_keys_need_not_be_text():
    config = defaults()
    config["video"][7] = 1
    assert message(config).startswith("video.7: unknown key")


def test_the_first_mistake_in_the_order_of_keys_is_named():
    config = with_value("video.processes", 0)
    config["dataset"]["format"] = "xml"
    assert message(config).startswith("dataset.format 'xml': one of auto, activitynet")


def test_values_that_contradict_each_other_are_one_line():
    config = with_value("demo.longest_seconds", 10)
    check_config(config, "my.yaml")
    with pytest.raises(InputError, match=r"^my.yaml: demo: longest_seconds 10: at least short.*$"):
        check_settings(config, "my.yaml")


def test_external_features_need_no_encoder():
    check_settings(with_value("features.source", "external"), "my.yaml")


def test_scores_are_of_classifiers_that_are_given_or_trained_here():
    config = with_value("features.source", "scores")
    check_settings(config, "my.yaml")
    config["features"]["encoders"]["flow_gain"] = 2.0
    with pytest.raises(InputError, match=r"my.yaml: features.encoders.flow_gain: must be 1"):
        check_settings(config, "my.yaml")
    config["features"]["encoders"].update(flow_gain=1.0, flow_histogram=True)
    with pytest.raises(InputError, match=r"my.yaml: features.encoders: .*a flow histogram"):
        check_settings(config, "my.yaml")
    config["features"]["encoders"].update(flow_histogram=False, rgb_weights="trained.pt")
    with pytest.raises(InputError, match="source is scores: flow_weights must name"):
        check_settings(config, "my.yaml")


def test_motion_has_no_streams():
    config = with_value("features.source", "motion")
    check_settings(config, "my.yaml")
    assert not encoders_of(config)["mover"]
    config["features"]["encoders"]["clip_encoder"] = "i3d"
    wanted = "my.yaml: features.encoders: clip_encoder: source is motion, which has no streams"
    with pytest.raises(InputError, match=wanted):
        check_settings(config, "my.yaml")


def test_trained_classifiers_are_used_as_they_were_trained():
    config = with_value("features.source", "scores")
    config["recognition"]["training"].update(network="resnet18", input_size=112, pretrained=False)
    encoders = encoders_of(config)
    assert encoders["input_size"] == 112
    assert encoders["flow_encoder"] == "resnet18"
    assert encoders["rgb_weights"] == "results/recognition/rgb/model.safetensors"
    config["features"]["source"] = "pooled"
    assert encoders_of(config) == config["features"]["encoders"]


def test_tuned_encoders_see_pictures_as_they_were_tuned():
    config = with_value("features.source", "finetuned")
    config["finetune"].update(input_size=96, streams=["rgb"])
    config["features"]["encoders"]["crop"] = "centre"
    check_settings(config, "my.yaml")
    encoders = encoders_of(config)
    assert (encoders["input_size"], encoders["crop"]) == (96, "squash")
    assert encoders["rgb_weights"] == "results/finetune/rgb/model.safetensors"
    # flow stays what it was, and is not started from tuned RGB
    assert encoders["flow_weights"] == "packaged"
    config["features"]["encoders"]["rgb_weights"] = "mine.pt"
    assert encoders_of(config)["flow_weights"] == "mine.pt"
    config["finetune"]["streams"] = ["rgb", "flow"]
    assert encoders_of(config)["flow_weights"] == "results/finetune/flow/model.safetensors"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "features.encoders.clip_encoder",
            "i3d",
            "features.encoders.clip_encoder: i3d does",
        ),
        ("evaluation.folds", 5, "evaluation.folds: 5 does not go with features.source: finetuned"),
        ("video.keep", False, "video.keep: must be true with features.source: finetuned"),
        ("finetune.store.height", 64, "finetune.store: 64 × 340 pixels are fewer than .*, 112"),
        ("finetune.ranks", 2, "finetune: exchange none with ranks 2"),
        ("finetune.sampler", "fixed", None),
        ("finetune.keep_ratio", "auto", None),
    ],
)
def test_what_tuned_encoders_cannot_give_is_one_line(key, value, message):
    config = with_value(key, value)
    config["features"]["source"] = "finetuned"
    if message is None:
        check_settings(config, "my.yaml")
        return
    with pytest.raises(InputError, match=f"my.yaml: {message}"):
        check_settings(config, "my.yaml")


def test_tuned_networks_of_other_libraries_are_folders_that_wait_for_their_tuning():
    config = with_value("features.source", "finetuned")
    config["features"]["encoders"] |= {"rgb_encoder": "timm:vit", "rgb_weights": "own.pt"}
    check_settings(config, "my.yaml")
    encoders = encoders_of(config)
    assert encoders["rgb_encoder"] == "results/finetune/rgb/tuned_encoder"
    assert encoders["rgb_weights"] is None
    tuned = ["results/finetune/rgb/model.safetensors", "results/finetune/rgb/tuned_encoder"]
    assert FeaturesPlan(config, ["s"]).weights == tuned
    mine = with_value("features.source", "finetuned")
    mine["features"]["encoders"]["rgb_encoder"] = tuned[1]
    with pytest.raises(InputError, match="is written by the tuning; copy it elsewhere first"):
        check_settings(mine, "my.yaml")
    config["finetune"]["streams"] = ["flow"]
    assert encoders_of(config)["rgb_encoder"] == "timm:vit"
    assert FeaturesPlan(config, ["s"]).weights == [
        "own.pt",
        "results/finetune/flow/model.safetensors",
    ]


def test_clips_are_kept_as_large_as_networks_see_them():
    config = with_value("features.encoders.clip_encoder", "hf:a/b")
    for side in (128, 64):
        config["video"]["frames"]["clip_side"] = side
        with pytest.raises(InputError, match=f"clip_side: {side}: hf:a/b would see enlarged"):
            check_settings(config, "my.yaml")
    config["video"]["frames"]["clip_side"] = 256
    check_settings(config, "my.yaml")


@pytest.mark.parametrize("encoder", ["flow_histogram", "none"])
def test_what_is_no_network_of_flow_cannot_be_tuned(encoder):
    config = with_value("features.source", "finetuned")
    config["features"]["encoders"]["flow_encoder"] = encoder
    config["finetune"]["streams"] = ["rgb"]
    check_settings(config, "my.yaml")
    config["finetune"]["streams"] = ["flow"]
    with pytest.raises(InputError, match="nothing can tune; leave flow out"):
        check_settings(config, "my.yaml")


@pytest.mark.parametrize(
    "changed",
    [
        {"sampler": "importance", "execution": "split"},
        {"sampler": "diverse_gradient", "way": "bank"},
        {"keep_ratio": "auto", "execution": "replay"},
        {"keep_ratio": "auto", "sampler": "importance"},
    ],
)
def test_settings_of_a_tuning_that_contradict_each_other_are_one_line(changed):
    config = with_value("features.source", "pooled")
    config["finetune"].update(changed)
    with pytest.raises(InputError, match="my.yaml: finetune: (sampler|keep_ratio)"):
        check_settings(config, "my.yaml")


@pytest.mark.parametrize(
    ("training", "weights", "message"),
    [
        ({"network": "resnet50"}, None, "weights: no weights come with resnet50; give a checkp"),
        ({"pretrained": False}, "mine.pt", "weights: mine.pt is not used with .*pretrained: fal"),
    ],
)
def test_what_classifiers_start_from_is_checked_before_anything_is_made(training, weights, message):
    config = with_value("recognition.weights", weights)
    config["recognition"]["training"].update(training)
    with pytest.raises(InputError, match="my.yaml: recognition." + message):
        check_settings(config, "my.yaml")


@pytest.mark.parametrize(
    ("flow", "aavg", "message"),
    [
        ({"network": "resnet34"}, [], "flow.weights: no weights come with resnet34; give a checkp"),
        ({"network": "bn_inception", "weights": "a.pth"}, ["transfer"], "flow: .*transfer"),
        ({"weights": "a.pth"}, ["transfer"], "flow: .*transfer"),
        ({"batch_size": 65}, [], "flow: batch_cap 64: at least batch_size, 65"),
    ],
)
def test_what_flow_has_of_its_own_is_checked_too(flow, aavg, message):
    config = with_value("recognition.training.aavg", aavg)
    config["recognition"]["flow"].update(flow)
    check_config(config, "my.yaml")
    with pytest.raises(InputError, match="my.yaml: recognition." + message):
        check_settings(config, "my.yaml")


def test_the_packaged_weights_do_for_flow_beside_an_rgb_network_with_its_own():
    config = with_value("recognition.weights", "r18.pth")
    config["recognition"]["training"].update(network="resnet18", aavg=[])
    config["recognition"]["flow"]["network"] = "efficientnet_lite0"
    check_settings(config, "my.yaml")


def test_an_encoder_may_be_one_that_other_libraries_bring():
    key = "features.encoders.rgb_encoder"
    for name in ("timm:vit_small_patch14_dinov2", "hf:openai/clip-vit-base-patch32", "./mine"):
        check_config(with_value(key, name), "my.yaml")
    line = message(with_value(key, "resnet19"))
    assert line.startswith(
        f"{key} 'resnet19': one of efficientnet_lite0, efficientnet_lite2, resnet18,"
    )
    assert line.endswith(", timm:MODEL, hf:ORGANISATION/MODEL or a path")


def given(*words: str) -> dict:
    """Return what Snakemake makes of --config."""
    return parse_config(list(words))


def as_given(key: str, value) -> dict:
    *parents, last = key.split(".")
    text = yaml.safe_dump({last: value}, default_flow_style=True, width=10**6).strip()
    for word in reversed(parents[1:]):
        text = f"{{{word}: {text}}}"
    return given(f"{parents[0]}={text}")


@pytest.mark.parametrize("name", OURS)
def test_each_default_comes_back_from_the_command_line_with_its_type(name):
    for knob in OURS[name].knobs:
        key, value = f"{name}.{knob.name}", plain(knob.default)
        config = with_value(key, "replaced")
        read_given(config, as_given(key, value), "--config")
        found = section(config, name)[knob.name]
        assert (found, type(found)) == (value, type(value)), key
        assert config == defaults()


@pytest.mark.parametrize(
    ("words", "key", "value"),
    [
        (["evaluation={folds: 5}"], "evaluation.folds", 5),
        (["evaluation={folds: 5}", "evaluation={seeds: 2}"], "evaluation.seeds", 2),
        (["report={page: off}"], "report.page", False),
        (["report={page: True}"], "report.page", True),
        (["report={model: }"], "report.model", None),
        (["report={model: ~}"], "report.model", None),
        (["temporal={training: {weight_decay: 1e-3}}"], "temporal.training.weight_decay", 0.001),
        (["temporal={models: [mtn, span]}"], "temporal.models", ["mtn", "span"]),
        (["scaling={ranks: [1, 4]}"], "scaling.ranks", [1, 4]),
        (["recognition={training: {aavg: []}}"], "recognition.training.aavg", []),
        (["dataset={videos_per_shard: 7}"], "dataset.videos_per_shard", 7),
        (["dataset={videos_per_shard: auto}"], "dataset.videos_per_shard", "auto"),
        (["dataset={videos: 2024}"], "dataset.videos", "2024"),  # a folder
        (["mpi={launcher: 'srun --mpi=pmi2'}"], "mpi.launcher", "srun --mpi=pmi2"),
    ],
)
def test_a_value_of_the_command_line_has_the_type_of_its_setting(words, key, value):
    config = merged(defaults(), given(*words))
    read_given(config, given(*words), "--config")
    found = section(config, key.rpartition(".")[0])[key.rpartition(".")[2]]
    assert (found, type(found)) == (value, type(value))
    check_config(config, "config.yaml")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("evaluation={folds: five}", "evaluation.folds 'five': a whole number from 0 to 1000"),
        ("evaluation={folds: 2.5}", "evaluation.folds 2.5: a whole number from 0 to 1000"),
        ("evaluation={folds: -1}", "evaluation.folds -1: from 0 to 1000"),
        ("evaluation={folds: {a: 1}}", "evaluation.folds a dict of 1: a whole number from 0"),
        ("evaluation={folds: '[1'}", "evaluation.folds '[1': a whole number from 0 to 1000"),
        ("report={page: maybe}", "report.page 'maybe': true or false"),
        ("temporal={training: {feature_noise: x}}", "temporal.training.feature_noise 'x': a numb"),
        ("temporal={models: mtn}", "temporal.models 'mtn': write a list: [mtn]"),
        ("scaling={ranks: [1, two]}", "scaling.ranks [1, 'two']: different numbers, each from 1"),
        ("evaluaton={folds: 5}", "evaluaton: unknown key; did you mean evaluation?"),
        ("folds=5", "folds: unknown key; known keys are dataset"),
        ("evaluation=5", "evaluation 5: must have keys: {KEY: VALUE}"),
        ("dataset={videos: 'a{b'}", "dataset.videos 'a{b': "),
    ],
)
def test_a_mistake_of_the_command_line_is_one_line_that_names_it(words, line):
    config = merged(defaults(), given(words))
    with pytest.raises(InputError) as caught:
        Plan(config, "config.yaml", given=given(words))
    assert str(caught.value).startswith(f"--config: {line}")
    assert "\n" not in str(caught.value)


def test_a_mistake_of_a_file_is_said_of_the_file_whatever_the_command_line_gives():
    config = merged(with_value("evaluation.folds", "5"), given("evaluation={seeds: 2}"))
    with pytest.raises(InputError, match="^my.yaml: evaluation.folds '5': a whole number"):
        Plan(config, "my.yaml", given=given("evaluation={seeds: 2}"))
    both = merged(defaults(), given("evaluation={folds: 61}"))
    with pytest.raises(InputError, match=r"^my.yaml \+ --config: evaluation.folds: 61 folds of 36"):
        Plan(both, "my.yaml", given=given("evaluation={folds: 61}"))
