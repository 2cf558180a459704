# The page of the data set, and what it shows that is made on demand.


rule report_index:
    input:
        annotations="results/dataset/annotations.json",
        videos="results/dataset/videos.tsv",
        proposals=f"results/proposals/{plan.outcomes.shown}/proposals.json",
        events=plan.outcomes.shown_events,
        probabilities=f"results/temporal/{plan.outcomes.shown}/{plan.ranks.run}/probabilities.h5",
        scores=f"results/evaluation/videos/{plan.outcomes.shown}.tsv",
        misses=f"results/evaluation/misses/{plan.outcomes.shown}.tsv",
        evaluations=expand(
            "results/evaluation/{method}.json", method=plan.outcomes.methods
        ),
        readers=expand(
            "results/evaluation/reader/{model}.json", model=plan.outcomes.models
        ),
        logs=expand(
            "results/temporal/{model}/{run}/log.tsv",
            model=plan.outcomes.models,
            run=plan.ranks.run,
        ),
        # copies that are there by now: another one makes the page again
        copies=plan.outcomes.made_copies,
    output:
        report(
            "results/report/index.html",
            caption="../report/page.rst",
            category="Page",
            labels={"page": "videos and summary"},
        ),
    log:
        "results/logs/report_index.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    params:
        code=step("report index"),
        model=plan.outcomes.shown,
        settings=flags(config["report"], "subsets", "most_videos", "thumbnails"),
        results=subpath(output[0], ancestor=2),
    shell:
        "python -m actionspan report index --model {params.model}"
        " --annotations {input.annotations} --videos {input.videos}"
        " --proposals {input.proposals} --events {input.events}"
        " --probabilities {input.probabilities} --scores {input.scores} --misses {input.misses}"
        " --evaluations {input.evaluations} --readers {input.readers} --logs {input.logs}"
        " --benchmarks {params.results}/benchmarks {params.settings} --out {output} > {log} 2>&1"


rule report_video:
    input:
        video=plan.dataset.video_file,
    output:
        "results/report/videos/{video}.mp4",
    log:
        "results/logs/report_video/{video}.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        mem_mb=lambda wildcards: decoding_mb(wildcards, 1),
        runtime=minutes(60),
    params:
        code=step("report video"),
        settings=flags(config["report"]["copies"]),
        seen=lambda wildcards: files.seen([plan.dataset.paths.get(wildcards.video, "")]),
    shell:
        "python -m actionspan report video --video={input.video:q} {params.settings}"
        " --out={output:q} > {log:q} 2>&1"


rule report_contact_sheet:
    input:
        video=plan.dataset.video_file,
        proposals="results/proposals/{method}/proposals.json",
        events=plan.outcomes.events,
    output:
        "results/report/contact_sheets/{method}/{video}.jpg",
    log:
        "results/logs/report_contact_sheet/{method}/{video}.log",
    conda:
        "../../envs/environment.yaml"
    resources:
        mem_mb=lambda wildcards: decoding_mb(wildcards, 1),
        runtime=minutes(10),
    params:
        code=step("report contact-sheet"),
    shell:
        "python -m actionspan report contact-sheet --video={input.video:q}"
        " --proposals {input.proposals} --events {input.events} --out={output:q} > {log:q} 2>&1"
