"""The rules of the workflow: none can be stale, and each is where its name says."""

import argparse
import dis
import importlib
import re
import shlex
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from actionspan.workflow.jobs import GROUPS, SHORTEST, ClusterPlan
from actionspan.workflow.sections import fill_in
from actionspan.workflow.steps import source_files, step_module
from actionspan_papers.rules import Experiment, under
from actionspan_papers.rules import experiments as experiments_of

ROOT = Path(__file__).parents[2]
COMMAND = re.compile(
    r"(?:-m actionspan|--then) ((?:papers )?[a-z0-9-]+ [a-z0-9-]+|[a-z0-9-]+ [a-z0-9-]+)"
)
CODE = re.compile(r"code=step\(([^)]+)\)")
# that the plan adds where they are wanted: chapters and the bundle of a model
REST = ["proposals chapters", "proposals bundle"]
RULE = re.compile(r"^ *(use )?rule (\w+)(?: as (\w+) with)?:", re.MULTILINE)
# rules without a command
TARGETS = {"all", "tables", "analysis", "recognition_figures", "folds"}
TARGETS |= {"ring_figures", "partime_figures", "sbp_figures"}


def experiments() -> list[Experiment]:
    """Return the registry that papers.smk makes rules of, for the configuration as it comes."""
    config: dict = {}
    fill_in(config)
    dataset = SimpleNamespace(shards=["0000"], first_fetched=lambda most: ["a.mp4"])
    return experiments_of(config, dataset)


EXPERIMENTS = experiments()


def made_of(loop: str, experiment: Experiment) -> str:
    """Return the text of the rule that the loop over the registry makes of an experiment."""
    files = ", ".join(f'"{path}"' for path in [*experiment.tables.values(), *experiment.files])
    values = {
        "experiment.command": f'"{experiment.command}"',
        "experiment.minutes": str(experiment.minutes),
        "{params.words}": words(experiment),
        "**{under(flag): path for flag, path in experiment.tables.items()}": files,
    }
    for name, value in values.items():
        assert name in loop
        loop = loop.replace(name, value)
    return loop


def words(experiment: Experiment) -> str:
    first = {name: values[0] for name, values in experiment.wildcards.items()}
    given = {name: ["in"] if callable(own) else own for name, own in experiment.inputs.items()}
    made = {under(flag): path for flag, path in experiment.tables.items()}
    made |= {"out_figures": ["a.svg", "a.png"]} if experiment.figure else {}
    wildcards = SimpleNamespace(**first)
    return experiment.words(wildcards, SimpleNamespace(**given), SimpleNamespace(**made), 2)


def rules() -> dict[str, tuple[str, str]]:
    """Return {rule: (its file, its text)}."""
    every = {}
    for path in sorted(ROOT.glob("workflow/rules/*.smk")):
        text, _, loop = path.read_text().partition("for experiment in EXPERIMENTS:\n")
        if loop:
            every |= {each.name: (path.stem, made_of(loop, each)) for each in EXPERIMENTS}
        heads = [*RULE.finditer(text)]
        ends = [*[head.start() for head in heads[1:]], len(text)][: len(heads)]
        for head, end in zip(heads, ends, strict=True):
            every[head[3] or head[2]] = path.stem, with_scoring(text[head.start() : end])
    return every


def with_scoring(text: str) -> str:
    """Return a rule with what two rules of evaluation.smk share written out."""
    shared = (ROOT / "workflow/rules/evaluation.smk").read_text()
    for use, name in (("**SCORES", "SCORES"), ('f"{SCORING}"', "SCORING")):
        (value,) = re.findall(rf"^{name} = (.*?^[)}}])$", shared, re.DOTALL | re.MULTILINE)
        text = text.replace(use, value)
    return text


def steps_of(text: str) -> list[str]:
    return [words for listed in CODE.findall(text) for words in re.findall('"([^"]+)"', listed)]


RULES = rules()
# a step that the papers' wing adds to a stage, and steps that lie with what draws
MODULES = {
    "finetune measure": "actionspan_papers.sbp.measure",
    "evaluation curves": "actionspan.report.figures.curves",
    "evaluation misses": "actionspan.report.figures.misses",
    "evaluation reliability": "actionspan.report.figures.reliability",
    "evaluation timeline": "actionspan.report.figures.timeline",
}
STEPS = sorted({words for _, text in RULES.values() for words in steps_of(text)})


@pytest.mark.parametrize("name", sorted(set(RULES) - TARGETS))
def test_the_code_of_a_rule_is_that_of_its_command(name):
    _, text = RULES[name]
    if text.lstrip().startswith("use rule"):
        assert "shell:" not in text
        assert "code=" not in text
        return
    assert steps_of(text) == COMMAND.findall(text) + REST * ("{params.rest}" in text)
    assert steps_of(text)


@cache
def imported(path: Path) -> set[str]:
    """Return the modules of the package that a file's byte code imports, in functions too."""
    names: set[str] = set()
    waiting = [compile(path.read_text(), path, "exec")]
    while waiting:
        block = waiting.pop()
        waiting += [inner for inner in block.co_consts if isinstance(inner, type(block))]
        module = ""
        for instruction in dis.get_instructions(block):
            if instruction.opname == "IMPORT_NAME":
                module = instruction.argval
                names.add(module)
            elif instruction.opname == "IMPORT_FROM":
                # `from package import module` needs nothing of the package's own names
                inner = f"{module}.{instruction.argval}"
                if module_file(inner) is not None:
                    names.add(inner)
                    names.discard(module)
    return {name for name in names if module_file(name) is not None}


def module_file(name: str) -> Path | None:
    base = ROOT / "src" / name.replace(".", "/")
    if name.split(".")[0] not in ("actionspan", "actionspan_papers"):
        return None
    found = [path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()]
    return found[0] if found else None


def files_of(words: str) -> set[Path]:
    return {*map(Path, source_files(step_module(words)))}


@pytest.mark.parametrize("words", STEPS)
def test_a_changed_module_re_runs_the_rules_whose_step_imports_it_and_no_other(words):
    """The files are the step's module and all it imports, read from the byte code."""
    module = step_module(words)
    path = words.replace(" ", ".").replace("-", "_")
    wing = path.startswith("papers.")
    assert module == MODULES.get(words, f"actionspan{'_' if wing else '.'}{path}")
    needed: set[str] = set()
    waiting = {module}
    while waiting:
        needed |= waiting
        waiting = {name for each in waiting for name in imported(module_file(each))} - needed
    expected = {module_file(name) for name in needed}
    assert files_of(words) == expected
    assert expected < {*ROOT.glob("src/**/*.py")}


def outputs(text: str) -> set[str]:
    """Return the stages under `results/` that a rule writes to."""
    section = re.search(r"^ +output:\n(.*?)^ +(?:log|benchmark):", text, re.DOTALL | re.MULTILINE)
    return set(re.findall(r"results/(\w+)/", section[1])) if section else set()


# Proposals of baselines and of joined folds lie beside the models'; a timed run is a temporal
# training like any other; the measurements of ways to tune are the papers' wing's; the process that
# makes proposals predicts what they are made of first.
ELSEWHERE = {"evaluation_baseline", "evaluation_pool", "scaling_run", "finetune_measure"}
ELSEWHERE |= {"proposals_generate", "proposals_select"}


@pytest.mark.parametrize("name", sorted(set(RULES) - TARGETS))
def test_the_folder_of_a_result_names_its_rules_file_package_and_command(name):
    file, text = RULES[name]
    if name in ELSEWHERE:
        return
    assert name.startswith(f"{file}_")
    assert outputs(text) == {file}
    if "shell:" in text:
        first, *more = COMMAND.findall(text)
        assert {words.split()[0] for words in (first, *more)} == {file}
        assert name == first.replace(" ", "_").replace("-", "_")


NUMBERS = {"ring": "000", "mtn": "001", "partime": "002", "aavg": "003", "sbp": "004"}


def test_a_figure_is_in_the_category_of_its_own_paper():
    drawn = [each for each in EXPERIMENTS if each.figure and not each.category]
    assert len(drawn) > 3
    for each in drawn:
        assert each.path.startswith(f"results/papers/{each.paper}/")
        assert each.shelf.startswith(f"Paper {NUMBERS[each.paper]}: ")


@pytest.mark.parametrize("each", EXPERIMENTS, ids=lambda each: each.name)
def test_an_experiment_takes_the_flags_that_its_rule_gives(each):
    module = importlib.import_module(step_module(each.command))
    parser = argparse.ArgumentParser(exit_on_error=False)
    module.add_arguments(parser)
    parser.parse_args(shlex.split(words(each).removeprefix(each.command)))


def test_every_rule_is_here_and_those_of_the_registry_are_told_apart():
    assert len({each.name for each in EXPERIMENTS}) == len(EXPERIMENTS) > 30
    assert len(RULES) > len(EXPERIMENTS) + 30
    assert len(STEPS) > 25


COMMANDS = sorted(name for name, (_, text) in RULES.items() if "shell:" in text)
RUNTIME = re.compile(r'runtime=minutes\((\d+)(?:, "(\w+)")?\),')
GROUP = re.compile(r'^ +group:\n +"(\w+)"', re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_rule_asks_a_cluster_for_its_minutes_within_the_limit(name):
    """A rule that states its own number would not be limited by cluster.max_runtime."""
    _, text = RULES[name]
    if "localrule: True" in text:  # seconds of reading a few small files
        assert "runtime" not in text
        return
    (stated,) = RUNTIME.findall(text)
    assert [stated[1]] == (GROUP.findall(text) or [""])


# The most that a group of connected jobs can be: a model that the baseline tag follows.
TAG = ["evaluation_baseline", "evaluation_detections"]
TAG += ["evaluation_reliability", "evaluation_worst", "proposals_detections"]
SCORING = {name for name in COMMANDS if GROUP.findall(RULES[name][1]) == ["scoring"]}
ON_SEQUENCES = {"proposals_select"}
CANDIDATES = {"proposals_generate", "proposals_losses"}


@pytest.mark.parametrize("most", [SHORTEST, 60, 100, 480, None])
def test_a_group_stays_within_the_limit_of_a_job(most):
    cluster = ClusterPlan({"cluster": {"max_runtime": most}})

    def minutes(name: str) -> int:
        base, group = RUNTIME.findall(RULES[name][1])[0]
        return cluster.minutes(int(base), group or None)

    profile = yaml.safe_load((ROOT / "workflow/profiles/slurm/config.yaml").read_text())
    together = dict(each.split("=") for each in profile["group-components"])
    sums = {
        "model": [*(SCORING - ON_SEQUENCES - {"evaluation_baseline"}), "proposals_losses", *TAG],
        "span": SCORING - CANDIDATES - {"evaluation_baseline"},
        "probing": ["dataset_probe"] * int(together["probing"]),
        "timelines": ["evaluation_timeline"] * int(together["timelines"]),
    }
    for name, rules_of_group in sums.items():
        assert sum(map(minutes, rules_of_group)) <= (most or max(GROUPS.values())), name


@pytest.mark.parametrize("name", ["features_extract", "finetune_store", "recognition_segments"])
def test_who_reads_files_that_are_deleted_names_what_they_are_made_of(name):
    """Snakemake does not see what has changed behind them once a job that makes them failed."""
    _, text = RULES[name]
    assert re.search(r"frames=.*\n +flow=", text)
    assert 'shard="results/dataset/shards/{' in text
    recipe = 'recipe="results/features/recipe.json"' in text
    images = "images=[plan.features.image_settings, *plan.features.image_code]" in text
    assert recipe or images


@pytest.mark.parametrize(
    "made_by", [["video frames", "video flow", "features extract"], ["features encode"]]
)
def test_a_recipe_is_not_made_anew_where_the_features_are_not(made_by):
    """Snakemake would make all features again, whether or not the recipe is another."""
    own = {ROOT / f"src/actionspan/features/{name}.py" for name in ("recipe", "video_settings")}
    assert files_of("features recipe") - own <= set().union(*map(files_of, made_by))


# what another file among their inputs, whose rule sees it, makes again
BY_OTHERS = {
    "features_encode": "recipe.json",
    "features_extract": "recipe.json",
    "report_contact_sheet": "proposals.json",
}
GIVEN = re.compile(r"files\.given\(|plan\.dataset\.(shard_videos|video_file)\b")


@pytest.mark.parametrize("name", sorted(name for name in RULES if GIVEN.search(RULES[name][1])))
def test_a_rule_that_reads_what_people_give_sees_another_file_of_any_time(name):
    inputs, _, rest = RULES[name][1].partition("params:")
    zones = "(plan.features.zones)"  # the recipe does not have them
    assert (f"files.given{zones}" in inputs) == (f"files.seen{zones}" in rest)
    if GIVEN.search(inputs.replace(f"files.given{zones}", "")):
        seen = "files.seen(" in rest.replace(f"files.seen{zones}", "")
        assert seen == (name not in BY_OTHERS)
