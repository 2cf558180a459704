# A shard of videos → snippets (one decoding, in order) and their optical flow.


rule video_frames:
    # Below new/, a video whose features stand is not decoded: they are there in its place.
    input:
        shard="results/dataset/shards/{shard}.txt",
        videos=plan.dataset.fetched_videos,
        recipe=plan.features.recipe,
        zones=files.given(plan.features.zones),
    output:
        temp("results/video/frames/{new}{shard}.h5"),
    log:
        "results/logs/video_frames/{new}{shard}.log",
    benchmark:
        "results/benchmarks/video_frames/{new}{shard}.tsv"
    # A fetched video is deleted when no job needs it: one shard first, before others are probed.
    priority: 0.5 if plan.dataset.fetched else 0
    conda:
        "../../envs/environment.yaml"
    threads: config["video"]["processes"]
    resources:
        mem_mb=decoding_mb,
        runtime=minutes(240),
    params:
        code=step("video frames"),
        settings=f"{flags(plan.features.frames)} {flags(config['video'], 'decoder')}",
        recipe=plan.features.recipe_flag,
        zones=plan.features.zones_flag,
        zones_seen=files.seen(plan.features.zones),
    shell:
        "python -m actionspan video frames --shard {input.shard} --videos {input.videos:q} {params.settings} --processes {threads}"
        " {params.recipe} {params.zones} $ACTIONSPAN_LIMITS $ACTIONSPAN_FAULTS --out {output} > {log} 2>&1"


rule video_flow:
    input:
        frames="results/video/frames/{new}{shard}.h5",
    output:
        temp("results/video/flow/{new}{shard}.h5"),
    log:
        "results/logs/video_flow/{new}{shard}.log",
    benchmark:
        "results/benchmarks/video_flow/{new}{shard}.tsv"
    # Later steps first, so that frames and flow are deleted soon after they are made.
    priority: 1
    conda:
        "../../envs/environment.yaml"
    threads: config["video"]["processes"]
    resources:
        runtime=minutes(480),
    params:
        code=step("video flow"),
        settings=flags(config["video"]["flow"]),
    shell:
        "python -m actionspan video flow --frames {input.frames} {params.settings} --processes {threads}"
        " $ACTIONSPAN_FAULTS --out {output} > {log} 2>&1"
