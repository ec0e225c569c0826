"""The kinds of addresses of files and folders: local ones, and those of each kind of store."""

# Each kind of store: its name, and the extra of nutbeam that installs its client.
STORES = {"gs": ("Google Cloud Storage", "gcp"), "s3": ("S3", "s3"), "hdfs": ("HDFS", "hdfs")}


def is_place(word: str) -> bool:
    """Returns whether a word is the address of a file or folder, here or in a store, and no URL.

    >>> is_place("seeds/a"), is_place("s3://b/a"), is_place("http://a/"), is_place("file:/a")
    (True, True, False, False)
    """
    scheme, marked, _ = word.partition("://")
    return scheme in STORES if marked else not word.startswith("file:/")
