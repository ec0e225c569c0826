"""The cells of the state and of the hosts in Bigtable, as their declarations give them."""

from nutbeam.io.bigtable.cell_layout import cell_kind

STATE_CELL = cell_kind("state")
HOST_CELL = cell_kind("hosts")
