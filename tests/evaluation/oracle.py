"""The protocols once more, slowly, written from their descriptions."""


def literal_recall(ground_truth, proposals):
    """Return recall[threshold][budget] by loops over plain lists.

    Budgets are percentages of each video's list; see the module's docstring for the words.
    """
    videos = [video for video, instances in ground_truth.items() if len(instances)]
    everything = sum(len(proposals.get(video, ())) for video in videos)
    wanted = 100 * float(len(videos))
    tious, lists = {}, {}
    for video in videos:
        given = list(proposals.get(video, ()))
        best_first = sorted(given, key=lambda row: -row[2])  # stable
        share = int(len(given) * (wanted / everything)) if everything else 0
        lists[video] = best_first[: min(share, len(given))]
        tious[video] = [
            [_tiou(*one, *row[:2]) for row in lists[video]] for one in ground_truth[video]
        ]
    kept = sum(map(len, lists.values()))
    recall = []
    for step in range(10):
        threshold = (10 + step) / 20
        curve = []
        for number in range(1, 101):
            found = total = 0
            for video in videos:
                share = number / 100 * (wanted / kept) if kept else 0
                contributed = int(len(lists[video]) * share)
                for row in tious[video]:
                    total += 1
                    found += any(tiou >= threshold - 1e-12 for tiou in row[:contributed])
            curve.append(found / total)
        recall.append(curve)
    return recall


def literal_auc(recall):
    """Return the area of the mean curve by trapezoids one wide, in percent of 100."""
    curve = [sum(row[j] for row in recall) / len(recall) for j in range(100)]
    return sum((curve[j] + curve[j + 1]) / 2 for j in range(99))


def _tiou(start, end, other_start, other_end):
    shared = min(end, other_end) - max(start, other_start)
    if shared <= 0:
        return 0.0
    return shared / ((end - start) + (other_end - other_start) - shared)


def literal_thumos14(ground_truth, proposals, fps):
    """Return (recall[threshold][percentage], average numbers) of THUMOS14's protocol."""
    videos = [v for v in ground_truth if len(ground_truth[v]) and len(proposals.get(v, ()))]
    tious, lists = {}, {}
    for video in videos:
        rate = fps[video]
        best_first = sorted(proposals[video], key=lambda row: -row[2])  # stable
        lists[video] = [set(range(round(a * rate), round(b * rate) + 1)) for a, b, _ in best_first]
        frames = [set(range(round(a * rate), round(b * rate) + 1)) for a, b in ground_truth[video]]
        tious[video] = [[len(one & two) / len(one | two) for two in lists[video]] for one in frames]
    recall = []
    for step in range(11):
        curve = []
        for percent in range(1, 101):
            found = total = 0
            for video in videos:
                contributed = int(len(lists[video]) * (percent / 100))
                for row in tious[video]:
                    total += 1
                    found += any(tiou >= 0.5 + step * 0.05 for tiou in row[:contributed])
            curve.append(found / total)
        recall.append(curve)
    mean_length = sum(map(len, lists.values())) / len(videos)
    return recall, [percent / 100 * mean_length for percent in range(1, 101)]


def literal_at(curve, average_numbers, number):
    """Return the curve at one number on the straight line between its neighbours, or None."""
    pairs = list(zip(average_numbers, curve, strict=True))
    for (low, before), (high, after) in zip(pairs, pairs[1:], strict=False):
        if low <= number <= high:
            return before + (after - before) * (number - low) / (high - low)
    return None


def literal_average_precision(ground_truth, proposals, threshold):
    """Return the average precision of one class at one tIoU, proposal by proposal."""
    listed = [(row, video) for video in proposals for row in proposals[video]]
    listed = [(row, video) for row, video in listed if video in ground_truth]
    taken = {video: [False] * len(ground_truth[video]) for video in ground_truth}
    instances = sum(map(len, taken.values()))
    recall, precision = [0.0], [0.0]
    right = 0
    ranked = sorted(listed, key=lambda pair: -pair[0][2])  # stable
    for rank, ((start, end, _), video) in enumerate(ranked, start=1):
        tious = [_tiou(start, end, a, b) for a, b in ground_truth[video]]
        for index in sorted(range(len(tious)), key=lambda index: (tious[index], index))[::-1]:
            if tious[index] < threshold:
                break
            if not taken[video][index]:
                taken[video][index] = True
                right += 1
                break
        recall.append(right / instances)
        precision.append(right / rank)
    return sum(
        (recall[place] - recall[place - 1]) * max(precision[place:])
        for place in range(1, len(recall))
        if recall[place] != recall[place - 1]
    )
