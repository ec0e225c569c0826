"""What dedup must say, row by row in plain Python: as Nutch, and near duplicates."""

import functools
import random

from nutbeam.policy.components.schema import Status

FETCHED, DUPLICATE = int(Status.DB_FETCHED), int(Status.DB_DUPLICATE)
ALIVE = (FETCHED, int(Status.DB_NOTMODIFIED))


def bits(one, other):
    """The number of bits in which two signatures of 8 bytes differ."""
    return (int.from_bytes(one) ^ int.from_bytes(other)).bit_count()


def near(one, other, distance):
    """Whether contents are equal, or nearly so."""
    if one == other:
        return True
    return len(one) == len(other) == 8 and 0 < bits(one, other) <= distance


def name_of(key, group):
    """The host or the domain within which pages are compared."""
    host = key.partition(":")[0]
    return {"none": "", "host": host, "domain": ".".join(host.split(".")[:2])}[group]


def plain(key):
    return key.replace(":https/", ":http/")


def compare(one, other, words):
    """-1 if the first page is the better one by these words, else 1; 0 if they do not decide."""
    for word in words:
        if word == "httpsOverHttp":
            if plain(one["key"]) != plain(other["key"]):
                continue
            values = ":https/" in one["key"], ":https/" in other["key"]
        elif word == "urlLength":
            values = -len(one["key"]), -len(other["key"])
        else:
            values = (
                row["score" if word == "score" else "last_fetch_time"] for row in (one, other)
            )
            values = [float("-inf") if value is None else value for value in values]
        if values[0] != values[1]:
            return -1 if values[0] > values[1] else 1
    return 0


def ranked(rows, group, words, distance):
    """The pages from the best to the worst; an http page comes right after the https page that beats it."""

    def better(one, other):
        found = compare(one, other, [word for word in words if word != "httpsOverHttp"])
        return found or (-1 if one["key"] < other["key"] else 1)

    ordered = sorted(rows, key=functools.cmp_to_key(better))
    if "httpsOverHttp" in words:
        by_key = {row["key"]: row for row in rows}
        for row in rows:
            twin = by_key.get(row["key"].replace(":http/", ":https/"))
            alike = twin and twin is not row and near(row["signature"], twin["signature"], distance)
            if alike and (compare(twin, row, words) or better(twin, row)) < 0:
                ordered.remove(row)
                ordered.insert(ordered.index(twin) + 1, row)
    return ordered


def full_dedup(rows, group, words, distance):
    """Returns {key: (status, duplicate_of)} after a dedup of all pages."""
    said = {row["key"]: (row["status"], row["duplicate_of"]) for row in rows}
    pages = [r for r in rows if r["status"] in (*ALIVE, DUPLICATE) and r["signature"] is not None]
    best, leaders = {}, []
    for row in ranked(pages, group, words, distance):
        key, name = row["key"], name_of(row["key"], group)
        equal = best.setdefault((name, row["signature"]), key)
        winner = equal if equal != key else None
        if winner is None and len(row["signature"]) == 8:
            found = (k for n, k, s in leaders if n == name and near(s, row["signature"], distance))
            winner = next(found, None)
            if winner is None:
                leaders.append((name, key, row["signature"]))
        status = row["status"] if row["status"] in ALIVE else FETCHED
        said[key] = (status, None) if winner is None else (DUPLICATE, winner)
    return said


def check_promises(rows, group, distance):
    """Checks that pages that stay are not near each other, and that duplicates name near pages."""
    by_key = {row["key"]: row for row in rows}
    stay = [row for row in rows if row["status"] in ALIVE and row["signature"] is not None]
    for at, one in enumerate(stay):
        for other in stay[:at]:
            if name_of(one["key"], group) == name_of(other["key"], group):
                assert not near(one["signature"], other["signature"], distance), (one, other)
    for row in rows:
        if row["status"] == DUPLICATE:
            winner = by_key[row["duplicate_of"]]
            assert name_of(row["key"], group) == name_of(winner["key"], group)
            if winner["signature"] != row["signature"]:
                assert near(winner["signature"], row["signature"], distance), (row, winner)
                assert winner["status"] in ALIVE, (row, winner)


def random_signature(numbers: random.Random):
    """A signature: one of few MD5s, or a SimHash in one of few clouds, in which chains are usual."""
    if numbers.random() < 0.15:
        return bytes([numbers.randrange(3)]) * 16
    value = (0x0123456789ABCDEF, 0xFFFF0000FFFF0000)[numbers.randrange(2)]
    for _ in range(numbers.randrange(8)):
        value ^= 1 << numbers.choice((0, 1, 2, 17, 18, 33, 34, 35, 36, 50, 51, 63))
    return value.to_bytes(8)


def random_rows(numbers: random.Random, count):
    """Rows of the state, of few hosts, with scores and times that are often equal."""
    keys = sorted(
        {
            f"com.{numbers.choice('ab')}.h{numbers.randrange(2)}:"
            f"{numbers.choice(('http', 'https'))}/{numbers.randrange(count)}"
            for _ in range(count)
        }
    )
    return [random_row(numbers, key) for key in keys]


def random_row(numbers: random.Random, key):
    status = numbers.choice((1, 2, 2, 2, 2, 3, 6))
    signature = random_signature(numbers) if status in ALIVE else None
    return {
        "key": key,
        "status": status,
        "signature": signature,
        "score": numbers.choice((None, 1.0, 2.0)),
        "last_fetch_time": numbers.choice((None, 5, 6)),
        "duplicate_of": None,
    }
