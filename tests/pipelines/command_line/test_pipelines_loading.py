"""What commands load: as little as they need, so that they start at once."""

import os
import resource
import subprocess
import sys

import pytest
from waiting import PATIENCE


def python(*words, **options):
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        **options,
    )


def test_help_and_version_come_at_once_and_without_beam():
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = python("-m", "nutbeam", "--help")
    used_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    assert used_s < 1  # 0.1 s; Beam alone takes 2 s
    assert done.returncode == 0
    assert "updatedb" in done.stdout
    assert python("-m", "nutbeam", "--version").stdout.startswith("nutbeam ")
    code = (
        "import sys; from nutbeam.pipelines.command_line import cli; cli.main(['simweb', '--help']);"
        "cli.main(['simweb', '--port=x']); sys.exit('apache_beam' in sys.modules)"
    )
    assert python("-c", code).returncode == 0


def test_a_single_page_is_fetched_without_beam():
    code = (
        "import sys, nutbeam\n"
        "try:\n    nutbeam.fetch('http://127.0.0.1/', agent_name='x', agent_email='x@example.com')\n"
        "except nutbeam.NotFetched as error:\n    print(error.reason, 'apache_beam' in sys.modules)"
    )
    done = python("-c", code)
    assert done.stdout == "address_denied False\n", done.stderr


def test_a_single_page_is_parsed_without_beam():
    code = (
        "import sys, nutbeam\n"
        "page = nutbeam.parse('<title>Pears</title>', 'http://a.com/')\n"
        "print(page.title, 'apache_beam' in sys.modules)"
    )
    done = python("-c", code)
    assert done.stdout == "Pears False\n", done.stderr


@pytest.mark.long
def test_a_crawl_loads_only_the_modules_that_it_needs():
    """Links, indexes, sitemaps and archives are loaded when they are asked for."""
    code = "import sys, nutbeam.pipelines.crawl; print(*sys.modules)"
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    rare = ("nutbeam.pipelines.invertlinks", "nutbeam.pipelines.indexing", "nutbeam.io.indexing.index_writer",
            "nutbeam.policy.indexing.index_documents", "nutbeam.pipelines.sitemaps",
            "nutbeam.pipelines.filterdb", "nutbeam.pipelines.archives", "tantivy")  # fmt: skip
    assert not [name for name in done.stdout.split() if name.startswith(rare)]


def test_a_check_of_a_url_loads_no_tables():
    code = (
        "import sys; from nutbeam.pipelines.command_line import cli; "
        "cli.main(['filterchecker', 'http://a.com/']); print(*sys.modules)"
    )
    done = python("-c", code)
    assert done.stdout.startswith("+http://a.com/"), done.stderr
    tables = ("pyarrow", "apache_beam", "nutbeam.io.table", "nutbeam.io.storage.place_addresses")
    assert not [name for name in done.stdout.split() if name.startswith(tables)]


def test_options_of_other_commands_in_a_file_or_the_environment_load_no_other_command(tmp_path):
    (tmp_path / "nutbeam.toml").write_text("agent_name = 'mybot'\n[crawl]\nrounds = 5\n")
    code = (
        "import sys; from nutbeam.pipelines.command_line import cli; cli.main(['simweb', '--port=x'])"
        "; sys.exit('apache_beam' in sys.modules)"
    )
    env = os.environ | {"NUTBEAM_HOST": "service", "NUTBEAM_AGENT_EMAIL": "me@example.com"}
    done = python("-c", code, cwd=tmp_path, env=env)
    assert (done.returncode, "--port must be" in done.stderr) == (0, True), done.stderr


def test_polars_has_loaded_numpy_before_a_pipeline_has_threads():
    """Two threads that load it at once fail: the proxy of polars takes the place of its own fields."""
    code = (
        "import polars; proxy = polars._dependencies.numpy"
        "; from nutbeam.pipelines.running import runner; runner.make_pipeline([]); print('ndarray' in vars(proxy))"
    )
    assert python("-c", code).stdout == "True\n"
