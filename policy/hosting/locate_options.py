"""Options of generate with one queue per address."""

from ...web.base.joined_options import joined_options
from ...web.base.option_checks import Launch
from ...web.exchange.addresses import AddressOptions
from ..generating.selection import GenerateOptions
from .host_settings import host_expressions


@joined_options
class LocateOptions(GenerateOptions, AddressOptions):
    """Options for partitions by address."""

    def check_setup(self, _: Launch) -> None:
        """Compiles the expressions over the host table."""
        host_expressions(self)
