# Clips → the classifiers of both streams, whose scores are features where features.source is scores.

if TRIMMED:

    CLIP_FOLDER = (
        flags(config["recognition"], "clips", "splits", "split")
        + " "
        + flags(config["recognition"]["store"], "validation_fraction")
    )

    rule recognition_list:
        input:
            files=clip_files(),
            code=source_files("actionspan.recognition.clip_lists"),
        output:
            "results/recognition/clips.tsv",
        log:
            "results/logs/recognition_list.log",
        conda:
            "../../envs/environment.yaml"
        threads: 1
        resources:
            mem_mb=500,
            runtime=30,
            gpu=0,
        params:
            folder=CLIP_FOLDER,
        shell:
            "python -m actionspan recognition list {params.folder} --out {output} > {log} 2>&1"

    rule recognition_clips:
        input:
            files=shard_clip_files,
            weights=weights_files(config["video"]["flow"]["weights"]),
            code=source_files("actionspan.recognition.trimmed_clips"),
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
            mem_mb=1000,
            runtime=480,
            gpu=0,
        params:
            folder=CLIP_FOLDER,
            clips=lambda wildcards: " ".join(
                shlex.quote(name) for name in CLIP_SHARDS[wildcards.clip_shard]
            ),
            # class and subset of a clip may change where its file does not
            rows=lambda wildcards: [
                f"{clip.label} {clip.subset}" for clip in shard_clips(wildcards)
            ],
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
            "python -m actionspan recognition clips {params.folder} --shard-clips {params.clips}"
            " {params.settings} {params.flow} --processes {threads} --out {output} > {log} 2>&1"

else:

    rule recognition_segments:
        input:
            frames="results/video/frames/{clip_shard}.h5",
            flow="results/video/flow/{clip_shard}.h5",
            annotations="results/dataset/annotations.json",
            code=source_files("actionspan.recognition.segment_clips"),
        output:
            "results/recognition/clips/{clip_shard}.h5",
        log:
            "results/logs/recognition_segments/{clip_shard}.log",
        benchmark:
            "results/benchmarks/recognition_segments/{clip_shard}.tsv"
        priority: 2
        conda:
            "../../envs/environment.yaml"
        threads: 1
        resources:
            mem_mb=1000,
            runtime=120,
            gpu=0,
        params:
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
        shell:
            "python -m actionspan recognition segments --frames {input.frames} --flow {input.flow}"
            " --annotations {input.annotations} {params.settings} --out {output} > {log} 2>&1"


rule recognition_train:
    input:
        clips=expand(
            "results/recognition/clips/{clip_shard}.h5", clip_shard=CLIP_SHARDS
        ),
        listed="results/recognition/clips.tsv" if TRIMMED else [],
        rgb=rgb_classifier,
        weights=weights_files(config["recognition"]["weights"]),
        code=source_files("actionspan.recognition.train_command"),
    output:
        model="results/recognition/{stream}/model.pt",
        log="results/recognition/{stream}/log.tsv",
        scores="results/recognition/{stream}/scores.json",
    log:
        "results/logs/recognition_train/{stream}.log",
    benchmark:
        "results/benchmarks/recognition_train/{stream}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: learner_threads
    resources:
        mem_mb=learner_memory,
        runtime=1440,
        gpu=0,
        tasks=learner_processes,
        cpus_per_task=config["recognition"]["threads"],
        mpi=learner_launch,
    params:
        learners=learner_flags,
        weights=flags(config["recognition"], "weights"),
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
        model="results/recognition/runs/{learning}/{stream}/model.pt",
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
        code=source_files("actionspan.recognition.two_stream"),
    output:
        tsv="results/recognition/accuracy.tsv",
        markdown="results/recognition/accuracy.md",
    log:
        "results/logs/recognition_accuracy.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=500,
        runtime=10,
        gpu=0,
    shell:
        "python -m actionspan recognition accuracy --rgb {input.rgb} --flow {input.flow}"
        " --out-tsv {output.tsv} --out-markdown {output.markdown} > {log} 2>&1"
