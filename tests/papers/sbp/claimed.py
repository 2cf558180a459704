"""Tables of paper 004's experiments with numbers that a test chooses."""


def estimate(column, value, half=0.5):
    """The cells of a mean with its interval; None: a training beside itself."""
    numbers = ("", "", "") if value is None else (value, value - half, value + half)
    ends = ("", "_low", "_high")
    return {
        f"{column}{end}": f"{n:.2f}" if n != "" else ""
        for end, n in zip(ends, numbers, strict=True)
    }


def table3(dropout=2.0, less=0.6, checkerboard=0.1, seeds="70 71 72", half=0.3):
    def row(way, less, above, frame_wise):
        return {
            "way": way,
            "top1_of_seeds": seeds,
            **estimate("less_than_end_to_end", less, half),
            **estimate("above_frame_dropout", above, half),
            **estimate("above_frame_wise", frame_wise, half),
        }

    return [
        row("end-to-end", None, 2.6, 0.6),
        row("frame dropout", 2.6, None, -dropout),
        row("SBP, frame-wise", less, dropout, None),
        row("SBP, checkerboard", less, dropout, checkerboard),
    ]


def table4(full=2.0, sbp=1.9, seeds="3"):
    rows = []
    for head in ("recurrent", "attention"):
        for way, ratio, above in (("frozen", "", None), ("full", "", full), ("sbp", "0.25", sbp)):
            rows.append(
                {
                    "head": head,
                    "way": way,
                    "keep_ratio": ratio,
                    "seeds": seeds,
                    **estimate("above_frozen", above),
                    **estimate("above_full", None if way == "full" else (above or 0.0) - full, 0.3),
                }
            )
    return rows


def table5(full=3.3, sbp=2.3, importance=3.0, seeds="3"):
    rows = []
    for way, ratio, sampler, above in (
        ("frozen", "", "", None),
        ("full", "", "", full),
        ("sbp", "0.25", "uniform_random", sbp),
        ("sbp", "0.25", "importance", importance),
    ):
        row = {"way": way, "keep_ratio": ratio, "sampler": sampler, "seeds": seeds}
        for key in ("auc", "map"):
            row |= estimate(f"{key}_above_frozen", above)
            row |= estimate(
                f"{key}_above_full", None if way == "full" else (above or 0.0) - full, 0.3
            )
        rows.append(row)
    return rows


def figure6(tenth=1.5, diverse=0.3, half=0.4):
    return [
        {
            "sampler": sampler,
            "encoder_share": share,
            "seeds": "3",
            **estimate("above_uniform", above, half),
            **estimate("above_first", tenth if share == "0.1" else None, half),
        }
        for sampler, above in (("uniform_random", None), ("diverse_feature", diverse))
        for share in ("1", "0.1")
    ]


def measurements(saved=0.26, seconds=0.55):
    return [
        {"way": "full", "keep_ratio": "", "saved_part": "1.0000", "seconds_part": "1.0000"},
        {
            "way": "sbp split",
            "keep_ratio": "0.25",
            "saved_part": str(saved),
            "seconds_part": str(seconds),
        },
    ]


def table1(sbp=0.27, dropout=0.19):
    shares = {"end-to-end": 1.0, "frame dropout": dropout, "SBP": sbp}
    return [
        {"network": network, "way": way, "saved_share": str(share)}
        for network in ("Swin-T", "Swin-B", "small transformer")
        for way, share in shares.items()
    ]


def table2(sbp=0.28, checkpointing=0.38, both=0.2, mixed=0.14):
    shares = {"SBP": sbp, "checkpointing": checkpointing, "SBP + checkpointing": both}
    shares |= {"SBP + mixed precision": mixed}
    return [
        {"attention": attention, "way": way, "saved_share": str(share)}
        for attention in ("explicit", "fused")
        for way, share in shares.items()
    ]


def figure1(bottom=0.9, top=0.4):
    return [
        {
            "seed": str(seed),
            "kind": kind,
            "layer": str(layer),
            "cosine": str(bottom + (top - bottom) * layer / 7 + 0.001 * seed * layer),
        }
        for seed in (1, 2, 3)
        for kind in ("activations", "gradients")
        for layer in range(8)
    ]


def figure4(sbp=0.8, dropout=0.6, bottom=0.95):
    return [
        {
            "way": way,
            "start": start,
            "seed": str(seed),
            "other_seed": str(seed),
            "layer": str(layer),
            "cka": str((bottom if layer <= 3 else top) - 0.01 * seed),
        }
        for way, top in (("SBP, frame-wise", sbp), ("frame dropout", dropout))
        for start in ("same", "other")
        for seed in (1, 2, 3)
        for layer in range(7)
    ]
