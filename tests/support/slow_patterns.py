"""A pattern that takes for ever, and a URL that it does so on."""

# As a whole, it is no word of polars' engine, and takes Python's an age.
STALLS = "(a|a)*(?=x)$"


SLOW = "http://foo.com/" + "a" * 40
