"""What a failed job has to say to the user, found in what runners wrap around it.

In this process a worker's exception arrives as it is. Workers elsewhere send
the text of a traceback, which job servers put into exceptions of their own.
"""

import importlib
import re
from collections.abc import Iterator

from ...io.storage.scratch import ScratchFull, full_by
from ...web.base.errors import JobFailed, UserError, one_line

_LONGEST = 500
# Beam appends the step to the message of an exception, once per step it passed.
_STEPS = re.compile(r"(?: \[while running ['\"].*?['\"]\])+\s*$", re.DOTALL)
# An exception as the last part of a traceback: a name at the start of a line, and a message up to
# an empty line, the next traceback, or the stack of a job server in Java.
_END = r"(?=\n\s*\n|\s*\Z|\nDuring|\nThe above|\nTraceback|\n?\s+at [\w.$]+\(|\nCaused by:)"
_RAISED = re.compile(rf"^((?:[a-z_]\w*\.)*[A-Z]\w*)(?:: (.*?))?{_END}", re.MULTILINE | re.DOTALL)
_OURS = re.compile(rf"^\s*(nutbeam(?:\.\w+)+): (.*?){_END}", re.MULTILINE | re.DOTALL)
_JAVA = re.compile(
    rf"^(?:Caused by: )?((?:[a-z]\w*\.)+[A-Z][\w$]*): (.*?){_END}", re.MULTILINE | re.DOTALL
)
_JOB = re.compile(r"^Pipeline \S+ failed in state \w+: (?:bundle \S+ \S+ failed:)?")
_MISSING = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")

# Why urllib could not fetch something, without its own words around it.
_URLLIB = r"(?:<urlopen error (?:\[Errno -?\d+\] )?)?(.{1,200}?)>?(?:\. Also|\s*$)"

# What the failures of clusters mean, by what they say; \1 is what the first group says.
_MEANINGS = {
    rf"Unable to fetch remote prism binary at (\S+?): {_URLLIB}": (
        r"Prism cannot be fetched from '\1' (\2): build it with "
        "go install github.com/apache/beam/sdks/v2/go/cmd/prism, and give --prism_location"
    ),
    rf"Unable to fetch remote job server jar at (\S+?): {_URLLIB}": (
        r"the job server cannot be fetched from '\1' (\2): give its jar "
        "(--flink_job_server_jar, --spark_job_server_jar) or another --flink_version, or start "
        "the job server elsewhere and give --runner=PortableRunner"
    ),
    r"Service failed to start up with error (-?\d+)": (
        r"the job server that Beam has started here ended at once, with code \1: "
        "--log_level info shows what it said"
    ),
    # Of a chain of causes Flink sends the innermost.
    r"NoResourceAvailableException|TimeoutException: Timeout has occurred: \d+ ms": (
        "the cluster has no free slot: wait for a job to end, or add workers"
    ),
    r"Process died with exit code \d+": (
        "the workers do not start (their boot program failed): see their log; they need Python, "
        "Beam, and nutbeam's dependencies or a package index to install them from"
    ),
    r"Waited \d+ minutes? .*SettableFuture": (
        "the workers do not begin: most often a package is missing on them, their log says "
        "which; leave out --deliver false, or install it in their image"
    ),
    r"Cannot run program \"docker\"|exec: \"docker\"": (
        "the workers are to run in Docker, which is not there: install it, "
        "or give another --environment_type"
    ),
    r"Cannot run program|IOException: error=\d+,": (
        "the workers do not start: the process_command of --environment_options cannot be run"
    ),
    r"DefaultCredentialsError": (
        "no Google Cloud credentials: run gcloud auth application-default login, "
        "or let GOOGLE_APPLICATION_CREDENTIALS name a key file"
    ),
}


def user_error(error: BaseException) -> UserError:
    """Returns what a failed job has to say to the user, without what runners wrap around it.

    >>> user_error(RuntimeError("Traceback ...\\nOSError: disk full [while running 'Write']"))
    JobFailed("OSError: disk full (in step 'Write')")
    """
    for cause in causes(error):
        if isinstance(cause, UserError):
            return type(cause)(_without_steps(str(cause)))
        if isinstance(cause, OSError) and (said := full_by(cause)):
            return ScratchFull(said)
    details = getattr(error, "details", None)
    if callable(details) and callable(getattr(error, "code", None)):  # of gRPC
        said = _line("the job server failed", str(details() or error))
        return JobFailed(f"{said}; a job that it had begun may go on where it runs")
    message = str(error)
    if isinstance(error, RuntimeError) or "Traceback (most recent call last)" in message:
        return from_text(message)
    return JobFailed(_meaning(message) or _line(type(error).__name__, message))


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yields an exception and what caused it; Beam's copy of one has no cause but a context."""
    while error is not None:
        yield error
        copied = "[while running " in str(error)
        error = error.__cause__ or (error.__context__ if copied else None)


def from_text(text: str) -> UserError:
    """Returns what the text of an error says, as runners with other processes send it.

    An error of ours that is in it counts; else what is known to be the user's
    to mend; else the last exception in Python, else the first cause in Java.
    """
    text = _JOB.sub("", text)
    for found in reversed(list(_OURS.finditer(text))):
        module, _, short = found[1].rpartition(".")
        kind = getattr(_imported(module), short, None)
        if isinstance(kind, type) and issubclass(kind, UserError):
            return kind(_without_steps(found[2]))
    meaning = _meaning(text)
    if meaning:
        return JobFailed(meaning)
    if "Traceback" in text:
        raised = list(_RAISED.finditer(text))
        if raised:
            return JobFailed(_line(raised[-1][1].rpartition(".")[2], raised[-1][2] or ""))
    java = list(_JAVA.finditer(text))
    if java:
        return JobFailed(_line(java[-1][1].rpartition(".")[2], java[-1][2]))
    return JobFailed(_line("", text.strip()) or "no reason was given")


def _imported(module: str) -> object:
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


def _meaning(text: str) -> str | None:
    missing = _MISSING.findall(text)
    if missing:
        package = missing[-1].partition(".")[0]
        cure = (
            "leave out --deliver false" if package == "nutbeam" else f"--plugin_package {package}"
        )
        return (
            f"package {missing[-1]!r} is missing on the workers: {cure}, "
            "or install it in their image"
        )
    found = ((re.search(said, text), meaning) for said, meaning in _MEANINGS.items())
    return next((match.expand(meaning) for match, meaning in found if match), None)


def _without_steps(message: str) -> str:
    return one_line(_STEPS.sub("", message))


def _line(name: str, message: str) -> str:
    steps = re.findall(r"\[while running ['\"](.*?)['\"]\]", message)
    step = f" (in step {steps[0]!r})" if steps else ""
    text = ": ".join(part for part in (name, _without_steps(message)) if part)
    return text[:_LONGEST] + step
