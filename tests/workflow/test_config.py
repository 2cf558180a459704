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
from actionspan.workflow.config import full_text, page_text, sections_text, short_text
from actionspan.workflow.features import FeaturesPlan, encoders_of
from actionspan.workflow.plan import Plan
from actionspan.workflow.schema import build_schema
from actionspan.workflow.sections import OURS, PLUGGED, defaults, fill_in, plain
from workflow.conftest import merged

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "workflow/schemas/config.schema.yaml"
EXAMPLES = [ROOT / "config.yaml", *sorted((ROOT / "examples").glob("*.yaml"))]

FULL = yaml.safe_load(full_text())
KNOBS = {f"{name}.{knob.name}": knob for name, section in OURS.items() for knob in section.knobs}


def load(path: Path) -> dict:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def section(config: dict, name: str) -> dict:
    for key in name.split("."):
        config = config[key]
    return config


def with_values(changes: dict) -> dict:
    config = defaults()
    for key, value in changes.items():
        *parents, last = key.split(".")
        (section(config, ".".join(parents)) if parents else config)[last] = value
    return config


def with_value(key: str, value) -> dict:
    return with_values({key: value})


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
    keywords = {"above": "exclusiveMinimum", "least": "minimum"}
    keywords |= {"below": "exclusiveMaximum", "most": "maximum"}
    whole = build_schema()
    for key, knob in KNOBS.items():
        assert knob.help.strip(" .") == knob.help, key
        schema = whole
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


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_configuration_and_each_example_over_it_is_valid(path):
    assert len(EXAMPLES) > 1
    config = merged(defaults(), load(path))
    check_config(config, path.name)
    check_settings(config, path.name)


TRAINING = "temporal.training"
LONG_PATH = " '…: a file's name has at most 255 bytes, a path 4,095"
AS_TEXT = "YAML reads it as text: write it without quotes"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (f"{TRAINING}.learnin_rate", 0.1, ": unknown key; did you mean learning_rate?"),
        ("datasets", {}, ": unknown key; did you mean dataset?"),
        ("video.xyz", 1, ": unknown key; known keys are processes, keep, zones, "),
        (f"{TRAINING}.epochs", "many", " 'many': a whole number at least 1"),
        (f"{TRAINING}.epochs", 2.5, " 2.5: a whole number at least 1"),
        (f"{TRAINING}.epochs", 20.0, " 20.0: a whole number at least 1"),
        (f"{TRAINING}.seed", True, " True: a whole number from 0 to"),
        (f"{TRAINING}.weight_decay", "1e-5", f" '1e-5': a number at least 0; {AS_TEXT}, and 1e-3"),
        ("dataset.ambiguous", "yes", " 'yes': true or false"),
        ("dataset.videos", 3, " 3: a path"),
        ("video", None, " None: must have keys: {KEY: VALUE}"),
        ("temporal.models", "mtn", " 'mtn': write a list: [mtn]"),
        (f"{TRAINING}.decay_epochs", "20,30", " '20,30': write a list: [20, 30]"),
        ("recognition.experiments.learning_rates", [0.1, "3e-4"], f" [0.1, '3e-4']: …; {AS_TEXT}…"),
        ("recognition.training.aavg", ["momentum"], " 'momentum': one of adaptive_batch, average_"),
        ("dataset.videos_per_shard", 0, " 0: at least 1, or auto"),
        ("dataset.videos_per_shard", "all", " 'all': a whole number at least 1, or auto"),
        ("video.flow.preset", "slow", " 'slow': one of ultrafast, fast, medium"),
        ("temporal.models", ["mtn", "tem"], " 'tem': one of origin, se, dense, mtn"),
        ("temporal.models", [], " []: one or more of origin, se, "),
        ("temporal.models", ["mtn", "mtn"], " ['mtn', 'mtn']: one or more of "),
        (f"{TRAINING}.decay_epochs", [14, 7], " [14, 7]: ris"),
        ("proposals.suppression.epsilon", float("nan"), " nan: a finite number from 1e-06 to 1"),
        # what no run could take
        ("recognition.clips", "a\0b", " 'a\\\\x00b': control characters cannot"),
        ("dataset.videos", "my\nvideos", " 'my\\\\nvideos': control characters"),
        ("dataset.video_info", "a{b}.csv", " 'a{b}.csv': Snakemake takes braces"),
        ("dataset.annotations", "a<b>.csv", " 'a<b>.csv': Snakemake takes <b> for a path variable"),
        ("dataset.videos", "my<results>", " 'my<results>': Snakemake takes <results>"),
        ("dataset.videos", "-v", " '-v': a command takes it for a flag; write the"),
        ("demo.videos", 10**12, " 1000000000000: from 1 to 10000"),
        ("video.flow.bound", -(10**400), " a number of "),
        # Python prints no more than 4,300 digits
        pytest.param("demo.videos", -(10**5000), " a number of ", id="5,000 digits"),
        ("recognition.weights", "é" * 128 + "/a.pt", LONG_PATH),
        ("recognition.weights", "a/" * 2048, LONG_PATH),
        ("temporal.models", yaml.safe_load("&a {a: *a}"), " a dict of 1: one"),
        ("dataset.format", "xml", " 'xml': one of auto, activitynet"),
    ],
)
def test_a_wrong_key_or_value_is_one_line(key, value, expected):
    line = message(with_value(key, value))
    start, *inside = expected.split("…")
    assert line.startswith(key + start)
    assert all(part in line for part in inside)
    assert len(line) < 500


def test_the_first_key_that_is_missing_or_unknown_is_named():
    config = with_value("video.processes", 0)
    for key, shown in (("two\nlines", "two\\nlines"), (7, "7")):
        config["demo"] = {**defaults()["demo"], key: 1}
        assert message(config).startswith(f"demo.{shown}: unknown key")
    config = defaults()
    del config["video"]["flow"]["bound"]
    assert message(config) == "video.flow.bound: missing"
    del config["video"]
    assert message(config) == "video: missing"


ENCODERS = "features.encoders"
SCORES, TUNED, MOTION = ({"features.source": name} for name in ("scores", "finetuned", "motion"))
CLIPS = {f"{ENCODERS}.clip_encoder": "hf:a/b"}
NO_TUNING = ".*nothing can tune; leave flow out"
RECOGNITION, TRANSFER = "recognition.training", {"recognition.training.aavg": ["transfer"]}
OWN_RGB = {"recognition.weights": "r18.pth", f"{RECOGNITION}.network": "resnet18"}
FLOW, NO_TRANSFER = "recognition.flow", "recognition.flow: .*transfer"


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"demo.longest_seconds": 10}, "demo: longest_seconds 10: at least short.*$"),
        ({"features.source": "external"}, None),  # needs no encoder
        ({"mpi.launcher": "torchrun --nproc-per-node={ranks}"}, None),  # braces are no wildcards
        # scores are of classifiers that are given or trained here
        (SCORES, None),
        (SCORES | {f"{ENCODERS}.flow_gain": 2.0}, f"{ENCODERS}.flow_gain: must be 1"),
        (SCORES | {f"{ENCODERS}.flow_histogram": True}, f"{ENCODERS}: .*a flow histogram"),
        (SCORES | {f"{ENCODERS}.rgb_weights": "t.pt"}, ".*is scores: flow_weights must name"),
        (MOTION, None),
        (MOTION | {f"{ENCODERS}.clip_encoder": "i3d"}, ".*source is motion, which has no streams"),
        # what tuned encoders cannot give
        (TUNED | {f"{ENCODERS}.clip_encoder": "i3d"}, f"{ENCODERS}.clip_encoder: i3d does"),
        (TUNED | {"evaluation.folds": 5}, "evaluation.folds: 5 does not go with .*: finetuned"),
        (TUNED | {"video.keep": False}, "video.keep: must be true with features.source: finetuned"),
        (TUNED | {"finetune.store.height": 64}, "finetune.store: 64 × 340 pixels are fewer .*112"),
        (TUNED | {"finetune.ranks": 2}, "finetune: exchange none with ranks 2"),
        (TUNED | {"finetune.sampler": "fixed"}, None),
        (TUNED | {"finetune.keep_ratio": "auto"}, None),
        *(
            (TUNED | {f"{ENCODERS}.flow_encoder": name, "finetune.streams": [stream]}, fault)
            for name in ("flow_histogram", "none")
            for stream, fault in (("rgb", None), ("flow", NO_TUNING))
        ),
        ({"finetune.sampler": "importance", "finetune.execution": "split"}, "finetune: sampler"),
        ({"finetune.sampler": "diverse_gradient", "finetune.way": "bank"}, "finetune: sampler"),
        ({"finetune.keep_ratio": "auto", "finetune.execution": "replay"}, "finetune: keep_ratio"),
        ({"finetune.keep_ratio": "auto", "finetune.sampler": "importance"}, "finetune: keep_"),
        # clips are kept as large as networks see them
        (CLIPS, ".*clip_side: 128: hf:a/b would see enlarged"),
        (CLIPS | {"video.frames.clip_side": 64}, ".*clip_side: 64: hf:a/b would see enlarged"),
        (CLIPS | {"video.frames.clip_side": 256}, None),
        # what classifiers start from
        ({f"{RECOGNITION}.network": "resnet50"}, "recognition.weights: no .* resnet50; give a"),
        (
            OWN_RGB | {f"{RECOGNITION}.pretrained": False},
            "recognition.weights: r18.pth .*trained: fal",
        ),
        (
            {f"{FLOW}.network": "resnet34", f"{RECOGNITION}.aavg": []},
            f"{FLOW}.weights: no weights come with resnet34; give a checkp",
        ),
        (TRANSFER | {f"{FLOW}.network": "bn_inception", f"{FLOW}.weights": "a.pth"}, NO_TRANSFER),
        (TRANSFER | {f"{FLOW}.weights": "a.pth"}, NO_TRANSFER),
        (
            {f"{FLOW}.batch_size": 65, f"{RECOGNITION}.aavg": []},
            f"{FLOW}: batch_cap 64: at least batch_size, 65",
        ),
        # the packaged weights do for flow next to an RGB network with its own
        (OWN_RGB | {f"{RECOGNITION}.aavg": [], f"{FLOW}.network": "efficientnet_lite0"}, None),
    ],
)
def test_values_that_contradict_each_other_are_one_line(changes, fault):
    config = with_values(changes)
    check_config(config, "my.yaml")  # each value is right by itself
    if fault is None:
        check_settings(config, "my.yaml")
    else:
        with pytest.raises(InputError, match=f"^my.yaml: {fault}"):
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
    flow = "results/finetune/flow/model.safetensors"
    assert FeaturesPlan(config, ["s"]).weights == ["own.pt", flow]


def test_an_encoder_may_be_one_that_other_libraries_bring():
    key = "features.encoders.rgb_encoder"
    for name in ("timm:vit_small_patch14_dinov2", "hf:openai/clip-vit-base-patch32", "./mine"):
        check_config(with_value(key, name), "my.yaml")
    line = message(with_value(key, "resnet19"))
    assert line.startswith(f"{key} 'resnet19': one of efficientnet_lite0, efficientnet_lite2, ")
    assert line.endswith(", timm:MODEL, hf:ORGANISATION/MODEL or a path")


def given(*words: str) -> dict:
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
        ("evaluation={folds: {a: 1}}", "evaluation.folds a dict of 1: a whole number from 0"),
        ("report={page: maybe}", "report.page 'maybe': true or false"),
        ("temporal={training: {feature_noise: x}}", "temporal.training.feature_noise 'x': a numb"),
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


def test_a_configuration_that_leaves_all_out_is_what_is_printed_and_what_is_given_stays():
    assert defaults() == merged(FULL, yaml.safe_load(sections_text(PLUGGED)))
    config: dict = {"demo": {"videos": 3}, "video": "wrong", "unknown": {"key": 1}}
    fill_in(config)
    assert (config["demo"]["videos"], config["video"]) == (3, "wrong")
    assert config["unknown"] == {"key": 1}
    assert config["demo"]["seed"] == defaults()["demo"]["seed"]
