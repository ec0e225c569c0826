"""What the documentation says is what the commands do: every block is run, every name is known."""

import re
import shlex

import pytest
from guide_blocks import blocks, run_as_typed
from here import ROOT

from nutbeam.pipelines.command_line.arguments import command_options, read_invocation, split
from nutbeam.pipelines.command_line.cli import beam_parser, load, option_names
from nutbeam.pipelines.command_line.commands import COMMANDS, GROUPS
from nutbeam.pipelines.command_line.config import DeclaredOptions
from nutbeam.web.base.option_checks import check_setup

README = ROOT / "README.md"
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
DOCS = [README, *sorted((ROOT / "docs").rglob("*.md"))]
# That page is made of Nutch's commands and flags, by make docs.
OWN_NAMES = [page for page in DOCS if page.name != "nutch-commands.md"]
# Commands of these are followed, or checked, by other tests.
PAGES = [
    *DOCS,
    *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md")),
    ROOT / "templates/flink/README.md",
]
pytestmark = pytest.mark.skipif(not GUIDES, reason="docs/ is not part of the wheel")

OPTION = re.compile(r"(?<![\w-])--([a-z][a-z0-9_]*)\b")
NUTBEAM = re.compile(r"(\S*/)?nutbeam ")
# Another program has flags of its own, as Nutch's crawl script; of gcloud's see test_dataflow_docs.py.
OTHERS = re.compile(
    r"(?:\b(?:airflow|apache_beam\.yaml\.main|chromium|docker|gcloud|http\.server)|\$WEBGRAPH\.\w+) (?:[^\n]*\\\n)*.*"
    r"|`crawl --[a-z-]+`|`--ignore-certificate-errors`"
    r"|`--(?:hostdb[a-z]+|[a-z]+-[a-z-]+|http\.agent\.name)[^`]*`"  # of Nutch's crawl script
)
FILE = re.compile(
    r"(?<![\w/.-])((?:benchmarks|tests|docs|templates|io|pipelines|policy|transforms|web)/"
    r"[a-z0-9_/-]*(?:\.py|\.md|(?<=/))(?![\w*]))"
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
USED = re.compile(r"(?:^|[`/ ])nutbeam (?!import\b)([a-z]+)\b", re.MULTILINE)


def label(path):
    return str(path.relative_to(ROOT))


def shape(line):
    """Returns a line without what differs from run to run: numbers, borders, widths.

    >>> shape("│ db_fetched │   91 │"), shape("0.63 s")
    ('db_fetched 0', '0 s')
    """
    line = re.sub(r"[\d.,:]*\d", "0", line)
    return " ".join(re.sub(r"[\u2500-\u257f]+", " ", line).split())


# Guides that take half a minute each, and whose jobs other tests run, too.
LONG = (
    "agents",
    "archives",
    "batches",
    "configuration",
    "extracting",
    "files-and-ftp",
    "from-scrapy",
    "hosts",
    "indexing",
    "links",
    "monitoring",
    "operations",
    "parsing",
    "query",
    "ranks",
    "recrawling",
    "repair",
    "replay",
    "report",
    "scoring",
    "sitemaps",
    "steering",
    "urls",
    "watching",
)
# Guides that need a search server; test_docs_search_servers.py runs them.
WITH_SERVER = ("opensearch", "elasticsearch", "solr")


def guide(path):
    """Returns a guide as a case; that of Beam YAML needs more packages."""
    marks = {"transforms": pytest.mark.yaml, **dict.fromkeys(LONG, pytest.mark.long)}
    return pytest.param(path, id=label(path), marks=[m for m in [marks.get(path.stem)] if m])


@pytest.mark.few(5)
@pytest.mark.parametrize("path", [guide(p) for p in GUIDES if p.stem not in WITH_SERVER])
def test_a_guide_runs_and_prints_the_output_that_it_shows(path, tmp_path, warm_commands):
    lines = [text for text, reason in blocks(path, "bash") if reason is None]
    text = run_as_typed("\n".join(lines), tmp_path, warm_commands)
    printed = {shape(line) for line in text.splitlines()}
    for text, _ in blocks(path, "text"):
        for line in text.splitlines():
            # "…" stands for whatever is there.
            pattern = re.compile(".*".join(map(re.escape, shape(line).split("…"))))
            assert any(map(pattern.fullmatch, printed)), f"{line!r} is not among {printed}"


@pytest.mark.parametrize("path", DOCS, ids=label)
def test_blocks_of_other_pages_say_why_they_are_not_run(path):
    if path not in GUIDES:
        assert [text for text, reason in blocks(path, "bash") if reason is None] == []


def nutbeam_lines(path):
    """Returns the words after ``nutbeam`` in those lines of bash that are not run at all."""
    unrun = [text for text, reason in blocks(path, "bash") if reason and "run by" not in reason]
    texts = [text.replace("\\\n", "") for text in unrun]
    lines = [line for text in texts for line in text.splitlines() if NUTBEAM.match(line)]
    return [shlex.split(line.partition(" > ")[0])[1:] for line in lines]


NOT_RUN_LINES = [(path, words) for path in DOCS if path.exists() for words in nutbeam_lines(path)]


@pytest.mark.parametrize(("path", "words"), NOT_RUN_LINES, ids=lambda value: "")
def test_a_command_that_is_not_run_is_one_that_could_be(path, words):
    module = load(words[0])
    options = command_options(module)
    typed = split(words[1:], options, module.ARGUMENTS, beam_parser)
    known = DeclaredOptions(options, COMMANDS, option_names)
    invocation, _ = read_invocation(words[0], module, typed, {}, known)
    check_setup(invocation.options)  # name and contact are there
    assert not invocation.beam_args
    assert invocation.table or {"address", "archives", "shell"} & set(invocation.arguments)


def test_readme_opens_with_two_commands_and_a_crawl():
    (makes, _), (crawl, _), *_ = blocks(README, "bash")
    assert makes.splitlines() == ["make demo", "make test"]
    assert crawl.startswith(".venv/bin/nutbeam crawl ")
    assert len(crawl.splitlines()) == 1


@pytest.mark.parametrize("path", PAGES, ids=label)
def test_make_targets_exist(path):
    text = "".join(text for text, _ in blocks(path, "bash")) + path.read_text("utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = re.findall(r"(?:^|`)make ([a-z][a-z-]*)", text, re.MULTILINE)
    assert set(named) <= targets


@pytest.mark.parametrize("path", PAGES, ids=label)
def test_files_that_are_named_exist(path):
    text = path.read_text("utf-8")
    named = set(FILE.findall(text)) - set(
        re.findall(r'^```python title="(.+?)"', text, re.MULTILINE)
    )
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("path", PAGES, ids=label)
def test_modules_that_are_named_exist(path):
    def is_there(name):
        parts = name.split(".")[1:]  # the last ones may be in a module
        places = [ROOT.joinpath(*parts[:n]) for n in range(2, len(parts) + 1)]
        return any(place.with_suffix(".py").is_file() for place in places) or places[-1].is_dir()

    named = set(re.findall(r"\bnutbeam\.[a-z_]+\.[\w.]*\w", path.read_text("utf-8")))
    assert [name for name in sorted(named) if not is_there(name)] == []


@pytest.mark.parametrize("path", PAGES, ids=label)
def test_links_lead_somewhere(path):
    targets = [link.partition("#")[0] for link in LINK.findall(path.read_text("utf-8"))]
    relative = [target for target in targets if target and "://" not in target]
    assert [target for target in relative if not (path.parent / target).exists()] == []


def known_options():
    """Returns every option: ours, Beam's, and those of the benchmarks."""
    ours = {name for command in COMMANDS for name in option_names(command)}
    beams = {flag.removeprefix("--") for flag in beam_parser()._option_string_actions}
    scripts = "".join(p.read_text("utf-8") for p in (ROOT / "benchmarks").glob("*.py"))
    # Beam's Python parser passes these on; test_templates_flink_tools.py asks the job server.
    flinks = {"parallelism", "execution_mode_for_batch", "load_balance_bundles",
              "number_of_execution_retries", "flink_conf_dir"}  # fmt: skip
    return ours | beams | flinks | set(OPTION.findall(scripts)) | {"help", "help_all", "version"}


@pytest.mark.parametrize("path", OWN_NAMES, ids=label)
def test_options_exist(path):
    text = OTHERS.sub("", path.read_text("utf-8"))
    assert set(OPTION.findall(text)) <= known_options()


@pytest.mark.parametrize("path", OWN_NAMES, ids=label)
def test_commands_exist(path):
    used = {word for text, _ in blocks(path, "bash") for word in USED.findall(text)}
    used |= {
        w
        for code in re.findall(r"`([^`\n]+)`", path.read_text("utf-8"))
        for w in USED.findall(code)
    }
    assert used <= {*COMMANDS, "help"}


def test_readme_lists_the_commands_of_each_group():
    parts = re.split(r"^\*\*(.+)\*\*$", README.read_text("utf-8"), flags=re.MULTILINE)
    rows = {
        title.lower(): re.findall(r"^\| `([a-z_]+)` \|", table, re.MULTILINE)
        for title, table in zip(parts[1::2], parts[2::2], strict=True)
    }
    names = {
        group.lower(): [name for name, command in COMMANDS.items() if command.group == group]
        for group in GROUPS
    }
    assert list(rows.items()) == list(names.items())


SHOP = {
    "index.html": """<title>Tea</title><a href=green.html>Green</a> <a href=black.html>Black</a>
<div itemscope itemtype="https://schema.org/Product"><h1 itemprop=name>Teapot</h1>
<p itemprop=offers itemscope itemtype="https://schema.org/Offer"><b itemprop=price>24,50</b>
<meta itemprop=priceCurrency content=EUR></div>""",
    **{
        f"{name}.html": f"""<title>{name}</title><script type="application/ld+json">
{{"@type": "Product", "name": "{name.title()} tea", "brand": "Leaf", "offers": {{"price": "{price}", "priceCurrency": "EUR"}}}}
</script><p>{name}"""
        for name, price in (("green", "5.90"), ("black", "4.20"))
    },
}


def test_the_python_of_the_readme_prints_the_output_that_it_shows(tmp_path):
    """With the files of a small shop, and the options that reach them from the environment."""
    page = README.read_text("utf-8")
    (lines,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    site = "https://your.site/"
    assert lines.count(site) == 1
    assert len([line for line in lines.splitlines() if line]) == 3
    shop = tmp_path / "shop"
    shop.mkdir()
    for name, text in SHOP.items():
        (shop / name).write_text(text, "utf-8")
    reach = f"export NUTBEAM_SCHEMES=file NUTBEAM_FILE_ROOTS='{shop}'"
    lines = lines.replace(site, f"file://{shop}/index.html")
    printed = run_as_typed(f"{reach}\npython <<'END'\n{lines}END\n", tmp_path)
    assert printed in [text for text, _ in blocks(README, "text")]
