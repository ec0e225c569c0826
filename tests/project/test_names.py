"""Names say what they stand for: functions by a verb or a noun, variables by what they hold."""

import ast
import functools
import re

import pytest
from package_files import FILES, PACKAGE, nodes

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

# Shares of all that may be unclear; of the packages compared, the best have none, others 1 %.
MOST_FUNCTIONS, MOST_VARIABLES = 0.016, 0.01

# A function with such a name alone says neither what it does nor what it returns. ``read``, ``run``,
# ``put``, ``cut``, ``split``, ``set`` are verbs as well.
ADVERBS_AND_PRONOUNS = re.compile(
    "after|again|all|alone|apart|before|beside|both|else|elsewhere|first|here|last|later|less"
    "|many|more|most|never|next|once|only|other|others|otherwise|rest|same|some|still|that"
    "|there|these|this|those|together|upto|whole|within|without"
)
IRREGULAR = re.compile(
    "begun|bound|broken|brought|built|chosen|done|drawn|found|given|gone|grown|held|hidden"
    "|kept|known|laid|led|left|lent|lost|made|met|paid|said|seen|sent|shown|sold|sought|spent"
    "|spoken|stood|struck|stuck|swept|taken|thrown|told|torn|understood|won|worn|wound"
    "|written"
)
NOUNS_AND_VERBS = re.compile("bleed|breed|embed|exceed|feed|need|proceed|seed|shed|speed|succeed")
# Of nearly everything it could be said that it is found, known, or left.
VAGUE = re.compile("before|both|found|given|kept|known|left|made|some")


def is_unclear(name):
    """Returns whether the name of a function is one participle, adverb or pronoun."""
    word = name.strip("_")
    return (
        ADVERBS_AND_PRONOUNS.fullmatch(word) is not None
        or IRREGULAR.fullmatch(word) is not None
        or (re.fullmatch("[a-z]+ed", word) is not None and NOUNS_AND_VERBS.fullmatch(word) is None)
    )


def bound_names(node):
    """Returns the variables that a node of a syntax tree binds, parameters as well."""
    if isinstance(node, ast.arguments):
        args = (*node.posonlyargs, *node.args, *node.kwonlyargs, node.vararg, node.kwarg)
        return [arg.arg for arg in args if arg is not None]
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    return []


@functools.cache
def names_of(folder, files):
    """Returns (functions, variables) of files: pairs of ``file:line`` and name."""
    functions, variables = [], []
    for path in files:
        file = path.relative_to(folder)
        for node in nodes(path):
            place = f"{file}:{getattr(node, 'lineno', '')}"
            if isinstance(node, FUNCTIONS):
                functions.append((place, node.name))
            variables += [(place, name) for name in bound_names(node)]
    return functions, variables


def test_functions_are_named_by_a_verb_or_a_noun(record_property):
    functions, _ = names_of(PACKAGE, tuple(FILES))
    unclear = [" ".join(pair) for pair in functions if is_unclear(pair[1])]
    record_property("unclear names of functions", f"{len(unclear)} of {len(functions)}")
    assert len(unclear) <= MOST_FUNCTIONS * len(functions), (
        f"{len(unclear)} of {len(functions)} functions are named by a participle, an adverb or a "
        "pronoun alone; name them by a verb and its object, or by a noun: " + ", ".join(unclear)
    )


def test_names_of_variables_are_not_vague(record_property):
    _, variables = names_of(PACKAGE, tuple(FILES))
    vague = [" ".join(pair) for pair in variables if VAGUE.fullmatch(pair[1])]
    record_property("vague names of variables", f"{len(vague)} of {len(variables)}")
    assert len(vague) <= MOST_VARIABLES * len(variables), (
        f"{len(vague)} of {len(variables)} bindings have names such as 'found'; "
        "name a variable by what it holds, a frame by its rows: " + ", ".join(vague)
    )


@pytest.mark.parametrize(
    ("unclear", "clear"),
    [("_apart", "split_apart"), ("turned", "turned_piece"), ("_kept", "keep"), ("_listed", "seed")],
)
def test_unclear_names_are_found(tmp_path, unclear, clear):
    path = tmp_path / "a.py"
    path.write_text(
        f"def {unclear}(known):\n    found, rows = known\n\n\ndef {clear}():\n    pass\n"
    )
    functions, variables = names_of(tmp_path, (path,))
    assert [name for _, name in functions if is_unclear(name)] == [unclear]
    assert sorted(name for _, name in variables if VAGUE.fullmatch(name)) == ["found", "known"]
