# Features → start, actionness and end probabilities, by a network trained on one rank or many.


rule temporal_train:
    input:
        features=plan.outcomes.network_features,
        annotations=of_fold("results/dataset/annotations.json"),
        subset="results/dataset/subsets/training.tsv",
    output:
        model="results/temporal/{model}/{run}/model.safetensors",
        log="results/temporal/{model}/{run}/log.tsv",
        timing="results/temporal/{model}/{run}/timing.json",
    log:
        "results/logs/temporal_train/{model}/{run}.log",
    benchmark:
        "results/benchmarks/temporal_train/{model}/{run}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: plan.ranks.threads
    resources:
        mem_mb=plan.ranks.memory,
        runtime=minutes(240),
        tasks=plan.ranks.processes,
        cpus_per_task=config["temporal"]["threads"],
        mpi=plan.ranks.launch,
    params:
        code=step("temporal train"),
        parallel=plan.ranks.flags,
        model=lambda wildcards: RunName.of(wildcards.model).base,
        settings=lambda wildcards: seeded_flags(
            config["temporal"]["training"], wildcards.model
        ),
        threads=config["temporal"]["threads"],
        folder=subpath(output.model, parent=True),
    shell:
        "OMP_NUM_THREADS={params.threads} SRUN_CPUS_PER_TASK={params.threads} {resources.mpi}"
        " python -m mpi4py -m actionspan temporal train --features {input.features} --annotations {input.annotations}"
        " --model {params.model} {params.parallel} {params.settings} --threads {params.threads}"
        " --out {params.folder} > {log} 2>&1"


rule temporal_predict:
    # Of further runs: what proposals are made of is predicted with them.
    input:
        model="results/temporal/{model}/{run}/model.safetensors",
        features=plan.outcomes.network_features,
    output:
        "results/temporal/{model}/{run}/probabilities.h5",
    log:
        "results/logs/temporal_predict/{model}/{run}.log",
    wildcard_constraints:
        run=f"(?!{plan.ranks.run}/)({run_pattern()})",
    conda:
        "../../envs/environment.yaml"
    resources:
        runtime=minutes(30),
    params:
        code=step("temporal predict"),
    shell:
        "python -m actionspan temporal predict --model {input.model} --features {input.features}"
        " --out {output} > {log} 2>&1"
