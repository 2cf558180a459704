# Scores by video of several seeds → paper 001's tables, verdicts on its claims, its loss curves.

INTERVAL = ("resamples", "confidence", "seed")


rule tables:
    input:
        expand(
            "results/evaluation/{name}.{suffix}",
            name=["table1", "table2", "table3", "claims"],
            suffix=["tsv", "md"],
        ),
        expand(
            "results/evaluation/loss_curves.{suffix}",
            suffix=["tsv", "md", "svg", "png"],
        ),


rule tables_table:
    input:
        videos=lambda wildcards: video_scores(
            (ABLATION if wildcards.table == "table3" else MODELS) + BASELINES
        ),
        code=source_files("actionspan.papers.mtn.tables"),
    output:
        tsv="results/evaluation/{table,table[123]}.tsv",
        markdown="results/evaluation/{table,table[123]}.md",
    log:
        "results/logs/tables_table/{table}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
        gpu=0,
    params:
        settings=flags(config["evaluation"]["protocol"], *INTERVAL),
        features=features_in_words(),
        data=data_in_words(),
        subset=config["evaluation"]["subset"],
    shell:
        "python -m actionspan evaluation table --table {wildcards.table} --videos {input.videos}"
        " --features-are {params.features:q} --data-are {params.data:q} --subset {params.subset}"
        " {params.settings} --out-tsv {output.tsv} --out-markdown {output.markdown} > {log} 2>&1"


rule tables_claims:
    input:
        videos=video_scores(
            ABLATION + [baseline for baseline in BASELINES if baseline == "tag"]
        ),
        logs=training_logs(LOSS_MODELS),
        code=source_files(
            "actionspan.papers.mtn.judged",
            "actionspan.papers.mtn.claims_report",
            "actionspan.papers.mtn.validation_losses",
        ),
    output:
        tsv="results/evaluation/claims.tsv",
        markdown="results/evaluation/claims.md",
    log:
        "results/logs/tables_claims.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
        gpu=0,
    params:
        settings=flags(config["evaluation"]["protocol"], *INTERVAL),
        features=features_in_words(),
        data=data_in_words(),
        subset=config["evaluation"]["subset"],
    shell:
        "python -m actionspan evaluation claims --videos {input.videos} --logs {input.logs}"
        " --features-are {params.features:q} --data-are {params.data:q} --subset {params.subset}"
        " {params.settings} --out-tsv {output.tsv} --out-markdown {output.markdown} > {log} 2>&1"


rule tables_loss_curves:
    input:
        logs=training_logs(LOSS_MODELS),
        code=source_files(
            "actionspan.papers.mtn.validation_losses",
            "actionspan.papers.mtn.loss_curves_report",
        ),
    output:
        tsv="results/evaluation/loss_curves.tsv",
        markdown="results/evaluation/loss_curves.md",
    log:
        "results/logs/tables_loss_curves.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=10,
        gpu=0,
    params:
        settings=flags(config["evaluation"]["protocol"], *INTERVAL),
        features=features_in_words(),
        data=data_in_words(),
    shell:
        "python -m actionspan evaluation loss-curves --logs {input.logs}"
        " --features-are {params.features:q} --data-are {params.data:q} {params.settings}"
        " --out-table {output.tsv} --out-markdown {output.markdown} > {log} 2>&1"


rule tables_plot_loss:
    input:
        table="results/evaluation/loss_curves.tsv",
        code=source_files("actionspan.papers.mtn.validation_losses"),
    output:
        "results/evaluation/loss_curves.{suffix,svg|png}",
    log:
        "results/logs/tables_plot_loss/{suffix}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=10,
        gpu=0,
    shell:
        "python -m actionspan evaluation plot-loss --table {input.table} --out {output} > {log} 2>&1"
