"""A plug-in of Beam's: a worker that imports it at its start logs as JSON."""

from ..web.json_logs import install

install()
