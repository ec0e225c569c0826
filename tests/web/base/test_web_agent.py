import pytest
from web_servers import connect_to, reply, serve

from nutbeam.web.base.agent import AgentOptions, require_agent, user_agent
from nutbeam.web.base.options import validate
from nutbeam.web.clients.http_client import Client
from nutbeam.web.exchange.http_options import HttpOptions
from nutbeam.web.robots.robots_options import RobotsOptions


def test_a_name_and_a_contact_are_demanded():
    with pytest.raises(ValueError, match="add --agent_name NAME and --agent_url URL or --agent"):
        require_agent(HttpOptions())
    with pytest.raises(ValueError, match="add --agent_url URL or --agent_email ADDRESS"):
        require_agent(HttpOptions(agent_name="bot"))
    with pytest.raises(ValueError, match=r"add --agent_name NAME$"):
        require_agent(HttpOptions(agent_email="a@example.com"))
    require_agent(HttpOptions(agent_name="bot", agent_url="http://example.com/bot"))


def test_not_where_the_operator_opened_the_way():
    require_agent(HttpOptions(connect_to=("*.example.com:80:127.0.0.1:81",)))
    require_agent(HttpOptions(allow_addresses=("10.0.0.0/8",)))


def test_a_strangers_host_is_not_requested_without_an_agent():
    client = Client(HttpOptions(connect_to=("a.example.com:80:127.0.0.1:81",)))
    assert client.get("http://1.1.1.1/").error == "agent_missing"


def test_the_agent_is_sent():
    with serve(lambda path, connection: reply()) as server:
        options = HttpOptions(
            agent_name="bot", agent_email="a@example.com", connect_to=connect_to(server.port)
        )
        Client(options).get("http://a.example.com/")
    assert "\r\nUser-Agent: bot (a@example.com)\r\n" in server.requests[0][1]


@pytest.mark.parametrize("field", ["agent_version", "agent_description", "agent_url"])
@pytest.mark.parametrize("value", ["a\r\nX: y", "a\0", "caf\xe9", "a\nb", "\x1b[2J"])
def test_nothing_can_be_smuggled_into_the_header(field, value):
    with pytest.raises(ValueError, match=f"{field} must be printable ASCII, got "):
        AgentOptions(**{field: value})


@pytest.mark.parametrize("name", ["my bot", "bot/1", "b.t", "bot²", "böt", "b\r\n"])
def test_the_name_is_a_product_token(name):
    with pytest.raises(ValueError, match="agent_name must be"):
        validate(AgentOptions(agent_name=name))


@pytest.mark.parametrize("name", ["bot2", "360Spider", "a_b-c9"])
def test_names_may_have_digits(name):
    options = HttpOptions(agent_name=name, agent_email="a@example.com")
    validate(options)
    require_agent(options)
    assert user_agent(options) == f"{name} (a@example.com)"
    validate(RobotsOptions(robots_agents=(name,)))


def test_user_agent_without_anything():
    assert user_agent(AgentOptions()) == "nutbeam"
