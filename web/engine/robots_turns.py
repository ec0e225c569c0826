"""Turns that fetch robots.txt: one request each, to the host of the queue."""

from ..clients.http_client import Client
from ..exchange.status import Response, classify
from ..network.failures import NOT_SENT
from ..robots.robots import ROBOTS_REQUEST_BYTES, RobotsRecord, RobotsRules, robots_steps
from ..robots.robots_options import RobotsOptions
from .host_queue import HostQueue, HostTurn, turn_of
from .robots_search import RobotsAnswers, RobotsSearch, owner_of
from .tasks import Task


class RobotsTurns:
    """Takes the engine's turns for robots.txt.

    Args:
        options: Agents, and limits of redirects.
        client: Makes the requests.
        answers: Responses to earlier requests.

    Attributes:
        agents: Product tokens whose groups of a robots.txt apply.
    """

    def __init__(self, options: RobotsOptions, client: Client, answers: RobotsAnswers) -> None:
        self._options, self._client, self._answers = options, client, answers
        self.agents = (client.token, *options.robots_agents)

    async def search(
        self, queue: HostQueue, task: Task, origin: str
    ) -> tuple[HostTurn, RobotsRules | None]:
        """Continues the search for a page's robots.txt; sends the page's host at most one request.

        Returns:
            (turn, rules). The rules are None if the search continues in another turn, to the same
            host or to the host of ``turn.follow``.
        """
        search = queue.searches.get(origin) or self._begin(queue, task.host, origin)
        turn, rules = HostTurn(queue, task), None
        while rules is None:
            hop = self._hop(search, task.host)
            answer = search.answer or self._stored_answer(search.url, own=hop is None)
            if answer is None and hop is not None:
                turn.search, turn.follow = search, hop
                return turn, None
            if answer is None and turn.requested:
                turn.again = True
                return turn, None
            if answer is None:
                answer = await self._request(search.url)
                turn.requested = answer.error not in NOT_SENT
                if answer.status:
                    answer = self._answers.put(answer)
            rules = search.proceed(answer)
        del queue.searches[origin]
        return turn, rules

    def _begin(self, queue: HostQueue, host: str, origin: str) -> RobotsSearch:
        most, earlier = self._options.robots_redirect_max, earlier_record(queue, host, origin)
        search = queue.searches[origin] = RobotsSearch(
            robots_steps(self.agents, origin, most, earlier)
        )
        return search

    def _hop(self, search: RobotsSearch, own: str) -> Task | None:
        """Returns the task for the next request for a robots.txt, if it goes to another host."""
        hop = Task(search.url, robots=True)
        try:
            hop.host = self._client.host(hop.url)
        except ValueError:
            search.answer = Response(hop.url, error="bad_url")
            return None
        if hop.host == own:
            return None
        owner = owner_of(hop.host)
        search.owner = owner if owner != owner_of(own) else ""
        return hop

    async def _request(self, url: str) -> Response:
        # On a new connection, because the server may have closed an idle one.
        return await self._client.request(url, content_limit=ROBOTS_REQUEST_BYTES, fresh=True)

    def _stored_answer(self, url: str, own: bool) -> Response | None:
        answer = self._answers.get(url)
        # Failures of requests for other hosts do not count for the host's own pages.
        return None if answer is None or (own and not answer.status) else answer

    async def fetch_for_others(self, queue: HostQueue, task: Task) -> HostTurn:
        """Fetches a robots.txt that is the target of redirects from other hosts."""
        answer = self._answers.get(task.url)
        if answer is not None:
            return HostTurn(queue, task, answer=answer)
        answer = self._answers.put(await self._request(task.url))
        unsent = not answer.status and answer.error in NOT_SENT
        turn = HostTurn(queue, task) if unsent else turn_of(queue, task, answer, classify(answer))
        turn.answer = answer
        return turn


def earlier_record(queue: HostQueue, host: str, origin: str) -> RobotsRecord | None:
    """Returns the robots.txt that an earlier run has read, at any age."""
    state = queue.hosts[host]
    if state.unreachable is not None and state.unreachable[0] == origin:
        return state.unreachable[1]
    findings = state.findings
    return findings.robots if findings is not None and findings.robots_origin == origin else None
