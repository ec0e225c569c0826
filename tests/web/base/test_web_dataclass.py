"""A frozen dataclass of ours behaves as one of the standard library."""

import dataclasses
import inspect
import pickle

import pytest

from nutbeam.web.base.dataclass import dataclass

DECORATORS = {"ours": dataclass(frozen=True), "library's": dataclasses.dataclass(frozen=True)}


def made(decorator):
    @decorator
    class Base:
        url: str
        depth: int = 3

    @decorator
    class Page(Base):
        links: list = dataclasses.field(default_factory=list)
        note: str = dataclasses.field(default="n", compare=False, repr=False)
        size: int = dataclasses.field(default=7, init=False)

        def __post_init__(self):
            if self.depth < 0:
                raise ValueError(f"depth {self.depth}")

    return Page


@dataclass(frozen=True)
class Sent:
    """At the top of a module, so that it can be pickled."""

    url: str
    words: tuple[str, ...] = ()


@pytest.fixture(params=DECORATORS.values(), ids=DECORATORS)
def page(request):
    return made(request.param)


def test_values_come_by_place_and_by_name(page):
    one = page("a", 4, note="x")
    assert dataclasses.astuple(one) == ("a", 4, [], "x", 7)
    assert page("a").links is not page("a").links
    assert list(inspect.signature(page).parameters) == ["url", "depth", "links", "note"]
    assert repr(one).endswith(".Page(url='a', depth=4, links=[], size=7)")


@pytest.mark.parametrize("values", [{}, {"url": "a", "width": 1}, {"url": "a", "size": 1}], ids=str)
def test_other_values_are_refused(page, values):
    with pytest.raises(TypeError, match="__init__"):
        page(**values)


def test_equality_leaves_out_fields_without_compare(page):
    assert page("a", note="x") == page("a", note="y")
    assert page("a") != page("b")
    assert page("a") != ("a", 3, [], 7)


def test_no_field_can_be_set_or_deleted(page):
    one = page("a")
    for change in (lambda: setattr(one, "url", "b"), lambda: delattr(one, "url")):
        with pytest.raises(dataclasses.FrozenInstanceError, match="'url'"):
            change()
    with pytest.raises(dataclasses.FrozenInstanceError, match="'other'"):
        one.other = 1


def test_a_class_that_only_inherits_may_have_more(page):
    class More(page):
        pass

    more = More("a")
    more.seen = 1
    del more.seen
    with pytest.raises(dataclasses.FrozenInstanceError):
        more.url = "b"


def test_copies_are_checked_again(page):
    assert dataclasses.replace(page("a"), depth=5).depth == 5
    with pytest.raises(ValueError, match="depth -1"):
        dataclasses.replace(page("a"), depth=-1)


def test_methods_of_the_class_stay():
    @dataclass(frozen=True)
    class Own:
        url: str

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 5

        def __repr__(self):
            return "own"

    assert (Own("a") == 3, hash(Own("a")), repr(Own("a"))) == (True, 5, "own")


def test_it_goes_through_pickle_and_into_sets():
    one = Sent("a", ("b",))
    assert pickle.loads(pickle.dumps(one)) == one
    assert len({one, Sent("a", ("b",)), Sent("a")}) == 2
