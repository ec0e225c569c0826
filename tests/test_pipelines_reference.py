import dataclasses
import json
import pathlib

import pytest

from nutbeam.pipelines import reference
from nutbeam.pipelines.cli import COMMANDS, load
from nutbeam.pipelines.command import Argument, CommonOptions
from nutbeam.pipelines.reference import NOT_IN_TEMPLATES, modules, reference_page, template
from nutbeam.pipelines.runner import beam_parser
from nutbeam.web.options import check_value, option, options_of

ROOT = pathlib.Path(__file__).parent.parent
from_source = pytest.mark.skipif(
    not (ROOT / "docs").is_dir(), reason="docs/ and templates/ are not part of the wheel"
)


@from_source
def test_the_reference_page_is_up_to_date():
    committed = (ROOT / "docs" / "reference" / "options.md").read_text()
    assert committed == reference_page(), "run make docs"


@from_source
@pytest.mark.parametrize("path", sorted((ROOT / "templates").glob("*.json")), ids=lambda p: p.stem)
def test_the_templates_are_up_to_date(path):
    assert json.loads(path.read_text()) == template(path.stem), "run make docs"


@from_source
@from_source
def test_generate_has_a_template():
    assert (ROOT / "templates" / "generate.json").is_file()


@pytest.mark.parametrize("command", modules())
def test_parameters_are_the_arguments_and_options_and_the_reverse(command):
    module = load(command)
    names = {argument.name for argument in module.ARGUMENTS}
    names |= {field.name for field in dataclasses.fields(module.Options)}
    names |= {field.name for field in dataclasses.fields(CommonOptions)} - set(NOT_IN_TEMPLATES)
    parameters = [parameter["name"] for parameter in template(command)["parameters"]]
    assert sorted(parameters) == sorted(names)


@pytest.mark.parametrize("command", modules())
def test_every_option_is_well_declared(command):
    ours = (*options_of(load(command).Options), *options_of(CommonOptions))
    beams = beam_parser()._option_string_actions
    for known in ours:
        assert known.flag not in beams, f"{known.flag} is Beam's"
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
    monkeypatch.setattr(reference, "load", lambda command: Fake)
    by_name = {parameter["name"]: parameter for parameter in template("generate")["parameters"]}
    assert {name: parameter["paramType"] for name, parameter in by_name.items()} == {
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
        "paramType": "TEXT",
        "groupName": "test_pipelines_reference",
        "regexes": [r"-?[0-9]+(\.[0-9]+)?(ms|s|m|h|d)?"],
        "defaultValue": "5",
    }
    assert by_name["scope"]["enumOptions"][1] == {"value": "any", "label": "any"}


def test_rows_of_the_reference_page(monkeypatch):
    monkeypatch.setattr(reference, "modules", lambda: {"generate": Fake})
    page = reference_page()
    assert (
        "| `--delay` | number (s) ≥ 0 | `5` | `fetcher.server.delay` | Wait. | generate |" in page
    )
    assert "| `--top_n`, `-n` | whole number | `10` |  | How many. | generate |" in page
    assert "A\\|B." in page
