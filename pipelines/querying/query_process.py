"""Runs queries of strangers in a child process, which is ended when a query takes too long."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from ...web.base.errors import UserError
from ...web.base.wording import in_words
from .limited_query import QueryLimits, QueryResult

_WORKER = f"{__package__}.query_worker"
_START_S = 60.0  # to start the process, on a slow machine


class QueryProcess:
    """A child process for the queries of one table, one at a time; it is started when it is needed.

    Args:
        address: Address of the table.
        limits: The limits of each query.
    """

    def __init__(self, address: str, limits: QueryLimits) -> None:
        self._words, self._limits = json.dumps([address, *limits]), limits
        self._process: subprocess.Popen[str] | None = None

    def answer(self, query: str) -> QueryResult:
        """Returns the result of a query.

        Raises:
            UserError: The query is wrong or refused, or has exceeded a limit.
        """
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = self._start()
            self._ask("SELECT 1", _START_S)
        record = json.loads(self._ask(query, self._limits.seconds))
        if record.get("last"):
            self.close()
        if "error" in record:
            raise UserError(record["error"])
        return QueryResult(**record)

    def _start(self) -> "subprocess.Popen[str]":
        words = [sys.executable, "-m", _WORKER, self._words]
        return subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )

    def _ask(self, query: str, seconds: float) -> str:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        with ThreadPoolExecutor(max_workers=1) as pool:
            line = pool.submit(process.stdout.readline)
            try:
                process.stdin.write(f"{json.dumps(query)}\n")
                process.stdin.flush()
                answer = line.result(seconds)
            except TimeoutError:
                self.close()
                raise UserError(
                    f"the query took more than {in_words(seconds)} and was stopped: select less"
                ) from None
            except BrokenPipeError:
                answer = ""
            except BaseException:
                self.close()  # else the pool waits for the line
                raise
        if not answer:
            self.close()
            raise UserError("the process of the query has ended: it may have taken too much memory")
        return answer

    def close(self) -> None:
        """Ends the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
