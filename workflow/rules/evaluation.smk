# Proposals and annotations → AR@AN, AUC, one table of all methods, and figures.


rule evaluation_baseline:
    input:
        features=baseline_features,
        probabilities=baseline_probabilities,
        annotations="results/dataset/annotations.json",
        code=source_files(
            "actionspan.evaluation.baselines",
            "actionspan.evaluation.signals",
            "actionspan.proposals.writing",
        ),
    output:
        json="results/proposals/{baseline}/proposals.json",
        csv="results/proposals/{baseline}/proposals.csv",
    log:
        "results/logs/evaluation_baseline/{baseline}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=60,
        gpu=0,
    params:
        method=lambda wildcards: base_name(wildcards.baseline),
        settings=baseline_settings,
        subset=config["evaluation"]["subset"],
    shell:
        "python -m actionspan evaluation baseline --method {params.method}"
        " --annotations {input.annotations} --features {input.features}"
        " --probabilities {input.probabilities}"
        " --subset {params.subset} {params.settings}"
        " --out-json {output.json} --out-csv {output.csv} > {log} 2>&1"


rule evaluation_evaluate:
    input:
        proposals="results/proposals/{method}/proposals.json",
        annotations="results/dataset/annotations.json",
        videos="results/dataset/videos.tsv",
        code=source_files("actionspan.evaluation.scoring"),
    output:
        record="results/evaluation/{method}.json",
        videos="results/evaluation/videos/{method}.tsv",
    log:
        "results/logs/evaluation_evaluate/{method}.log",
    benchmark:
        "results/benchmarks/evaluation_evaluate/{method}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=60,
        gpu=0,
    params:
        settings=flags(config["evaluation"]["protocol"]),
        subset=config["evaluation"]["subset"],
    shell:
        "python -m actionspan evaluation evaluate --proposals {input.proposals}"
        " --annotations {input.annotations} --videos {input.videos} --method {wildcards.method}"
        " --subset {params.subset} {params.settings}"
        " --out {output.record} --out-videos {output.videos} > {log} 2>&1"


rule evaluation_summary:
    input:
        evaluations=expand(
            "results/evaluation/{method}.json", method=MODELS + BASELINES
        ),
        code=source_files("actionspan.evaluation.records"),
    output:
        json="results/evaluation/summary.json",
        tsv="results/evaluation/summary.tsv",
        markdown="results/evaluation/summary.md",
    log:
        "results/logs/evaluation_summary.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=10,
        gpu=0,
    shell:
        "python -m actionspan evaluation summary --evaluations {input.evaluations}"
        " --out-json {output.json} --out-tsv {output.tsv} --out-markdown {output.markdown}"
        " > {log} 2>&1"


rule evaluation_curves:
    input:
        evaluations=expand(
            "results/evaluation/{method}.json", method=MODELS + BASELINES
        ),
        code=source_files("actionspan.evaluation.recall_curves"),
    output:
        "results/evaluation/recall_curves.tsv",
    log:
        "results/logs/evaluation_curves.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=10,
        gpu=0,
    shell:
        "python -m actionspan evaluation curves --evaluations {input.evaluations} --out-table {output}"
        " > {log} 2>&1"


rule evaluation_plot_curves:
    input:
        table="results/evaluation/recall_curves.tsv",
        code=source_files("actionspan.evaluation.recall_curves"),
    output:
        "results/evaluation/recall_curves.{suffix,svg|png}",
    log:
        "results/logs/evaluation_plot_curves/{suffix}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=10,
        gpu=0,
    shell:
        "python -m actionspan evaluation plot-curves --table {input.table} --out {output} > {log} 2>&1"


rule evaluation_timeline:
    input:
        probabilities=f"results/temporal/{{model}}/{RUN}/probabilities.h5",
        proposals="results/proposals/{model}/proposals.json",
        annotations="results/dataset/annotations.json",
        code=source_files(
            "actionspan.evaluation.timeline_figure", "actionspan.evaluation.files"
        ),
    output:
        "results/evaluation/timelines/{model}/{video}.{suffix,svg|png}",
    log:
        "results/logs/evaluation_timeline/{model}/{video}.{suffix}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=10,
        gpu=0,
    shell:
        "python -m actionspan evaluation timeline --probabilities {input.probabilities}"
        " --proposals {input.proposals} --annotations {input.annotations}"
        " --video {wildcards.video:q} --out {output:q} > {log:q} 2>&1"
