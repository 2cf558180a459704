# Videos and annotations in any known form → results/dataset/.


rule dataset_demo:
    input:
        code=source_files("actionspan.demo.data_set"),
    output:
        videos=(list(PATHS.values()) if DEMO else "results/dataset/demo/none.mp4"),
        annotations="results/dataset/demo/annotations.json",
    log:
        "results/logs/dataset_demo.log",
    benchmark:
        "results/benchmarks/dataset_demo.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 4
    resources:
        mem_mb=2000,
        runtime=30,
        gpu=0,
    params:
        settings=flags(config["demo"]),
    shell:
        "python -m actionspan dataset demo {params.settings} --processes {threads}"
        " --out results/dataset/demo > {log} 2>&1"


rule dataset_probe:
    input:
        videos=shard_videos,
        code=source_files("actionspan.dataset.video_facts", "actionspan.dataset.rejections"),
    output:
        "results/dataset/shards/{shard}.txt",
    log:
        "results/logs/dataset_probe/{shard}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=30,
        gpu=0,
    params:
        on_bad_input=config["dataset"]["on_bad_input"],
    shell:
        "python -m actionspan dataset probe --videos {input.videos:q} --on-bad-input {params.on_bad_input}"
        " --out {output} > {log} 2>&1"


rule dataset_index:
    input:
        shards=expand("results/dataset/shards/{shard}.txt", shard=SHARDS),
        annotations=annotation_files(ANNOTATIONS),
        video_info=config["dataset"]["video_info"] or [],
        code=source_files("actionspan.dataset.matching", "actionspan.dataset.rejections"),
    output:
        videos="results/dataset/videos.tsv",
        annotations="results/dataset/annotations.json",
        rejected="results/dataset/rejected.tsv",
    log:
        "results/logs/dataset_index.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
        gpu=0,
    params:
        # a folder by its name: its files alone have no classes
        annotations=lambda wildcards: ANNOTATIONS,
        settings=flags(
            config["dataset"],
            "format",
            "video_info",
            "on_bad_input",
            "validation_fraction",
            "overshoot_seconds",
            "ambiguous",
        ),
        folder="" if DEMO else flags({"folder": config["dataset"]["videos"]}),
        passed_over=passed_over(),  # so that a file more in the folder is reported
    shell:
        "python -m actionspan dataset index --shards {input.shards} --annotations {params.annotations:q}"
        " {params.folder} {params.settings} --out results/dataset > {log} 2>&1"
