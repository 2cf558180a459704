"""The stage's algorithms once more, slowly, written from their descriptions."""

import math


def iou(first, second):
    """Return the tIoU of two (start, end) pairs."""
    shared = max(0.0, min(first[1], second[1]) - max(first[0], second[0]))
    union = (first[1] - first[0]) + (second[1] - second[0]) - shared
    return shared / union if union > 0 else 0.0


def candidates(probabilities, ratio, limit, shortest=1, longest=0):
    """Return [(start bin, end bin, p_start, p_end)], best first."""
    bins = len(probabilities)

    def marked(column, index):
        values = [row[column] for row in probabilities]
        peak = (
            0 < index < bins - 1
            and values[index] > values[index - 1]
            and values[index] > values[index + 1]
        )
        return peak or values[index] > ratio * max(values)

    found = []
    for start in range(bins):
        for end in range(start + shortest, bins):
            if longest and end - start > longest:
                continue
            if (start == 0 or marked(0, start)) and (end == bins - 1 or marked(2, end)):
                found.append((start, end, probabilities[start][0], probabilities[end][2]))
    found.sort(key=lambda row: (-row[2] * row[3], row[0], row[1]))
    return found[:limit]


def sample(actionness, place):
    """Return actionness at `place` in bins from the video's start, linear between bin centres."""

    def at(index):
        return actionness[index] if 0 <= index < len(actionness) else 0.0

    left = math.floor(place - 0.5)
    share = place - 0.5 - left
    return (1 - share) * at(left) + share * at(left + 1)


def bsp(actionness, segment):
    """Return the 32 values of a segment given in 0…1."""
    start, end = (edge * len(actionness) for edge in segment)
    reach = (end - start) / 5
    values = []
    for low, high, count in (
        (start, end, 16),
        (start - reach, start + reach, 8),
        (end - reach, end + reach, 8),
    ):
        step = (high - low) / (count - 1)
        for index in range(count):
            first = low + (index - 0.5) * step
            finer = [sample(actionness, first + third * step / 3) for third in range(4)]
            values.append(sum(finer) / 4)
    return values


def suppress(rows, low, slope, epsilon, keep, full_width):
    """Return [(start, end, score)] by Soft-NMS; `rows` likewise."""
    left = [list(row) for row in sorted(rows, key=lambda row: (-row[2], row[0], row[1]))]
    kept = []
    while left and len(kept) < keep:
        best = max(left, key=lambda row: row[2])  # the first of equals
        left.remove(best)
        kept.append(tuple(best))
        for row in left:
            shared = iou(best[:2], row[:2])
            if shared > low + slope * (best[1] - best[0]) / full_width:
                row[2] *= math.exp(-(shared**2) / epsilon)
    return kept


def groups(signal, levels, tolerances):
    """Return the set of (first bin, bin after the last) of TAG."""
    found = set()
    for level in levels:
        basins, index = [], 0
        while index < len(signal):
            if signal[index] >= level:
                first = index
                while index < len(signal) and signal[index] >= level:
                    index += 1
                basins.append((first, index))
            else:
                index += 1
        for tolerance in tolerances:
            for seed, (first, end) in enumerate(basins):
                inside = end - first
                for next_first, next_end in basins[seed + 1 :]:
                    inside += next_end - next_first
                    if inside / (next_end - first) < tolerance:
                        break
                    end = next_end
                found.add((first, end))
    return found
