# Videos and annotations in any known form → results/dataset/.


rule dataset_demo:
    output:
        videos=(
            list(plan.dataset.paths.values())
            if plan.dataset.is_demo
            else "results/dataset/demo/none.mp4"
        ),
        annotations="results/dataset/demo/annotations.json",
    log:
        "results/logs/dataset_demo.log",
    benchmark:
        "results/benchmarks/dataset_demo.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 4
    resources:
        runtime=minutes(60),
    params:
        code=step("dataset demo"),
        settings=flags(config["demo"]),
        folder=subpath(output.annotations, parent=True),
    shell:
        "python -m actionspan dataset demo {params.settings} --processes {threads}"
        " --out {params.folder} > {log} 2>&1"


rule dataset_probe:
    input:
        videos=plan.dataset.shard_videos,
    output:
        "results/dataset/shards/{shard}.txt",
    log:
        "results/logs/dataset_probe/{shard}.log",
    priority: 10
    group:
        "probing"
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(5, "probing"),
    params:
        code=step("dataset probe"),
        others=plan.dataset.other_videos,
        on_bad_input=config["dataset"]["on_bad_input"],
        limits=LIMITS,
        seen=lambda wildcards: files.seen(
            map(plan.dataset.paths.get, plan.dataset.shards[wildcards.shard])
        ),
    shell:
        "python -m actionspan dataset probe --videos {input.videos:q} {params.others:q} {params.limits} $ACTIONSPAN_FAULTS"
        " --out {output} > {log} 2>&1"


rule dataset_index:
    input:
        shards=expand("results/dataset/shards/{shard}.txt", shard=plan.dataset.shards),
        # a function: braces in these names are no wildcards
        annotations=lambda wildcards: files.given(plan.dataset.annotation_files),
        video_info=files.given(plan.dataset.video_info),
    output:
        videos="results/dataset/videos.tsv",
        annotations="results/dataset/annotations.json",
        rejected="results/dataset/rejected_input.tsv",
    log:
        "results/logs/dataset_index.log",
    priority: 10
    group:
        "indexing"
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60, "indexing"),
    params:
        code=step("dataset index"),
        # a folder is given by its name: without it its files have no classes
        annotations=lambda wildcards, input: plan.dataset.annotation_folder
        or input.annotations,
        settings=flags(
            config["dataset"],
            "format",
            "video_info",
            "on_bad_input",
            "validation_fraction",
            "overshoot_seconds",
            "point_seconds",
            "ambiguous",
        ),
        origin=plan.dataset.origin_flags,
        passed_over=plan.dataset.passed_over,  # so that a new file in the folder is reported
        seen=lambda wildcards: files.seen(
            [*plan.dataset.annotation_files, *plan.dataset.video_info], content=True
        ),
        folder=subpath(output.videos, parent=True),
    shell:
        "python -m actionspan dataset index --shards {input.shards} --annotations {params.annotations:q}"
        " {params.origin} {params.settings} --rejected {output.rejected} --out {params.folder}"
        " > {log} 2>&1"


rule dataset_subset:
    # Before videos are decoded, as its inputs: a subset may be empty.
    input:
        annotations="results/dataset/annotations.json",
    output:
        "results/dataset/subsets/{subset}.tsv",
    log:
        "results/logs/dataset_subset/{subset}.log",
    wildcard_constraints:
        subset="training|validation|testing",
    priority: 10
    group:
        "indexing"
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(5, "indexing"),
    params:
        code=step("dataset subset"),
    shell:
        "python -m actionspan dataset subset --annotations {input.annotations}"
        " --subset {wildcards.subset} --out {output} > {log} 2>&1"


rule dataset_losses:
    input:
        rejected="results/dataset/rejected_input.tsv",
        videos="results/dataset/videos.tsv",
        shards=plan.features.shard_files,
    output:
        rejected="results/dataset/rejected.tsv",
        losses="results/dataset/losses.tsv",
    log:
        "results/logs/dataset_losses.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(30),
    params:
        code=step("dataset losses"),
        folder=subpath(output.losses, parent=True),
    shell:
        "python -m actionspan dataset losses --rejected {input.rejected} --videos {input.videos}"
        " --shards {input.shards} --out {params.folder} > {log} 2>&1"


rule dataset_folds:
    # A fold of the training videos as a data set of its own; no other video is in it.
    input:
        annotations="results/dataset/annotations.json",
        videos="results/dataset/videos.tsv",
    output:
        annotations="results/dataset/folds/{number}/annotations.json",
        videos="results/dataset/folds/{number}/videos.tsv",
    log:
        "results/logs/dataset_folds/{number}.log",
    wildcard_constraints:
        number=one_of(map(str, plan.folds.numbers)),
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(30),
    params:
        code=step("dataset folds"),
        folds=len(plan.folds.numbers),
        folder=subpath(output.videos, parent=True),
    shell:
        "python -m actionspan dataset folds --annotations {input.annotations}"
        " --videos {input.videos} --folds {params.folds} --fold {wildcards.number}"
        " --out {params.folder} > {log} 2>&1"
