"""A plug-in of Beam's: a worker that imports it at its start logs as JSON."""

from ...web.base.json_logs import install

install()
