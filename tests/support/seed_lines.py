"""Lines of seed lists."""

import random


def lines_that_shrink_little(number):
    """Returns lines of URLs, whose packed form is nearly as long."""
    made = random.Random(number)
    return b"".join(b"http://a.com/%x\n" % made.getrandbits(400) for _ in range(number))
