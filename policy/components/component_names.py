"""Names of components in tables of this format and of older ones.

Tables of format 2 and older can still be opened, and their manifests and folders have former names
of two components. So a manifest is read with the present names, and files are looked for in both
folders. New files get the present names; old files stay where they are, because older snapshots
name them.
"""

# Names in tables of format 2 and older, and the present names.
FORMER_NAMES = {"bars": "blocklist", "learnt": "host_findings"}


def present_name(component: str) -> str:
    """Returns the name of a component whose name may be one of an older table.

    >>> present_name("batches/1/learnt"), present_name("state")
    ('batches/1/host_findings', 'state')
    """
    above, slash, name = component.rpartition("/")
    return f"{above}{slash}{FORMER_NAMES.get(name, name)}"


def folders_of(component: str) -> list[str]:
    """Returns the folders that may have files of a component: the former one, and its own.

    >>> folders_of("batches/1/host_findings"), folders_of("state")
    (['batches/1/learnt', 'batches/1/host_findings'], ['state'])
    """
    above, slash, name = component.rpartition("/")
    former = [old for old, new in FORMER_NAMES.items() if new == name]
    return [f"{above}{slash}{folder}" for folder in (*former, name)]
