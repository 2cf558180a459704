# Features → start, actionness and end probabilities, by a network trained on one rank.


rule temporal_train:
    input:
        features="results/features/features.h5",
        annotations="results/dataset/annotations.json",
        code=source_files("actionspan.temporal.train"),
    output:
        model="results/temporal/{model}/none-1/model.pt",
        log="results/temporal/{model}/none-1/log.tsv",
        timing="results/temporal/{model}/none-1/timing.json",
    log:
        "results/logs/temporal_train/{model}.log",
    benchmark:
        "results/benchmarks/temporal_train/{model}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: config["temporal"]["threads"]
    resources:
        mem_mb=2000,
        runtime=240,
        gpu=0,
    params:
        settings=flags(config["temporal"]["training"]),
    shell:
        "python -m actionspan temporal train --features {input.features}"
        " --annotations {input.annotations}"
        " --model {wildcards.model} {params.settings} --threads {threads}"
        " --out results/temporal/{wildcards.model}/none-1 > {log} 2>&1"


rule temporal_predict:
    input:
        model="results/temporal/{model}/none-1/model.pt",
        features="results/features/features.h5",
        code=source_files("actionspan.temporal.predict"),
    output:
        "results/temporal/{model}/none-1/probabilities.h5",
    log:
        "results/logs/temporal_predict/{model}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=60,
        gpu=0,
    shell:
        "python -m actionspan temporal predict --model {input.model} --features {input.features}"
        " --out {output} > {log} 2>&1"
