# A closer look at each method: what it misses and why, and what its scores mean.


rule analysis_misses:
    input:
        proposals="results/proposals/{method}/proposals.json",
        annotations="results/dataset/annotations.json",
        code=source_files(
            "actionspan.evaluation.misses_report", "actionspan.evaluation.files"
        ),
    output:
        table="results/evaluation/misses/{method}.tsv",
        instances="results/evaluation/misses/{method}.instances.tsv",
        markdown="results/evaluation/misses/{method}.md",
        figure="results/evaluation/misses/{method}.svg",
    log:
        "results/logs/analysis_misses/{method}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=30,
        gpu=0,
    params:
        subset=config["evaluation"]["subset"],
    shell:
        "python -m actionspan evaluation misses --proposals {input.proposals}"
        " --annotations {input.annotations} --subset {params.subset}"
        " --method {wildcards.method} --out-table {output.table}"
        " --out-instances {output.instances} --out-markdown {output.markdown}"
        " --out-figure {output.figure} > {log} 2>&1"


rule analysis_reliability:
    input:
        proposals="results/proposals/{method}/proposals.json",
        annotations="results/dataset/annotations.json",
        code=source_files(
            "actionspan.evaluation.reliability_report", "actionspan.evaluation.files"
        ),
    output:
        table="results/evaluation/reliability/{method}.tsv",
        markdown="results/evaluation/reliability/{method}.md",
        figure="results/evaluation/reliability/{method}.svg",
    log:
        "results/logs/analysis_reliability/{method}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=1000,
        runtime=30,
        gpu=0,
    params:
        subset=config["evaluation"]["subset"],
    shell:
        "python -m actionspan evaluation reliability --proposals {input.proposals}"
        " --annotations {input.annotations} --subset {params.subset}"
        " --method {wildcards.method} --out-table {output.table}"
        " --out-markdown {output.markdown} --out-figure {output.figure} > {log} 2>&1"


rule analysis_worst:
    input:
        videos="results/evaluation/videos/{method}.tsv",
        code=source_files("actionspan.evaluation.worst_videos"),
    output:
        "results/evaluation/videos/{method}.md",
    log:
        "results/logs/analysis_worst/{method}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=10,
        gpu=0,
    params:
        timelines=lambda wildcards: (
            f"--timelines results/evaluation/timelines/{wildcards.method}"
            if base_name(wildcards.method) in KNOWN_MODELS
            else ""
        ),
    shell:
        "python -m actionspan evaluation worst --videos {input.videos}"
        " --method {wildcards.method} {params.timelines} --out-markdown {output} > {log} 2>&1"


rule analysis:
    input:
        expand(
            [
                "results/evaluation/misses/{method}.md",
                "results/evaluation/reliability/{method}.md",
                "results/evaluation/videos/{method}.md",
            ],
            method=MODELS + BASELINES,
        ),
