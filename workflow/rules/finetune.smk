# Frames and flow → encoders tuned end to end within a memory budget (paper 004).


rule finetune_store:
    input:
        frames="results/video/frames/{shard}.h5",
        flow="results/video/flow/{shard}.h5",
        # what these are made of, as in features_extract
        shard="results/dataset/shards/{shard}.txt",
        zones=files.given(plan.features.zones),
    output:
        "results/finetune/snippets/{shard}.h5",
    log:
        "results/logs/finetune_store/{shard}.log",
    benchmark:
        "results/benchmarks/finetune_store/{shard}.tsv"
    priority: 2
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(120),
    params:
        code=step("finetune store"),
        settings=flags(config["finetune"]["store"]),
        images=[plan.features.image_settings, *plan.features.image_code],
        zones_seen=files.seen(plan.features.zones),
    shell:
        "python -m actionspan finetune store --frames {input.frames} --flow {input.flow}"
        " {params.settings} $ACTIONSPAN_FAULTS --out {output} > {log} 2>&1"


rule finetune_train:
    input:
        snippets=expand(
            "results/finetune/snippets/{shard}.h5", shard=plan.dataset.shards
        ),
        annotations="results/dataset/annotations.json",
        weights=files.given(plan.finetune.weights),
    output:
        models=plan.finetune.models,
        folders=[directory(folder) for folder in plan.finetune.folders],
        temporal="results/finetune/temporal.safetensors",
        plan="results/finetune/plan.json",
        log="results/finetune/log.tsv",
        scores=multiext("results/finetune/scores", ".h5", ".json"),
    log:
        "results/logs/finetune_train.log",
    benchmark:
        "results/benchmarks/finetune_train.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: plan.finetune.threads
    resources:
        mem_mb=plan.finetune.memory,
        runtime=minutes(1440),
        tasks=plan.finetune.processes,
        cpus_per_task=config["finetune"]["threads"],
        mpi=plan.finetune.launch,
    params:
        code=step("finetune train"),
        seen=files.seen(plan.finetune.weights),
        settings=plan.finetune.settings,
        joined=plan.finetune.joined,
        threads=config["finetune"]["threads"],
        folder=subpath(output.temporal, parent=True),
    shell:
        "OMP_NUM_THREADS={params.threads} SRUN_CPUS_PER_TASK={params.threads} {resources.mpi}"
        " python -m mpi4py -m actionspan finetune train --snippets {input.snippets}"
        " --annotations {input.annotations} {params.settings} {params.joined}"
        " --threads {params.threads} --out {params.folder} > {log} 2>&1"


rule finetune_online:
    input:
        snippets=expand(
            "results/finetune/snippets/{shard}.h5", shard=plan.dataset.shards
        ),
        annotations="results/dataset/annotations.json",
        weights=files.given(plan.finetune.weights),
    output:
        temporal="results/finetune/online/{head}/temporal.safetensors",
        plan="results/finetune/online/{head}/plan.json",
        log="results/finetune/online/{head}/log.tsv",
        scores=multiext("results/finetune/online/{head}/scores", ".h5", ".json"),
    log:
        "results/logs/finetune_online/{head}.log",
    benchmark:
        "results/benchmarks/finetune_online/{head}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: config["finetune"]["threads"]
    resources:
        mem_mb=plan.finetune.memory,
        runtime=minutes(1440),
    params:
        code=step("finetune online"),
        seen=files.seen(plan.finetune.weights),
        settings=plan.finetune.settings,
        folder=subpath(output.temporal, parent=True),
    shell:
        "OMP_NUM_THREADS={threads} python -m actionspan finetune online"
        " --snippets {input.snippets} --annotations {input.annotations} --head {wildcards.head}"
        " {params.settings} --threads {threads} --out {params.folder} > {log} 2>&1"
