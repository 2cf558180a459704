# Trainings of several seeds → paper 003's figures, its table I, verdicts on its claims.

EXPERIMENT_INTERVAL = flags(
    config["recognition"]["experiments"], "confidence", "resamples"
)


rule recognition_figures:
    input:
        expand(
            "results/recognition/{name}.{suffix}",
            name=[*curve_figures(), "learning_rates"],
            suffix=["tsv", "md", "svg", "png"],
        ),
        expand(
            "results/recognition/{name}.{suffix}",
            name=["table1", "traffic", "claims"],
            suffix=["tsv", "md"],
        ),


rule recognition_curves:
    input:
        logs=figure_logs,
        code=source_files("actionspan.papers.aavg.accuracy_curves"),
    output:
        tsv="results/recognition/{figure}.tsv",
        markdown="results/recognition/{figure}.md",
    log:
        "results/logs/recognition_curves/{figure}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
        gpu=0,
    params:
        settings=EXPERIMENT_INTERVAL,
        measured=classifiers_in_words(),
    shell:
        "python -m actionspan recognition curves --figure {wildcards.figure} --logs {input.logs}"
        " --measured-on {params.measured:q} {params.settings}"
        " --out-tsv {output.tsv} --out-markdown {output.markdown} > {log} 2>&1"


rule recognition_plot_curves:
    input:
        table="results/recognition/{figure}.tsv",
        code=source_files("actionspan.papers.aavg.accuracy_curves"),
    output:
        "results/recognition/{figure}.{suffix,svg|png}",
    log:
        "results/logs/recognition_plot_curves/{figure}/{suffix}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=10,
        gpu=0,
    shell:
        "python -m actionspan recognition plot-curves --figure {wildcards.figure} --table {input.table}"
        " --out {output} > {log} 2>&1"


rule recognition_rates:
    input:
        logs=rate_logs,
        code=source_files("actionspan.papers.aavg.learning_rates"),
    output:
        tsv="results/recognition/learning_rates.tsv",
        markdown="results/recognition/learning_rates.md",
    log:
        "results/logs/recognition_rates.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
        gpu=0,
    params:
        settings=EXPERIMENT_INTERVAL,
        measured=classifiers_in_words(),
    shell:
        "python -m actionspan recognition rates --logs {input.logs}"
        " --measured-on {params.measured:q} {params.settings}"
        " --out-tsv {output.tsv} --out-markdown {output.markdown} > {log} 2>&1"


rule recognition_plot_rates:
    input:
        table="results/recognition/learning_rates.tsv",
        code=source_files("actionspan.papers.aavg.learning_rates"),
    output:
        "results/recognition/learning_rates.{suffix,svg|png}",
    log:
        "results/logs/recognition_plot_rates/{suffix}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=10,
        gpu=0,
    shell:
        "python -m actionspan recognition plot-rates --table {input.table}"
        " --out {output} > {log} 2>&1"


rule recognition_table:
    input:
        scores=table_scores,
        code=source_files("actionspan.papers.aavg.table1"),
    output:
        tsv="results/recognition/table1.tsv",
        markdown="results/recognition/table1.md",
    log:
        "results/logs/recognition_table.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
        gpu=0,
    params:
        settings=EXPERIMENT_INTERVAL,
        measured=classifiers_in_words(),
    shell:
        "python -m actionspan recognition table --scores {input.scores}"
        " --measured-on {params.measured:q} {params.settings}"
        " --out-tsv {output.tsv} --out-markdown {output.markdown} > {log} 2>&1"


rule recognition_traffic:
    input:
        logs=lambda wildcards: compared("log.tsv"),
        code=source_files("actionspan.papers.aavg.exchanged"),
    output:
        tsv="results/recognition/traffic.tsv",
        markdown="results/recognition/traffic.md",
    log:
        "results/logs/recognition_traffic.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
        gpu=0,
    params:
        settings=EXPERIMENT_INTERVAL,
        measured=classifiers_in_words(),
    shell:
        "python -m actionspan recognition traffic --logs {input.logs}"
        " --measured-on {params.measured:q} {params.settings}"
        " --out-tsv {output.tsv} --out-markdown {output.markdown} > {log} 2>&1"


rule recognition_claims:
    input:
        logs=lambda wildcards: compared("log.tsv"),
        scores=lambda wildcards: compared("scores.json"),
        code=source_files(
            "actionspan.papers.aavg.comparisons_judged",
            "actionspan.papers.aavg.table1",
        ),
    output:
        tsv="results/recognition/claims.tsv",
        markdown="results/recognition/claims.md",
    log:
        "results/logs/recognition_claims.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=10,
        gpu=0,
    params:
        settings=EXPERIMENT_INTERVAL,
        measured=classifiers_in_words(),
    shell:
        "python -m actionspan recognition claims --logs {input.logs}"
        " --scores {input.scores}"
        " --measured-on {params.measured:q} {params.settings}"
        " --out-tsv {output.tsv} --out-markdown {output.markdown} > {log} 2>&1"
