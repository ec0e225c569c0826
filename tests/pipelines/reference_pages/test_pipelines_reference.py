import dataclasses
import re
import shutil

import pytest
from here import ROOT

import nutbeam
from nutbeam.pipelines.base.command import Argument, CommonOptions
from nutbeam.pipelines.command_line.arguments import command_options
from nutbeam.pipelines.command_line.cli import beam_parser, load
from nutbeam.pipelines.command_line.commands import COMMANDS
from nutbeam.pipelines.launch.job_options import JobOptions
from nutbeam.pipelines.reference_pages import template_files
from nutbeam.pipelines.reference_pages.parameter_patterns import parameter_pattern
from nutbeam.pipelines.reference_pages.reference import main, modules, option_tables
from nutbeam.pipelines.reference_pages.template_files import (
    JOB_PARAMETER,
    NOT_IN_TEMPLATES,
    TEMPLATES,
    template,
)
from nutbeam.web.base.options import (
    check_value,
    default_text,
    option,
    options_of,
    parse_value,
)

# What the model of a template's parameter knows (DataflowTemplates, ImageSpecParameter).
# Beam's makes a job for Dataflow and does not submit it; ours runs a job that changes nothing.
SHARED = {"--dry_run"}
KEYS = {"name", "label", "helpText", "isOptional", "regexes", "paramType", "defaultValue",
        "enumOptions", "groupName"}  # fmt: skip
TYPES = {"TEXT", "NUMBER", "BOOLEAN", "ENUM"}
from_source = pytest.mark.skipif(
    not (ROOT / "docs").is_dir(), reason="docs/ and templates/ are not part of the wheel"
)


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """The folder in which make docs has written all that it generates."""
    folder = tmp_path_factory.mktemp("generated")
    for name in ("docs/reference", "templates"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("api", "command_line", "as_in_nutch", "nutch_conf"):
        (folder / "pipelines" / name).mkdir(parents=True)
    main([str(folder)])
    return folder


@from_source
@pytest.mark.parametrize(
    ("folder", "files"),
    [
        ("docs/reference", "*.*"),
        ("templates", "*.*"),
        ("pipelines/command_line", "*.txt"),
        ("pipelines/as_in_nutch", "option_*.txt"),
        ("pipelines/nutch_conf", "option_*.txt"),
        ("pipelines/api", "table_*.py"),
        ("pipelines/api", "job_*.py"),
    ],
)
def test_generated_files_are_up_to_date(folder, files, generated):
    made = {path.name: path.read_text() for path in (generated / folder).glob(files)}
    committed = {path.name: path.read_text() for path in (ROOT / folder).glob(files)}
    assert committed == made, "run make docs"


@from_source
def test_the_page_of_python_has_each_public_name():
    page = (ROOT / "docs" / "reference" / "python.md").read_text("utf-8")
    others = {"__version__", "transforms"}  # the guide of transforms has these
    names = [
        name
        for name in nutbeam.__all__
        if name not in others and not nutbeam._MODULES[name].startswith("transforms.")
    ]
    methods = [name for name in dir(nutbeam.Table) if not name.startswith("_")]
    headings = [*(rf"nutbeam\.{n}\b|### {n}\b|## {n}\b" for n in names),
                *(rf"Table\.{n}\b|`{n}\(" for n in methods)]  # fmt: skip
    assert len(names) > 20
    assert [each for each in headings if not re.search(each, page)] == []


def test_every_job_that_changes_the_table_has_a_template():
    jobs = {c for c, module in modules().items() if issubclass(module.Options, JobOptions)}
    # Loops on the caller's machine: a scheduler has the jobs and the round. A copy
    # changes nothing in the table that it is of. Two words are index and clean with another default.
    words = {"solrindex", "solrclean"}
    # hostinject, freegen and import_warc read files of the machine where they are typed. mergedb makes one table
    # of others, as a copy does.
    alone = {
        "crawl",
        "next",
        "copy",
        "hostinject",
        "freegen",
        "import_warc",
        "import_nutch",
        "mergedb",
    }
    assert set(TEMPLATES) == jobs - alone - words


@pytest.mark.parametrize("command", TEMPLATES)
def test_every_parameter_is_an_argument_or_an_option(command):
    module = load(command)
    known = command_options(module)
    arguments = {JOB_PARAMETER, *(argument.name for argument in module.ARGUMENTS)}
    for parameter in template(command)["parameters"]:
        name = parameter["name"]
        assert (name in known) != (name in arguments), name
        assert name not in NOT_IN_TEMPLATES


@pytest.mark.parametrize("command", TEMPLATES)
def test_every_option_and_argument_is_a_parameter(command):
    module = load(command)
    parameters = [parameter["name"] for parameter in template(command)["parameters"]]
    assert len(parameters) == len(set(parameters))
    arguments = (argument.name for argument in module.ARGUMENTS)
    wanted = {JOB_PARAMETER, *command_options(module), *arguments}
    assert wanted - set(parameters) == NOT_IN_TEMPLATES.keys() & wanted


def test_options_that_templates_leave_out_exist_and_have_a_reason():
    everywhere = set.intersection(*(set(command_options(load(c))) for c in TEMPLATES))
    assert set(NOT_IN_TEMPLATES) <= everywhere
    assert all(NOT_IN_TEMPLATES.values())


@pytest.mark.parametrize("command", TEMPLATES)
def test_beams_options_are_the_launchers(command):
    beams = beam_parser()._option_string_actions
    names = {parameter["name"] for parameter in template(command)["parameters"]}
    assert not {f"--{name}" for name in names} & set(beams) - SHARED


@pytest.mark.parametrize("command", TEMPLATES)
def test_parameters_are_ones_that_dataflow_knows(command):
    for parameter in template(command)["parameters"]:
        assert set(parameter) <= KEYS, parameter
        assert re.fullmatch("[a-z][a-z0-9_]*", parameter["name"])
        assert parameter["paramType"] in TYPES
        assert parameter["label"]
        assert parameter["helpText"]
        assert ("enumOptions" in parameter) == (parameter["paramType"] == "ENUM")
        assert parameter["regexes"]
        for regex in parameter["regexes"]:
            re.compile(regex)
            # RE2 and JavaScript read it too: no look-around, names, back references.
            assert not re.search(r"\(\?(?!:)|\\[1-9AZ]", regex), regex


@pytest.mark.parametrize("command", TEMPLATES)
def test_defaults_and_choices_are_taken(command):
    known = command_options(load(command))
    for parameter in template(command)["parameters"]:
        declared = known.get(parameter["name"])
        if declared is None:
            continue
        texts = [choice["value"] for choice in parameter.get("enumOptions", [])]
        for text in texts:
            assert parse_value(declared, text) in declared.choices
        text = parameter.get("defaultValue", "")
        assert text == default_text(declared)
        if declared.default != "":
            assert parse_value(declared, text) == declared.default
        if text:
            assert not texts or text in texts


@pytest.mark.parametrize("command", modules())
def test_every_option_is_well_declared(command):
    ours = (*options_of(load(command).Options), *options_of(CommonOptions))
    beams = beam_parser()._option_string_actions
    for known in ours:
        assert known.flag not in beams.keys() - SHARED, f"{known.flag} is Beam's"
        assert known.help
        if known.default != "":  # may be the word for "not given"
            assert check_value(known, known.default) == known.default


def test_every_command_has_its_help():
    for name, command in COMMANDS.items():
        assert command.help.endswith("."), name


@dataclasses.dataclass(frozen=True)
class Options:
    delay: float = option(5.0, "Wait.", unit="s", nutch="fetcher.server.delay", minimum=0)
    limit: int = option(1 << 20, "Size.", unit="bytes")
    scope: str = option("host", "Where.", choices=("host", "any"))
    strict: bool = option(False, "Whether.")
    top_n: int = option(10, "How many.", short="n")
    allow: tuple[str, ...] = option((), "A|B.", pattern="[a-z]+")


class Fake:
    Options = Options
    ARGUMENTS = (Argument("table", "Where."), Argument("seeds", "What.", nargs="*"))


def test_kinds_of_parameters(monkeypatch):
    monkeypatch.setattr(template_files, "load", lambda command: Fake)
    by_name = {parameter["name"]: parameter for parameter in template("generate")["parameters"]}
    assert {name: parameter["paramType"] for name, parameter in by_name.items()} == {
        "command": "TEXT",
        "table": "TEXT",
        "seeds": "TEXT",
        "delay": "TEXT",
        "limit": "TEXT",
        "scope": "ENUM",
        "strict": "BOOLEAN",
        "top_n": "NUMBER",
        "allow": "TEXT",
        "log_level": "ENUM",
    }
    assert not by_name["table"]["isOptional"]
    assert by_name["seeds"]["isOptional"]
    assert by_name["delay"] == {
        "name": "delay",
        "label": "Delay (s)",
        "helpText": "Wait. Nutch: fetcher.server.delay.",
        "isOptional": True,
        "regexes": [parameter_pattern(options_of(Options)[0])],
        "paramType": "TEXT",
        "groupName": "test_pipelines_reference",
        "defaultValue": "5",
    }
    assert by_name["scope"]["enumOptions"][1] == {"value": "any", "label": "any"}


def test_rows_of_the_tables_of_options():
    page = option_tables({"generate": Fake})
    assert (
        "| `--delay` | number (s) ≥ 0 | `5` | `fetcher.server.delay` | Wait. | generate |" in page
    )
    assert "| `--top_n`, `-n` | whole number | `10` |  | How many. | generate |" in page
    assert "A\\|B." in page
