"""The demo: serves a simulated web on a free port, crawls it, and shows the results.

``make demo`` runs ``python -m nutbeam.pipelines.command_line.demo [TABLE]``.
"""

import shutil
import sys
from pathlib import Path

from ...web.simweb.server import SimWeb
from .cli import main as nutbeam

_HOSTS, _PAGES, _ROUNDS = 20, 50, 10
MOST_LINKED = (
    "select target_url, count(*) as links from outlinks group by 1 order by 2 desc limit 5"
)
NEXT_STEPS = f"""
Where to look next:
  .venv/bin/nutbeam readdb {{table}} --top 5
      the best pages
  .venv/bin/nutbeam sql {{table}} \\
      "{MOST_LINKED}"
      the pages with the most links to them
  .venv/bin/nutbeam pages {{table}} -o pages.jsonl
      all pages but duplicates, with title, text and links
  docs/guides/first-crawl.md
      what these figures mean, step by step
  docs/guides/query.md
      the table in SQL, DuckDB, polars
Then a site of your own:
  .venv/bin/nutbeam crawl .work/mine https://your.site/ \\
      --agent_name mybot --agent_email you@your.site
"""


def main(argv: list[str]) -> int:
    """Crawls the simulated web into a table; returns the exit code."""
    table = Path(argv[0] if argv else ".work/demo")
    shutil.rmtree(table, ignore_errors=True)
    with SimWeb(hosts=_HOSTS, pages=_PAGES, seed=7, crawl_delay=0) as web:
        print(f"A simulated web of {_HOSTS} hosts is served on 127.0.0.1:{web.port}.", flush=True)
        reach = [word for entry in web.connect_to for word in ("--connect_to", entry)]
        words = ["crawl", str(table), *web.seeds, "--rounds", str(_ROUNDS), "--server_delay", "0"]
        code = nutbeam([*words, *reach])
    if code == 0:
        print(NEXT_STEPS.format(table=table))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
