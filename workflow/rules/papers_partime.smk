# Streams and networks → paper 002's (PARTIME) tables, figures and verdicts.

PARTIME = config["papers"]["partime"]
PARTIME_SEEDS = flags(PARTIME, "seeds", "stages", "confidence")
PARTIME_NETWORKS = flags(
    PARTIME["speed"],
    *(key for key in PARTIME["speed"] if key not in ("pairs", "measured_seconds")),
)


rule partime_figures:
    input:
        expand(
            "results/papers/partime/{name}.{suffix}",
            name=[
                "speedup",
                "balance",
                "timeline",
                "baselines",
                "classification",
                "flow",
                "memory",
                "gradients",
            ],
            suffix=["tsv", "md", "svg", "png"],
        ),
        expand(
            "results/papers/partime/{name}.{suffix}",
            name=["messages", "claims"],
            suffix=["tsv", "md"],
        ),


rule papers_partime_frames:
    input:
        videos="results/dataset/videos.tsv",
        files=plan.dataset.first_fetched(PARTIME["frames"]["most_videos"]),
        code=step("papers partime frames"),
    output:
        "results/papers/partime/frames.h5",
    log:
        "results/logs/papers_partime_frames.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    params:
        settings=flags(PARTIME["frames"]),
    shell:
        "python -m actionspan papers partime frames --videos {input.videos} --files {input.files:q}"
        " {params.settings}"
        " --out {output} > {log} 2>&1"


rule papers_partime_gradients:
    input:
        frames="results/papers/partime/frames.h5",
        code=step("papers partime gradients"),
    output:
        tsv="results/papers/partime/gradients.tsv",
        markdown="results/papers/partime/gradients.md",
        figures=figure_files(
            "results/papers/partime/gradients",
            "partime_gradients",
            "Paper 002: PARTIME",
        ),
    log:
        "results/logs/papers_partime_gradients.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    params:
        settings=[PARTIME_SEEDS, flags(PARTIME["gradients"])],
    shell:
        "python -m actionspan papers partime gradients --frames {input.frames} {params.settings}"
        " --out-tsv {output.tsv} --out-markdown {output.markdown}"
        " --out-figures {output.figures} > {log} 2>&1"


rule papers_partime_classification:
    input:
        features="results/features/features.h5",
        annotations="results/dataset/annotations.json",
        code=step("papers partime classification"),
    output:
        tsv="results/papers/partime/classification.tsv",
        markdown="results/papers/partime/classification.md",
        figures=figure_files(
            "results/papers/partime/classification",
            "partime_classification",
            "Paper 002: PARTIME",
        ),
    log:
        "results/logs/papers_partime_classification.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    params:
        settings=[PARTIME_SEEDS, flags(PARTIME["classification"])],
        subset=config["evaluation"]["subset"],
    shell:
        "python -m actionspan papers partime classification --features {input.features}"
        " --annotations {input.annotations} --subset {params.subset} {params.settings}"
        " --out-tsv {output.tsv} --out-markdown {output.markdown}"
        " --out-figures {output.figures} > {log} 2>&1"


rule papers_partime_flow:
    input:
        frames="results/papers/partime/frames.h5",
        code=step("papers partime flow"),
    output:
        tsv="results/papers/partime/flow.tsv",
        markdown="results/papers/partime/flow.md",
        figures=figure_files(
            "results/papers/partime/flow", "partime_flow", "Paper 002: PARTIME"
        ),
    log:
        "results/logs/papers_partime_flow.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    params:
        settings=[PARTIME_SEEDS, flags(PARTIME["flow"])],
    shell:
        "python -m actionspan papers partime flow --frames {input.frames} {params.settings}"
        " --out-tsv {output.tsv} --out-markdown {output.markdown}"
        " --out-figures {output.figures} > {log} 2>&1"


rule papers_partime_speedup:
    # Both cores, so that nothing else of the run disturbs the clock.
    input:
        code=step("papers partime speedup"),
    output:
        tsv="results/papers/partime/speedup.tsv",
        markdown="results/papers/partime/speedup.md",
        figures=figure_files(
            "results/papers/partime/speedup", "partime_speedup", "Paper 002: PARTIME"
        ),
    log:
        "results/logs/papers_partime_speedup.log",
    conda:
        "../../envs/environment.yaml"
    threads: 2
    resources:
        runtime=minutes(60),
    params:
        settings=flags(PARTIME["speed"]),
    shell:
        "python -m actionspan papers partime speedup --cores {threads} {params.settings}"
        " --out-tsv {output.tsv} --out-markdown {output.markdown}"
        " --out-figures {output.figures} > {log} 2>&1"


rule papers_partime_messages:
    input:
        code=step("papers partime messages"),
    output:
        tsv="results/papers/partime/messages.tsv",
        markdown="results/papers/partime/messages.md",
    log:
        "results/logs/papers_partime_messages.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    params:
        settings=PARTIME_NETWORKS,
    shell:
        "python -m actionspan papers partime messages {params.settings}"
        " --out-tsv {output.tsv} --out-markdown {output.markdown} > {log} 2>&1"


rule papers_partime_balance:
    input:
        code=step("papers partime balance"),
    output:
        tsv="results/papers/partime/balance.tsv",
        markdown="results/papers/partime/balance.md",
        figures=figure_files(
            "results/papers/partime/balance", "partime_balance", "Paper 002: PARTIME"
        ),
    log:
        "results/logs/papers_partime_balance.log",
    conda:
        "../../envs/environment.yaml"
    threads: 2
    resources:
        runtime=minutes(60),
    params:
        settings=PARTIME_NETWORKS,
    shell:
        "python -m actionspan papers partime balance {params.settings} --out-tsv {output.tsv}"
        " --out-markdown {output.markdown} --out-figures {output.figures} > {log} 2>&1"


rule papers_partime_timeline:
    input:
        code=step("papers partime timeline"),
    output:
        tsv="results/papers/partime/timeline.tsv",
        markdown="results/papers/partime/timeline.md",
        figures=figure_files(
            "results/papers/partime/timeline", "partime_timeline", "Paper 002: PARTIME"
        ),
    log:
        "results/logs/papers_partime_timeline.log",
    conda:
        "../../envs/environment.yaml"
    threads: 2
    resources:
        runtime=minutes(60),
    params:
        settings=PARTIME_NETWORKS,
    shell:
        "python -m actionspan papers partime timeline {params.settings} --out-tsv {output.tsv}"
        " --out-markdown {output.markdown} --out-figures {output.figures} > {log} 2>&1"


rule papers_partime_baselines:
    input:
        code=step("papers partime baselines"),
    output:
        tsv="results/papers/partime/baselines.tsv",
        markdown="results/papers/partime/baselines.md",
        figures=figure_files(
            "results/papers/partime/baselines",
            "partime_baselines",
            "Paper 002: PARTIME",
        ),
    log:
        "results/logs/papers_partime_baselines.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    params:
        settings=flags(PARTIME["speed"], "depths"),
    shell:
        "python -m actionspan papers partime baselines {params.settings} --out-tsv {output.tsv}"
        " --out-markdown {output.markdown} --out-figures {output.figures} > {log} 2>&1"


rule papers_partime_memory:
    input:
        code=step("papers partime memory"),
    output:
        tsv="results/papers/partime/memory.tsv",
        markdown="results/papers/partime/memory.md",
        figures=figure_files(
            "results/papers/partime/memory", "partime_memory", "Paper 002: PARTIME"
        ),
    log:
        "results/logs/papers_partime_memory.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    params:
        settings=PARTIME_NETWORKS,
    shell:
        "python -m actionspan papers partime memory {params.settings} --out-tsv {output.tsv}"
        " --out-markdown {output.markdown} --out-figures {output.figures} > {log} 2>&1"


rule papers_partime_claims:
    input:
        speedup="results/papers/partime/speedup.tsv",
        balance="results/papers/partime/balance.tsv",
        messages="results/papers/partime/messages.tsv",
        timeline="results/papers/partime/timeline.tsv",
        baselines="results/papers/partime/baselines.tsv",
        classification="results/papers/partime/classification.tsv",
        flow="results/papers/partime/flow.tsv",
        memory="results/papers/partime/memory.tsv",
        gradients="results/papers/partime/gradients.tsv",
        code=step("papers partime claims"),
    output:
        tsv="results/papers/partime/claims.tsv",
        markdown="results/papers/partime/claims.md",
    log:
        "results/logs/papers_partime_claims.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    params:
        settings=[PARTIME_SEEDS, flags(PARTIME["gradients"], "good_cosine")],
    shell:
        "python -m actionspan papers partime claims --speedup {input.speedup}"
        " --balance {input.balance} --messages {input.messages} --timeline {input.timeline}"
        " --baselines {input.baselines}"
        " --classification {input.classification} --flow {input.flow} --memory {input.memory}"
        " --gradients {input.gradients} {params.settings} --out-tsv {output.tsv}"
        " --out-markdown {output.markdown} > {log} 2>&1"
