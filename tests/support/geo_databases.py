"""MaxMind databases for tests."""

from mmdb_writer import MMDBWriter
from netaddr import IPSet


def database(path, kind, entries, ip_version=6):
    """Writes a database, an entry by network; returns its path."""
    writer = MMDBWriter(ip_version, kind, ipv4_compatible=ip_version == 6)
    for network, entry in entries.items():
        writer.insert_network(IPSet([network]), entry)
    writer.to_db_file(str(path))
    return str(path)
