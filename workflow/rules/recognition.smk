# Clips → the classifiers of both streams, whose scores are features where features.source is scores.

if plan.recognition.trimmed:

    rule recognition_list:
        input:
            files=lambda wildcards: files.given(plan.recognition.clip_files),
        output:
            "results/recognition/clips.tsv",
        log:
            "results/logs/recognition_list.log",
        conda:
            "../../envs/environment.yaml"
        resources:
            runtime=minutes(60),
        params:
            code=step("recognition list"),
            seen=lambda wildcards: files.seen(plan.recognition.clip_files),
            folder=plan.recognition.folder_flags,
        shell:
            "python -m actionspan recognition list {params.folder} --out {output} > {log} 2>&1"

    rule recognition_clips:
        input:
            files=lambda wildcards: files.given(plan.recognition.shard_files(wildcards)),
        output:
            "results/recognition/clips/{clip_shard}.h5",
        log:
            "results/logs/recognition_clips/{clip_shard}.log",
        benchmark:
            "results/benchmarks/recognition_clips/{clip_shard}.tsv"
        conda:
            "../../envs/environment.yaml"
        threads: config["video"]["processes"]
        resources:
            mem_mb=decoding_mb,
            runtime=minutes(480),
        params:
            code=step("recognition clips"),
            seen=lambda wildcards: files.seen(plan.recognition.shard_files(wildcards)),
            folder=plan.recognition.folder_flags,
            clips=plan.recognition.shard_flags,
            # class and subset of a clip may change where its file does not
            rows=plan.recognition.shard_rows,
            settings=flags(
                config["recognition"]["store"],
                "stack",
                "snippet_frames",
                "height",
                "width",
                "jpeg_quality",
            ),
            flow=flags(config["video"]["flow"]),
        shell:
            "python -m actionspan recognition clips {params.folder} {params.clips}"
            " {params.settings} {params.flow} --processes {threads} $ACTIONSPAN_LIMITS $ACTIONSPAN_FAULTS"
            " --out {output} > {log} 2>&1"

else:

    rule recognition_segments:
        input:
            frames="results/video/frames/{clip_shard}.h5",
            flow="results/video/flow/{clip_shard}.h5",
            # what these are made of, as in features_extract
            shard="results/dataset/shards/{clip_shard}.txt",
            annotations="results/dataset/annotations.json",
            zones=files.given(plan.features.zones),
        output:
            "results/recognition/clips/{clip_shard}.h5",
        log:
            "results/logs/recognition_segments/{clip_shard}.log",
        benchmark:
            "results/benchmarks/recognition_segments/{clip_shard}.tsv"
        priority: 2
        conda:
            "../../envs/environment.yaml"
        resources:
            runtime=minutes(120),
        params:
            code=step("recognition segments"),
            settings=flags(
                config["recognition"]["store"],
                "height",
                "width",
                "jpeg_quality",
                "background",
                "background_margin",
                "background_ratio",
                "validation_fraction",
            ),
            images=[plan.features.image_settings, *plan.features.image_code],
            zones_seen=files.seen(plan.features.zones),
        shell:
            "python -m actionspan recognition segments --frames {input.frames} --flow {input.flow}"
            " --annotations {input.annotations} {params.settings} $ACTIONSPAN_FAULTS"
            " --out {output} > {log} 2>&1"


rule recognition_train:
    input:
        clips=expand(
            "results/recognition/clips/{clip_shard}.h5",
            clip_shard=plan.recognition.shards,
        ),
        listed="results/recognition/clips.tsv" if plan.recognition.trimmed else [],
        rgb=plan.recognition.rgb_classifier,
        weights=lambda wildcards: files.given(plan.recognition.weights(wildcards)),
    output:
        model="results/recognition/{stream}/model.safetensors",
        log="results/recognition/{stream}/log.tsv",
        scores="results/recognition/{stream}/scores.json",
    log:
        "results/logs/recognition_train/{stream}.log",
    benchmark:
        "results/benchmarks/recognition_train/{stream}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: plan.recognition.threads
    resources:
        mem_mb=plan.recognition.memory,
        runtime=minutes(1440),
        tasks=plan.recognition.processes,
        cpus_per_task=config["recognition"]["threads"],
        mpi=plan.recognition.launch,
    params:
        code=step("recognition train"),
        learners=plan.recognition.flags,
        weights=plan.recognition.weights_flags,
        seen=lambda wildcards: files.seen(plan.recognition.weights(wildcards)),
        threads=config["recognition"]["threads"],
        folder=subpath(output.model, parent=True),
    shell:
        "OMP_NUM_THREADS={params.threads} SRUN_CPUS_PER_TASK={params.threads} {resources.mpi}"
        " python -m mpi4py -m actionspan recognition train --clips {input.clips}"
        " --stream {wildcards.stream} $([ -n '{input.rgb}' ] && echo --rgb-model {input.rgb})"
        " {params.weights} {params.learners} --threads {params.threads}"
        " --out {params.folder} > {log} 2>&1"


use rule recognition_train as recognition_experiment with:
    output:
        model="results/recognition/runs/{learning}/{stream}/model.safetensors",
        log="results/recognition/runs/{learning}/{stream}/log.tsv",
        scores="results/recognition/runs/{learning}/{stream}/scores.json",
    log:
        "results/logs/recognition_train/{learning}/{stream}.log",
    benchmark:
        "results/benchmarks/recognition_train/{learning}/{stream}.tsv"


rule recognition_accuracy:
    input:
        rgb="results/recognition/rgb/scores.json",
        flow="results/recognition/flow/scores.json",
    output:
        tsv="results/recognition/accuracy.tsv",
        markdown="results/recognition/accuracy.md",
    log:
        "results/logs/recognition_accuracy.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    params:
        code=step("recognition accuracy"),
    shell:
        "python -m actionspan recognition accuracy --rgb {input.rgb} --flow {input.flow}"
        " --out-tsv {output.tsv} --out-markdown {output.markdown} > {log} 2>&1"
