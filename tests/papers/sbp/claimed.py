"""Tables of paper 004's experiments with numbers that a test chooses."""

from itertools import product

from papers.steps import row_of


def estimate(column, value, half=0.5):
    """The cells of a mean with its interval; None: a training beside itself."""
    columns = [f"{column}{end}" for end in ("", "_low", "_high")]
    if value is None:
        return dict.fromkeys(columns, "")
    numbers = (value, value - half, value + half)
    return {name: f"{number:.2f}" for name, number in zip(columns, numbers, strict=True)}


def table3(dropout=2.0, less=0.6, checkerboard=0.1, seeds="70 71 72", half=0.3):
    ways = {
        "end-to-end": (None, 2.6, 0.6),
        "frame dropout": (2.6, None, -dropout),
        "SBP, frame-wise": (less, dropout, None),
        "SBP, checkerboard": (less, dropout, checkerboard),
    }
    return [
        row_of("way top1_of_seeds", way, seeds)
        | estimate("less_than_end_to_end", of[0], half)
        | estimate("above_frame_dropout", of[1], half)
        | estimate("above_frame_wise", of[2], half)
        for way, of in ways.items()
    ]


def above(way, value, full, *measures):
    """The cells of a detection by a way of training, above a frozen encoder and a full one."""
    row = {}
    for measure in measures:
        row |= estimate(f"{measure}above_frozen", value)
        less = None if way == "full" else (value or 0.0) - full
        row |= estimate(f"{measure}above_full", less, 0.3)
    return row


def table4(full=2.0, sbp=1.9, seeds="3"):
    ways = (("frozen", "", None), ("full", "", full), ("sbp", "0.25", sbp))
    return [
        row_of("head way keep_ratio seeds", head, way, ratio, seeds) | above(way, value, full, "")
        for head, (way, ratio, value) in product(("recurrent", "attention"), ways)
    ]


def table5(full=3.3, sbp=2.3, importance=3.0, seeds="3"):
    sampled = (("uniform_random", sbp), ("importance", importance))
    ways = [("frozen", "", "", None), ("full", "", "", full)]
    ways += [("sbp", "0.25", sampler, value) for sampler, value in sampled]
    return [
        row_of("way keep_ratio sampler seeds", way, ratio, sampler, seeds)
        | above(way, value, full, "auc_", "map_")
        for way, ratio, sampler, value in ways
    ]


def figure6(tenth=1.5, diverse=0.3, half=0.4):
    samplers = (("uniform_random", None), ("diverse_feature", diverse))
    return [
        row_of("sampler encoder_share seeds", sampler, share, 3)
        | estimate("above_uniform", above, half)
        | estimate("above_first", tenth if share == "0.1" else None, half)
        for (sampler, above), share in product(samplers, ("1", "0.1"))
    ]


def measurements(saved=0.26, seconds=0.55):
    columns = "way keep_ratio saved_part seconds_part"
    full = row_of(columns, "full", "", "1.0000", "1.0000")
    return [full, row_of(columns, "sbp split", "0.25", saved, seconds)]


def table1(sbp=0.27, dropout=0.19):
    shares = {"end-to-end": 1.0, "frame dropout": dropout, "SBP": sbp}
    networks = ("Swin-T", "Swin-B", "small transformer")
    return [
        row_of("network way saved_share", network, *share)
        for network, share in product(networks, shares.items())
    ]


def table2(sbp=0.28, checkpointing=0.38, both=0.2, mixed=0.14):
    shares = {"SBP": sbp, "checkpointing": checkpointing, "SBP + checkpointing": both}
    shares |= {"SBP + mixed precision": mixed}
    return [
        row_of("attention way saved_share", attention, *share)
        for attention, share in product(("explicit", "fused"), shares.items())
    ]


def figure1(bottom=0.9, top=0.4):
    rows = []
    for seed, kind, layer in product((1, 2, 3), ("activations", "gradients"), range(8)):
        cosine = bottom + (top - bottom) * layer / 7 + 0.001 * seed * layer
        rows.append(row_of("seed kind layer cosine", seed, kind, layer, cosine))
    return rows


def figure4(sbp=0.8, dropout=0.6, bottom=0.95):
    columns, rows = "way start seed other_seed layer cka", []
    ways = (("SBP, frame-wise", sbp), ("frame dropout", dropout))
    for (way, top), start, seed, layer in product(ways, ("same", "other"), (1, 2, 3), range(7)):
        cka = (bottom if layer <= 3 else top) - 0.01 * seed
        rows.append(row_of(columns, way, start, seed, seed, layer, cka))
    return rows
