"""Tables of scores by video, as the evaluation writes them, for tests of what is made of them."""

from actionspan.storage.writing import write_tsv

COLUMNS = (
    "video_id",
    "instances",
    "proposals",
    "AR@1",
    "AR@5",
    "AR@10",
    "AR@50",
    "AR@100",
    "AUC",
    "thumos14_AR@50",
    "thumos14_AR@100",
    "thumos14_AR@200",
    "thumos14_AR@500",
)


def write_scores(path, levels, *, gain=0.0, instances=None, long_lists=False):
    """Write the table of videos a, b, … whose AR are multiples of `levels` (fractions) + `gain`."""
    rows = []
    for number, level in enumerate(levels):
        recalls = [level * share + gain for share in (0.2, 0.4, 0.5, 0.8, 1.0)]
        thumos = [repr(recalls[3]), repr(recalls[4])]
        thumos += [repr(recalls[4]), repr(recalls[4])] if long_lists else ["", ""]
        count = instances[number] if instances else number + 1
        auc = 90 * level + 100 * gain
        rows.append([chr(97 + number), count, 100, *map(repr, recalls), repr(auc), *thumos])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_tsv(path, COLUMNS, reversed(rows))  # the files are sorted by recall, not by id
    return path
