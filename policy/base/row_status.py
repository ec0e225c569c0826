"""The status of a URL in the table."""

from enum import IntEnum


class Status(IntEnum):
    """A URL's state, with Nutch's codes (CrawlDatum 1.x)."""

    DB_UNFETCHED = 1
    DB_FETCHED = 2
    DB_GONE = 3
    DB_REDIR_TEMP = 4
    DB_REDIR_PERM = 5
    DB_NOTMODIFIED = 6
    DB_DUPLICATE = 7
    DB_ORPHAN = 8
    DB_PARSE_FAILED = 9


# Statuses of pages that their server has, as far as the last fetch says.
FETCHED_STATUSES = (Status.DB_FETCHED, Status.DB_NOTMODIFIED)
# Columns of the state that make a request conditional.
CONDITIONS = ("etag", "last_modified")
