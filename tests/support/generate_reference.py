"""What generate must choose and count, row by row in plain Python."""

import math
from collections import Counter, defaultdict

DAY = 86_400_000
LONGEST = 90 * DAY


def chosen_and_counts(
    rows, now, claimed=(), resting=(), refused=(), moved=(), settings=(), **options
):
    """Returns (keys that are chosen, counts) of a generate.

    Args:
        rows: Rows of the state as dictionaries, with ``host``; no two have one score.
        now: Time, ms.
        claimed: Keys in open batches.
        resting: Hosts that are left alone.
        refused: Keys that the filters refuse.
        moved: Keys that the normalizers rewrite.
        settings: By host, its own ``max_count``, ``boost`` and ``blocked``.
        options: ``wanted``, a function on rows in place of --expr, and options by name.
    """
    counts, left, own = Counter(), defaultdict(list), dict(settings)
    now += options.get("add_days", 0) * DAY
    top_n, most = options.get("top_n", 50_000), options.get("max_count", -1)
    for row in rows:
        if now < row["fetch_time"] <= now + LONGEST:
            continue
        counts["due"] += 1
        reason = _reason(row, claimed, resting, options, own)
        if reason is None and options.get("filter") and row["key"] in refused:
            reason = "filtered"
        if reason is None and options.get("normalize") and row["key"] in moved:
            reason = "normalized"
        left[reason].append(row)
    boost = {host: found.get("boost", 1.0) for host, found in own.items()}
    best = sorted(left.pop(None, []), key=lambda row: -row["score"] * boost.get(row["host"], 1.0))
    by_group, kept = Counter(), []
    for row in best:
        limit = own.get(row["host"], {}).get("max_count")
        whole = limit is None and options.get("count_mode") == "domain"
        group = ".".join(row["host"].split(".")[-2:]) if whole else row["host"]
        by_group[whole, group] += 1
        over = by_group[whole, group] > (most if limit is None else limit)
        bounded = limit is not None or most > 0
        (left["max_count"] if over and bounded else kept).append(row)
    chosen, left["not_best"] = kept[:top_n], kept[top_n:]
    counts["chosen"] = len(chosen)
    counts.update({f"left_out/{reason}": len(some) for reason, some in left.items()})
    return {row["key"] for row in chosen}, dict(+counts)


def _reason(row, claimed, resting, options, own):
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
    if own.get(row["host"], {}).get("blocked"):
        return "host_blocked"
    return "backoff" if row["host"] in resting else None
