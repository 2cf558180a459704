# From raw, untrimmed videos to scored temporal action proposals.
#   snakemake --cores 2                                    all of `rule all`
#   snakemake --cores 2 results/evaluation/mtn.json        a single file
#   snakemake --cores 2 tables                             the papers' tables, over several seeds
#   snakemake --cores 2 folds                              cross-validation over the training videos
#   snakemake --cores 2 recognition_figures                paper 003's: many trainings, over seeds
#   snakemake --cores 2 ring_figures                       paper 000's: timed runs over ranks
#   snakemake --cores 2 partime_figures                    paper 002's: streams and pipelines
#   snakemake --cores 2 sbp_figures                        paper 004's: encoders tuned in little memory
#   snakemake --cores 2 results/finetune/rgb/model.safetensors      encoders tuned on the training videos
#   snakemake --cores 2 results/report/videos/NAME.mp4     a copy of a video that browsers play
#   snakemake --cores 2 results/scaling/speedup.svg        training times over ranks
#   snakemake --cores 2 --configfile examples/fights.yaml  your own videos


##### Configuration #####

from snakemake.utils import min_version

min_version("9.20")


configfile: f"{workflow.current_basedir}/config.yaml"


include: "workflow/rules/common.smk"


report: "workflow/report/workflow.rst"


container: image


METHODS = [*KNOWN_MODELS, *plan.outcomes.baselines]
EVALUATED_MODELS = [name for name in KNOWN_MODELS if name not in ON_SEQUENCES]


wildcard_constraints:
    shard=one_of(plan.dataset.shards),
    clip_shard=one_of(plan.recognition.shards),
    new="(new/)?",
    stream=one_of(STREAMS),
    head=one_of(HEADS),
    learning=LEARNING,
    model=seeded(KNOWN_MODELS) + plan.folds.one,
    baseline=seeded(plan.outcomes.baselines) + plan.folds.one,
    pooled=seeded(METHODS) + plan.folds.pooled,
    method=f"{seeded(METHODS)}({plan.folds.one}|{plan.folds.pooled})",
    fold=plan.folds.folder,
    run=run_pattern(),
    repeat="[1-9][0-9]*",
    video=plan.video_pattern,


##### Rules, a file for each stage #####


include: "workflow/rules/dataset.smk"
include: "workflow/rules/video.smk"
include: "workflow/rules/recognition.smk"
include: "workflow/rules/finetune.smk"
include: "workflow/rules/features.smk"
include: "workflow/rules/temporal.smk"
include: "workflow/rules/proposals.smk"
include: "workflow/rules/evaluation.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/scaling.smk"


if "papers" in plugins("steps"):

    include: "workflow/rules/papers.smk"


if is_main and workflow.resource_settings.nodes is None:
    # Groups matter on a cluster alone; a dry run would check them in a time of shards squared.
    for each in workflow.rules:
        each.group = None


##### Targets #####


onsuccess:
    drop_features(plan.features.shard_files)
    from actionspan.dataset.losses import losses_line  # h5py is not needed to plan

    if lost := losses_line(Path("results/dataset")):
        print(lost, file=sys.stderr)


rule all:
    default_target: True
    input:
        "results/evaluation/summary.json",
        "results/evaluation/summary.md",
        "results/evaluation/recall_curves.svg",
        "results/evaluation/recall_curves.png",
        "results/dataset/rejected.tsv",
        "results/dataset/losses.tsv",
        expand("results/proposals/{model}/proposals.csv", model=plan.outcomes.models),
        expand("results/evaluation/reader/{model}.md", model=plan.outcomes.models),
        plan.outcomes.bundles,
        plan.outcomes.chapters,
        plan.outcomes.timelines,
        plan.outcomes.page,
        plan.folds.summary,
