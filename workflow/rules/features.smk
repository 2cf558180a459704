# Snippets → two-stream features → a fixed number of steps a video.


rule features_recipe:
    # Features by the same recipe stand when their shard is made again.
    input:
        weights=files.given(plan.features.weights),
    output:
        "results/features/recipe.json",
    log:
        "results/logs/features_recipe.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    params:
        code=step("features recipe"),
        steps=plan.features.code,
        source=plan.features.kind,
        seen=files.seen(plan.features.weights),
        video=f"{flags(plan.features.frames)} {flags(plan.features.flow)}",
        settings=lambda wildcards, input: flags(
            found_weights(plan.features.encoders, input.weights)
        ),
    shell:
        "python -m actionspan features recipe --source {params.source} {params.video}"
        " {params.settings} --code {params.steps} --out {output} > {log} 2>&1"


if plan.features.tuned:

    rule features_extract:
        input:
            snippets="results/finetune/snippets/{shard}.h5",
            weights=files.given(plan.features.weights),
        output:
            "results/features/shards/{shard}.h5",
        log:
            "results/logs/features_extract/{shard}.log",
        benchmark:
            "results/benchmarks/features_extract/{shard}.tsv"
        priority: 2
        conda:
            "../../envs/environment.yaml"
        threads: config["features"]["threads"]
        resources:
            mem_mb=3000,
            runtime=minutes(480),
        params:
            code=step("features extract"),
            source=plan.features.kind,
            seen=files.seen(plan.features.weights),
            settings=lambda wildcards, input: flags(
                found_weights(plan.features.encoders, input.weights)
            ),
        shell:
            "python -m actionspan features extract --snippets {input.snippets}"
            " --source {params.source} {params.settings} --threads {threads}"
            " $ACTIONSPAN_FAULTS --out {output} > {log} 2>&1"

elif plan.features.one_pass:

    rule features_encode:
        input:
            shard="results/dataset/shards/{shard}.txt",
            videos=plan.dataset.fetched_videos,
            weights=files.given(plan.features.weights),
            recipe=plan.features.recipe,
            zones=files.given(plan.features.zones),
        output:
            "results/features/shards/{shard}.h5",
        log:
            "results/logs/features_encode/{shard}.log",
        benchmark:
            "results/benchmarks/features_encode/{shard}.tsv"
        # A fetched video is deleted when no job needs it: one shard first, before others are probed.
        priority: 0.5 if plan.dataset.fetched else 0
        conda:
            "../../envs/environment.yaml"
        threads: config["video"]["processes"] * config["features"]["threads"]
        resources:
            mem_mb=encoding_mb,
            runtime=minutes(480),
        params:
            code=step("features encode"),
            source=plan.features.kind,
            video=f"{flags(plan.features.frames)} {flags(plan.features.flow)}",
            settings=lambda wildcards, input: flags(
                found_weights(plan.features.encoders, input.weights)
            ),
            recipe=plan.features.recipe_flag,
            zones=plan.features.zones_flag,
            zones_seen=files.seen(plan.features.zones),
            processes=config["video"]["processes"],
            threads=config["features"]["threads"],
        shell:
            "python -m actionspan features encode --shard {input.shard} --videos {input.videos:q}"
            " --source {params.source} {params.video} {params.settings} {params.recipe} {params.zones}"
            " --processes {params.processes} --threads {params.threads}"
            " $ACTIONSPAN_LIMITS $ACTIONSPAN_FAULTS --out {output} > {log} 2>&1"

else:

    rule features_extract:
        input:
            frames=plan.features.frames_file,
            flow=plan.features.flow_file,
            # What these are made of: they are deleted, and after a job of theirs that failed
            # Snakemake takes what it has read for what they were made of.
            shard="results/dataset/shards/{shard}.txt",
            recipe="results/features/recipe.json",
            weights=files.given(plan.features.weights),
            zones=files.given(plan.features.zones),
        output:
            "results/features/shards/{shard}.h5",
        log:
            "results/logs/features_extract/{shard}.log",
        benchmark:
            "results/benchmarks/features_extract/{shard}.tsv"
        priority: 2
        conda:
            "../../envs/environment.yaml"
        threads: config["features"]["threads"]
        resources:
            mem_mb=3000,
            runtime=minutes(480),
        params:
            code=step("features extract"),
            zones_seen=files.seen(plan.features.zones),
            source=plan.features.kind,
            settings=lambda wildcards, input: flags(
                found_weights(plan.features.encoders, input.weights)
            ),
        shell:
            "python -m actionspan features extract --frames {input.frames} --flow {input.flow}"
            " --source {params.source} {params.settings} --threads {threads}"
            " $ACTIONSPAN_FAULTS --out {output} > {log} 2>&1"


rule features_external:
    input:
        videos="results/dataset/videos.tsv",
        # functions: braces in these names are no wildcards
        files=lambda wildcards: files.given(plan.features.external_files),
    output:
        "results/features/shards/external.h5",
    log:
        "results/logs/features_external.log",
    benchmark:
        "results/benchmarks/features_external.tsv"
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(240),
    params:
        code=step("features external"),
        seen=lambda wildcards: files.seen(plan.features.external_files),
        # its key `folder` is the command's --folder
        settings=flags(config["features"]["external"]),
    shell:
        "python -m actionspan features external --videos {input.videos} {params.settings}"
        " $ACTIONSPAN_FAULTS --out {output} > {log} 2>&1"


rule features_rescale:
    input:
        shards=plan.features.shard_files,
        videos="results/dataset/{fold}videos.tsv",
        annotations="results/dataset/{fold}annotations.json",
    output:
        "results/features/{fold}features.h5",
    log:
        "results/logs/features_rescale/{fold}features.log",
    benchmark:
        "results/benchmarks/features_rescale/{fold}features.tsv"
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(240),
    params:
        code=step("features rescale"),
        settings=flags(config["features"]["rescale"]),
        on_bad_input=config["dataset"]["on_bad_input"],
    shell:
        "python -m actionspan features rescale --shards {input.shards} --videos {input.videos}"
        " --annotations {input.annotations} {params.settings}"
        " --on-bad-input {params.on_bad_input} --out {output} > {log} 2>&1"


rule features_sequences:
    input:
        shards=plan.features.shard_files,
        videos="results/dataset/{fold}videos.tsv",
        annotations="results/dataset/{fold}annotations.json",
    output:
        "results/features/{fold}sequences.h5",
    log:
        "results/logs/features_sequences/{fold}sequences.log",
    benchmark:
        "results/benchmarks/features_sequences/{fold}sequences.tsv"
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(240),
    params:
        code=step("features sequences"),
        settings=flags(config["features"]["sequences"]),
        on_bad_input=config["dataset"]["on_bad_input"],
    shell:
        "python -m actionspan features sequences --shards {input.shards} --videos {input.videos}"
        " --annotations {input.annotations} {params.settings}"
        " --on-bad-input {params.on_bad_input} --out {output} > {log} 2>&1"


rule features_causal:
    input:
        shards=plan.features.shard_files,
        videos="results/dataset/{fold}videos.tsv",
        annotations="results/dataset/{fold}annotations.json",
    output:
        "results/features/{fold}causal.h5",
    log:
        "results/logs/features_causal/{fold}causal.log",
    benchmark:
        "results/benchmarks/features_causal/{fold}causal.tsv"
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(240),
    params:
        code=step("features causal"),
        settings=flags(
            {**config["features"]["sequences"], **config["features"]["causal"]}
        ),
        on_bad_input=config["dataset"]["on_bad_input"],
    shell:
        "python -m actionspan features causal --shards {input.shards} --videos {input.videos}"
        " --annotations {input.annotations} {params.settings}"
        " --on-bad-input {params.on_bad_input} --out {output} > {log} 2>&1"
