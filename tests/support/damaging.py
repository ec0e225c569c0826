"""Damage to files of tables, and what fsck says of it."""

from crawling import files_of, latest_snapshot, manifest_of

from nutbeam.io.table.folder_table import manifest_path


def kinds(record):
    return sorted((p["kind"], p["path"]) for p in record["problems"])


def newest_manifest(table):
    return manifest_path(table, latest_snapshot(table))


def flip(path, at=None):
    """Turns a bit of a file around."""
    data = bytearray(path.read_bytes())
    data[len(data) // 3 if at is None else at] ^= 0x10
    path.write_bytes(data)


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def remove(path):
    path.unlink()


COMPONENTS = ("state", "hosts", "fetchlist", "pages", "host_findings", "documents", "outcome")


def file_of(table, kind):
    manifest = manifest_of(table)
    names = [n for n in manifest.components if n.rpartition("/")[2] == kind]
    return next(path for name in sorted(names) for path in files_of(table, name))
