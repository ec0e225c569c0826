"""Translates the parameters of Nutch's index writers for servers into those of nutbeam's writers."""

from collections.abc import Mapping

from ...web.base.wording import quote_value

_NAMES = {
    "commitSize": "max_documents",
    "max.bulk.docs": "max_documents",
    "max.bulk.size": "max_bytes",
    "index": "name",
}
# What has no meaning here: the address says it, or waiting follows the server.
_LEFT_OUT = (
    *("type", "collection", "cluster", "weight.field", "bulk.close.timeout"),
    *("exponential.backoff.millis", "exponential.backoff.retries"),
    *("auth", "username", "password", "host", "port", "scheme"),
)


def from_nutch(parameters: Mapping[str, str]) -> dict[str, str]:
    """Returns Nutch's parameters under nutbeam's names; other parameters stay as they are.

    Raises:
        ValueError: A parameter needs something that nutbeam does not support: ZooKeeper, or a
            password in the file.

    >>> from_nutch({"host": "a,b", "port": "9200", "index": "nutch", "max.bulk.docs": "250"})
    {'name': 'nutch', 'max_documents': '250', 'url': 'http://a:9200'}
    """
    # Nutch's own file has a user without a password, and uses neither.
    if parameters.get("auth", "false").lower() == "true" or (
        "auth" not in parameters and parameters.get("password")
    ):
        raise ValueError(
            "user and password must be in a file, credentials=FILE, or in the environment, "
            "and not among the parameters of an index writer"
        )
    if parameters.get("type", "http") not in ("http", ""):
        raise ValueError(
            "type of an index writer must be http, with the url of one node, "
            f"got {quote_value(parameters['type'])}"
        )
    renamed = {_NAMES.get(name, name): value for name, value in parameters.items()}
    ours = {name: value for name, value in renamed.items() if name not in _LEFT_OUT}
    if "url" not in ours and (hosts := parameters.get("host")):
        host = hosts.partition(",")[0].strip()
        scheme, port = parameters.get("scheme") or "http", parameters.get("port") or "9200"
        ours["url"] = f"{scheme}://{host}:{port}"
    return {name: value for name, value in ours.items() if value != ""}
