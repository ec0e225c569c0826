"""What generate must choose and count, row by row in plain Python."""

import math
from collections import Counter, defaultdict

DAY = 86_400_000
LONGEST = 90 * DAY


def chosen_and_counts(rows, now, claimed=(), resting=(), refused=(), moved=(), **options):
    """Returns (keys that are chosen, counts) of a generate.

    Args:
        rows: Rows of the state as dictionaries, with ``host``; no two have one score.
        now: Time, ms.
        claimed: Keys in open batches.
        resting: Hosts that are left alone.
        refused: Keys that the filters refuse.
        moved: Keys that the normalizers rewrite.
        options: ``wanted``, a function on rows in place of --expr, and options by name.
    """
    counts, left = Counter(), defaultdict(list)
    top_n, most = options.get("top_n", 50_000), options.get("max_count", -1)
    for row in rows:
        if now < row["fetch_time"] <= now + LONGEST:
            continue
        counts["due"] += 1
        reason = _reason(row, claimed, resting, options)
        if reason is None and options.get("filter") and row["key"] in refused:
            reason = "filtered"
        if reason is None and options.get("normalize") and row["key"] in moved:
            reason = "normalized"
        left[reason].append(row)
    best = sorted(left.pop(None, []), key=lambda row: -row["score"])
    by_host, kept = Counter(), []
    for row in best:
        by_host[row["host"]] += 1
        (left["max_count"] if 0 < most < by_host[row["host"]] else kept).append(row)
    chosen, left["not_best"] = kept[:top_n], kept[top_n:]
    counts["chosen"] = len(chosen)
    counts.update({f"left_out/{reason}": len(some) for reason, some in left.items()})
    return {row["key"] for row in chosen}, dict(+counts)


def _reason(row, claimed, resting, options):
    wanted = options.get("wanted")
    score = row["score"]
    if "status" in options and row["status"] != options["status"]:
        return "status"
    if row["distance"] > options.get("max_distance", 99):
        return "too_far"
    if row["fetch_interval"] > options.get("interval", 1 << 40):
        return "long_interval"
    if wanted is not None and not wanted(row):
        return "expr"
    if math.isnan(score) or score < options.get("min_score", 0.0):
        return "low_score"
    if row["key"] in claimed:
        return "in_batch"
    return "backoff" if row["host"] in resting else None
