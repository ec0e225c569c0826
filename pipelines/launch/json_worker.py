"""A Beam plug-in: workers import it at their start, and then log as JSON."""

from ...web.base.json_logs import install

install()
