# Runs of several seeds → the papers' tables, figures and verdicts on their claims: a rule for each
# experiment in the registry of the papers' wing.

from actionspan_papers.rules import experiments, files_of, under

EXPERIMENTS = experiments(config, plan.dataset)


rule tables:
    input:
        files_of(EXPERIMENTS, "mtn"),


rule recognition_figures:
    input:
        files_of(EXPERIMENTS, "aavg"),


rule ring_figures:
    input:
        files_of(EXPERIMENTS, "ring"),
        expand(
            "results/scaling/{figure}.{suffix}",
            figure=["speedup", "fit"],
            suffix=["svg", "png"],
        ),


rule partime_figures:
    input:
        files_of(EXPERIMENTS, "partime"),


rule sbp_figures:
    input:
        files_of(EXPERIMENTS, "sbp", "finetune"),


for experiment in EXPERIMENTS:
    figures = {}
    if experiment.figure:
        figures["out_figures"] = figure_files(
            experiment.path, experiment.figure, experiment.shelf
        )

    rule:
        name:
            experiment.name
        input:
            **experiment.inputs,
            texts=files.local(experiment.texts),
        output:
            **{under(flag): path for flag, path in experiment.tables.items()},
            **figures,
        log:
            f"results/logs/{experiment.own}.log",
        benchmark:
            f"results/benchmarks/{experiment.own}.tsv"
        wildcard_constraints:
            **{name: one_of(values) for name, values in experiment.wildcards.items()},
        conda:
            "../../envs/environment.yaml"
        threads: experiment.threads
        resources:
            **({"mem_mb": experiment.mem_mb} if experiment.mem_mb else {}),
            runtime=minutes(experiment.minutes),
        params:
            code=step(experiment.command),
            words=experiment.words,
            # compared between runs, unlike words: those are derived from files
            settings=experiment.knobs,
        shell:
            # no name of the loop: Snakemake reads the command when a job starts
            "python -m actionspan {params.words} > {log} 2>&1"
