# Training times of several exchanges and numbers of ranks → time models and figures.


rule scaling_run:
    # Timed runs have all cores, so that nothing else runs at the same time, and never resume. On
    # SLURM they share their nodes with nobody.
    input:
        features="results/features/features.h5",
        annotations="results/dataset/annotations.json",
    output:
        timing="results/scaling/runs/{run}/{repeat}/timing.json",
        log="results/scaling/runs/{run}/{repeat}/log.tsv",
        model=temp("results/scaling/runs/{run}/{repeat}/model.safetensors"),
    log:
        "results/logs/scaling_run/{run}/{repeat}.log",
    conda:
        "../../envs/environment.yaml"
    # alone on this machine: as many as it has
    threads: lambda wildcards: (plan.ranks.threads(wildcards) if workflow.non_local_exec else 1024)
    resources:
        mem_mb=plan.ranks.memory,
        runtime=minutes(240),
        tasks=plan.ranks.processes,
        cpus_per_task=config["temporal"]["threads"],
        mpi=plan.ranks.launch,
        slurm_extra="--exclusive",
    params:
        code=step("temporal train"),
        parallel=plan.ranks.flags,
        settings=flags(plan.ranks.scaling_training),
        model=config["scaling"]["model"],
        threads=config["temporal"]["threads"],
        folder=subpath(output.model, parent=True),
    shell:
        "OMP_NUM_THREADS={params.threads} SRUN_CPUS_PER_TASK={params.threads} {resources.mpi}"
        " python -m mpi4py -m actionspan temporal train --features {input.features} --annotations {input.annotations}"
        " --model {params.model} {params.parallel} {params.settings} --threads {params.threads}"
        " --no-resume --out {params.folder} > {log} 2>&1"


rule scaling_times:
    input:
        timings=expand(
            "results/scaling/runs/{run}/{repeat}/timing.json",
            run=plan.ranks.scaling_runs,
            repeat=range(1, config["scaling"]["repeats"] + 1),
        ),
    output:
        "results/scaling/times.tsv",
    log:
        "results/logs/scaling_times.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    params:
        code=step("scaling times"),
    shell:
        "python -m actionspan scaling times --timings {input.timings} --out {output} > {log} 2>&1"


rule scaling_fit:
    input:
        times="results/scaling/times.tsv",
    output:
        "results/scaling/timing_model.json",
    log:
        "results/logs/scaling_fit.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    params:
        code=step("scaling fit"),
    shell:
        "python -m actionspan scaling fit --times {input.times} --out {output} > {log} 2>&1"


rule scaling_plot_speedup:
    input:
        times="results/scaling/times.tsv",
    output:
        report(
            "results/scaling/speedup.{suffix,svg|png}",
            caption="../report/scaling_speedup.rst",
            category="Training",
            labels={"figure": "speedup"},
        ),
    log:
        "results/logs/scaling_plot_speedup/{suffix}.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    params:
        code=step("scaling plot-speedup"),
    shell:
        "python -m actionspan scaling plot-speedup --times {input.times} --out {output} > {log} 2>&1"


rule scaling_plot_fit:
    input:
        times="results/scaling/times.tsv",
        model="results/scaling/timing_model.json",
    output:
        report(
            "results/scaling/fit.{suffix,svg|png}",
            caption="../report/scaling_fit.rst",
            category="Training",
            labels={"figure": "fit"},
        ),
    log:
        "results/logs/scaling_plot_fit/{suffix}.log",
    localrule: True
    conda:
        "../../envs/environment.yaml"
    params:
        code=step("scaling plot-fit"),
    shell:
        "python -m actionspan scaling plot-fit --times {input.times} --model {input.model}"
        " --out {output} > {log} 2>&1"
