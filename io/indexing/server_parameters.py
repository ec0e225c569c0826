"""Parameters of the writers for search servers, with Nutch's names for them."""

import dataclasses
from collections.abc import Mapping

from ...web.base.errors import UsageError
from ...web.base.wording import quote_value
from .server_client import ServerClient

# Of every server.
PARAMETERS: Mapping[str, str] = {
    "url": "Address of the server: http://HOST:PORT or https://HOST:PORT, perhaps with a path.",
    "credentials": "File with user and password, a token or an API key, one line as for "
    "--http_credentials. Without it NUTBEAM_INDEX_API_KEY counts, or NUTBEAM_INDEX_TOKEN, or "
    "NUTBEAM_INDEX_USER and NUTBEAM_INDEX_PASSWORD.",
    "ca_file": "File with the certificates of authorities (PEM), if the server's is none of those "
    "that are known.",
    "max_bytes": "Bytes of a request, before gzip. 5,000,000 by default.",
    "max_documents": "Documents of a request. 1,000 by default.",
    "timeout": "How long the server may take for one answer, in seconds. 120 by default.",
    "patience": "How long to try again while the server takes nothing, in seconds. 600 by default.",
}
# Of OpenSearch and Elasticsearch.
SEARCH_PARAMETERS: Mapping[str, str] = {
    **PARAMETERS,
    "name": "Name of the index, which is an alias; by default that of --index.",
    "gzip": "true: requests are packed, which costs CPU and spares the network.",
    "shards": "Number of shards of an index that is created; by default the server's.",
    "replicas": "Copies of each shard of an index that is created; by default the server's.",
    "index_file": "File with settings and mappings, in JSON, for an index that is created.",
}
# Of Solr.
SOLR_PARAMETERS: Mapping[str, str] = {
    **PARAMETERS,
    "url": "Address of the core or collection: http://HOST:8983/solr/CORE.",
    "commit": "finish: commit once, at the end (default); part: after each part of the work, too; "
    "never: leave it to Solr.",
    "commit_within": "Let Solr commit within this many milliseconds.",
    "update_chain": "Chain of update processors; by default one that tolerates errors, if there "
    "is one.",
    "unknown_fields": "refuse: documents with fields that the schema does not have are refused "
    "(default); drop: without these fields they are indexed.",
}
# Parameters of Nutch's index writers, and the names of the same here.
_NUTCH_NAMES = {
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


@dataclasses.dataclass(frozen=True)
class WriterLimits:
    """Limits of a writer.

    Attributes:
        max_bytes: Bytes of a request.
        max_documents: Documents of a request.
        timeout: How long an answer may take, s.
        patience: How long to go on without progress, s.
    """

    max_bytes: int
    max_documents: int
    timeout: float
    patience: float


def writer_limits(parameters: Mapping[str, str]) -> WriterLimits:
    """Returns the limits in the parameters of a writer.

    Raises:
        UsageError: A value is no number that is larger than 0.
    """
    return WriterLimits(
        max_bytes=int(number_parameter(parameters, "max_bytes", 5_000_000)),
        max_documents=int(number_parameter(parameters, "max_documents", 1_000)),
        timeout=number_parameter(parameters, "timeout", 120),
        patience=number_parameter(parameters, "patience", 600, least=0),
    )


def number_parameter(
    parameters: Mapping[str, str], name: str, default: float, least: float = 1e-3
) -> float:
    """Returns the value of a parameter that is a number.

    Raises:
        UsageError: It is none, or too small.
    """
    text = parameters.get(name, "")
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not least <= value < 1e15:
        raise UsageError(f"{name} of an index writer must be a number, got {quote_value(text)}")
    return value


def choice(parameters: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    """Returns the value of a parameter; without one the first choice.

    Raises:
        UsageError: It is none of the choices.
    """
    value = parameters.get(name) or choices[0]
    if value not in choices:
        raise UsageError(
            f"{name} of an index writer must be one of {', '.join(choices)}, got {quote_value(value)}"
        )
    return value


def our_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    """Returns Nutch's parameters under nutbeam's names; other parameters stay as they are.

    Raises:
        UsageError: A parameter needs something that nutbeam does not support: ZooKeeper, or a
            password in the file.

    >>> our_parameters({"host": "a,b", "port": "9200", "index": "nutch", "max.bulk.docs": "250"})
    {'name': 'nutch', 'max_documents': '250', 'url': 'http://a:9200'}
    """
    # Nutch's own file has a user without a password, and uses neither.
    if parameters.get("auth", "false").lower() == "true" or (
        "auth" not in parameters and parameters.get("password")
    ):
        raise UsageError(
            "user and password must be in a file, credentials=FILE, or in the environment, "
            "and not among the parameters of an index writer"
        )
    if parameters.get("type", "http") not in ("http", ""):
        raise UsageError(
            "type of an index writer must be http, with the url of one node, "
            f"got {quote_value(parameters['type'])}"
        )
    renamed = {_NUTCH_NAMES.get(name, name): value for name, value in parameters.items()}
    ours = {name: value for name, value in renamed.items() if name not in _LEFT_OUT}
    if "url" not in ours and (hosts := parameters.get("host")):
        host = hosts.partition(",")[0].strip()
        scheme, port = parameters.get("scheme") or "http", parameters.get("port") or "9200"
        ours["url"] = f"{scheme}://{host}:{port}"
    return {name: value for name, value in ours.items() if value != ""}


def server_client(parameters: Mapping[str, str], *, packed: bool) -> ServerClient:
    """Returns the client of the server that a writer's parameters name.

    Raises:
        UsageError: The address or a file is wrong.
    """
    limits = writer_limits(parameters)
    url, credentials, ca_file = (parameters.get(n, "") for n in ("url", "credentials", "ca_file"))
    return ServerClient(url, credentials, ca_file, limits.timeout, packed, limits.patience)
