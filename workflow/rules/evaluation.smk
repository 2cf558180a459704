# Proposals and annotations → AR@AN, AUC, one table of all methods, and figures.


# What a method's proposals, its reader's list and its labels are worth, and what it misses.
SCORES = {
    "record": "results/evaluation/{method}.json",
    "videos": "results/evaluation/videos/{method}.tsv",
    "reader": "results/evaluation/reader/{method}.json",
    "reader_markdown": "results/evaluation/reader/{method}.md",
    "misses": "results/evaluation/misses/{method}.tsv",
    "instances": "results/evaluation/misses/{method}.instances.tsv",
    "misses_markdown": "results/evaluation/misses/{method}.md",
    "misses_figure": report(
        "results/evaluation/misses/{method}.svg",
        caption="../report/misses.rst",
        category="Analysis",
        labels={"figure": "misses", "method": "{method}"},
    ),
}
SCORING = (
    " --proposals {params.proposals}"
    " --annotations {input.annotations} --videos {input.videos} --method {params.name}"
    " --subset {params.subset} {params.folds} {params.protocol}"
    " --out {output.record} --out-videos {output.videos}"
    " --then evaluation reader --proposals {params.proposals}"
    " --events {input.events} --annotations {input.annotations}"
    " --method {wildcards.method} --subset {params.subset} {params.chapters}"
    " --out-json {output.reader} --out-markdown {output.reader_markdown}"
    " --then evaluation misses --proposals {params.proposals}"
    " --annotations {input.annotations} --subset {params.subset}"
    " --method {wildcards.method} --out-table {output.misses}"
    " --out-instances {output.instances} --out-markdown {output.misses_markdown}"
    " --out-figure {output.misses_figure} > {log} 2>&1"
)
SCORING_PARAMS = {
    "protocol": flags(config["evaluation"]["protocol"]),
    "name": lambda wildcards: wildcards.method.removesuffix("-folds"),
    "subset": plan.folds.subset,
    "folds": plan.folds.pooled_flag,
    "chapters": flags(config["proposals"]["chapters"]),
}


rule evaluation_evaluate:
    input:
        proposals="results/proposals/{method}/proposals.json",
        events=plan.outcomes.events,
        annotations=of_fold("results/dataset/annotations.json"),
        videos="results/dataset/videos.tsv",
        subset=plan.folds.scored,
    output:
        **SCORES,
    log:
        "results/logs/evaluation_evaluate/{method}.log",
    benchmark:
        "results/benchmarks/evaluation_evaluate/{method}.tsv"
    wildcard_constraints:
        method=f"{seeded(KNOWN_MODELS)}({plan.folds.one}|{plan.folds.pooled})"
        f"|{seeded(plan.outcomes.baselines)}{plan.folds.pooled}",
    group:
        "scoring"
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(40, "scoring"),
    params:
        **SCORING_PARAMS,
        code=step("evaluation evaluate", "evaluation reader", "evaluation misses"),
        proposals=lambda wildcards, input: input.proposals,
    shell:
        "python -m actionspan evaluation evaluate" f"{SCORING}"


rule evaluation_baseline:
    # Its proposals and their scores: to start a process takes longer than most baselines.
    input:
        features=plan.outcomes.baseline_features,
        probabilities=plan.outcomes.baseline_probabilities,
        events=[],
        annotations=of_fold("results/dataset/annotations.json"),
        videos="results/dataset/videos.tsv",
        subset=plan.folds.scored,
    output:
        **SCORES,
        json="results/proposals/{method}/proposals.json",
        csv="results/proposals/{method}/proposals.csv",
    log:
        "results/logs/evaluation_baseline/{method}.log",
    wildcard_constraints:
        method=seeded(plan.outcomes.baselines) + plan.folds.one,
    group:
        "scoring"
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60, "scoring"),
    params:
        **SCORING_PARAMS,
        code=step(
            "evaluation baseline",
            "evaluation evaluate",
            "evaluation reader",
            "evaluation misses",
        ),
        baseline=lambda wildcards: RunName.of(wildcards.method).base,
        settings=plan.outcomes.baseline_flags,
        proposals=lambda wildcards, output: output.json,
    shell:
        "python -m actionspan evaluation baseline --method {params.baseline}"
        " --annotations {input.annotations} --features {input.features}"
        " --probabilities {input.probabilities}"
        " --subset {params.subset} {params.settings}"
        " --out-json {output.json} --out-csv {output.csv}"
        " --then evaluation evaluate"
        f"{SCORING}"


rule evaluation_detections:
    input:
        detections="results/proposals/{method}/detections.json",
        proposals="results/proposals/{method}/proposals.json",
        annotations=of_fold("results/dataset/annotations.json"),
    output:
        json="results/evaluation/detections/{method}.json",
        markdown="results/evaluation/detections/{method}.md",
    log:
        "results/logs/evaluation_detections/{method}.log",
    group:
        "scoring"
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(10, "scoring"),
    params:
        code=step("evaluation detections"),
        subset=plan.folds.subset,
    shell:
        "python -m actionspan evaluation detections --detections {input.detections}"
        " --proposals {input.proposals} --annotations {input.annotations}"
        " --method {wildcards.method} --subset {params.subset}"
        " --out-json {output.json} --out-markdown {output.markdown} > {log} 2>&1"


rule evaluation_summary:
    # Of the subset that is scored, or of all folds.
    input:
        evaluations=plan.folds.evaluations,
        readers=plan.folds.readers,
    output:
        json="results/evaluation/{folds}summary.json",
        tsv="results/evaluation/{folds}summary.tsv",
        markdown="results/evaluation/{folds}summary.md",
        found="results/evaluation/{folds}summary_found.md",
        table="results/evaluation/{folds}recall_curves.tsv",
        figures=figure_files(
            "results/evaluation/{folds}recall_curves", "recall_curves", "Results"
        ),
    log:
        "results/logs/evaluation_summary/{folds}summary.log",
    wildcard_constraints:
        folds="(folds/)?",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    params:
        code=step("evaluation summary", "evaluation curves"),
    shell:
        "python -m actionspan evaluation summary --evaluations {input.evaluations}"
        " --readers {input.readers} --out-found {output.found}"
        " --out-json {output.json} --out-tsv {output.tsv} --out-markdown {output.markdown}"
        " --then evaluation curves --evaluations {input.evaluations}"
        " --out-table {output.table} --out-figures {output.figures} > {log} 2>&1"


# Cross-validation: each training video's proposals by the networks that never saw it.


rule evaluation_pool:
    input:
        proposals=plan.folds.proposals,
        annotations=expand(
            "results/dataset/folds/{number}/annotations.json",
            number=plan.folds.numbers,
        ),
    output:
        json="results/proposals/{pooled}/{listed}.json",
        csv="results/proposals/{pooled}/{listed}.csv",
    log:
        "results/logs/evaluation_pool/{pooled}/{listed}.log",
    wildcard_constraints:
        listed="proposals|events",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(60),
    params:
        code=step("evaluation pool"),
    shell:
        "python -m actionspan evaluation pool --proposals {input.proposals}"
        " --annotations {input.annotations} --out-json {output.json} --out-csv {output.csv}"
        " > {log} 2>&1"


rule folds:
    input:
        plan.folds.targets,


rule evaluation_timeline:
    input:
        probabilities=f"results/temporal/{{model}}/{plan.ranks.run}/probabilities.h5",
        proposals="results/proposals/{model}/proposals.json",
        annotations="results/dataset/annotations.json",
    output:
        report(
            "results/evaluation/timelines/{model}/{video}.{suffix,svg|png}",
            caption="../report/timeline.rst",
            category="Timelines",
            subcategory="{model}",
            labels={"video": "{video}"},
        ),
    log:
        "results/logs/evaluation_timeline/{model}/{suffix}/{video}.log",
    group:
        "timelines"
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(2, "timelines"),
    params:
        code=step("evaluation timeline"),
    shell:
        "python -m actionspan evaluation timeline --probabilities {input.probabilities}"
        " --proposals {input.proposals} --annotations {input.annotations}"
        " --video={wildcards.video:q} --out {output:q} > {log:q} 2>&1"


# A closer look at each method: what it misses and why, and what its scores mean.


rule evaluation_reliability:
    input:
        proposals="results/proposals/{method}/proposals.json",
        annotations=of_fold("results/dataset/annotations.json"),
    output:
        table="results/evaluation/reliability/{method}.tsv",
        markdown="results/evaluation/reliability/{method}.md",
        figure=report(
            "results/evaluation/reliability/{method}.svg",
            caption="../report/reliability.rst",
            category="Analysis",
            labels={"figure": "reliability", "method": "{method}"},
        ),
    log:
        "results/logs/evaluation_reliability/{method}.log",
    group:
        "scoring"
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(10, "scoring"),
    params:
        code=step("evaluation reliability"),
        subset=plan.folds.subset,
    shell:
        "python -m actionspan evaluation reliability --proposals {input.proposals}"
        " --annotations {input.annotations} --subset {params.subset}"
        " --method {wildcards.method} --out-table {output.table}"
        " --out-markdown {output.markdown} --out-figure {output.figure} > {log} 2>&1"


rule evaluation_worst:
    input:
        videos="results/evaluation/videos/{method}.tsv",
    output:
        "results/evaluation/videos/{method}.md",
    log:
        "results/logs/evaluation_worst/{method}.log",
    group:
        "scoring"
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(5, "scoring"),
    params:
        code=step("evaluation worst"),
        timelines=plan.outcomes.timelines_flag,
    shell:
        "python -m actionspan evaluation worst --videos {input.videos}"
        " --method {wildcards.method} {params.timelines} --out-markdown {output} > {log} 2>&1"


rule analysis:
    input:
        expand(
            [
                "results/evaluation/misses/{method}.md",
                "results/evaluation/reliability/{method}.md",
                "results/evaluation/videos/{method}.md",
                "results/evaluation/detections/{method}.md",
                "results/evaluation/reader/{method}.md",
            ],
            method=plan.outcomes.methods,
        ),
        expand("results/proposals/{model}/pem.svg", model=plan.outcomes.evaluated),
