"""Patterns mean what they mean to java.util.regex of Java 17, whose answers stand here."""

import string

import polars as pl
import pytest

from nutbeam.web.filters.regex_filter import RegexFilter
from nutbeam.web.normalizers.regex_rules import RegexNormalizer
from nutbeam.web.patterns.patterns import compile_pattern

POSIX = {
    "Lower": string.ascii_lowercase,
    "Upper": string.ascii_uppercase,
    "ASCII": "".join(map(chr, range(128))),
    "Alpha": string.ascii_letters,
    "Digit": string.digits,
    "Alnum": string.ascii_letters + string.digits,
    "Punct": string.punctuation,
    "Graph": string.ascii_letters + string.digits + string.punctuation,
    "Print": string.ascii_letters + string.digits + string.punctuation + " ",
    "Blank": " \t",
    "Cntrl": "".join(map(chr, [*range(32), 127])),
    "XDigit": string.hexdigits,
    "Space": " \t\n\x0b\f\r",
}


def found(pattern, texts):
    """Returns the texts in which a filter finds a pattern, after making sure that columns agree."""
    rules = RegexFilter(f"+{pattern}", "x")
    taken = [text for text in texts if rules.decide(text).accept]
    column = pl.Series(texts, dtype=pl.String)
    assert column.filter(rules.decide_column(column).accept).to_list() == taken
    return taken


@pytest.mark.parametrize("name", POSIX)
def test_posix_classes(name):
    texts = [chr(code) for code in range(128)]
    inside = [text for text in texts if text in POSIX[name]]
    outside = [text for text in texts if text not in POSIX[name]]
    assert found(rf"\p{{{name}}}", texts) == found(rf"[\p{{{name}}}]", texts) == inside
    assert found(rf"\P{{{name}}}", texts) == found(rf"[^\p{{{name}}}]", texts) == outside


@pytest.mark.long
@pytest.mark.parametrize(
    ("pattern", "hits", "misses"),
    [
        # Case.
        (r"(?i)\p{Lower}", "aA", "\u00e91"),
        (r"(?i)\p{Upper}", "aA", "\u00e91"),
        (r"(?i)\p{Lu}", "aA\u00e9\u00c9\u01c5", "1\u4e2d"),
        (r"(?i)[^k]", "j\u212a", "kK"),
        ("(?i)k", "kK", "\u212a"),
        ("(?iu)k", "kK\u212a", "j"),
        ("(?iu)[a-z]", "aK\u212a\u017f", "\u00e9"),
        ("(?i)\u00e9", "\u00e9", "\u00c9e"),
        ("(?iu)\u00e9", "\u00e9\u00c9", "e"),
        ("(?iu)\u00df", "\u00df", "\u1e9es"),
        ("a(?i)b|c", ["ab", "aB", "C"], ["Ab"]),
        ("(?i:a)b", ["ab", "Ab"], ["aB"]),
        (r"(a)(?i)\1", ["aa", "aA"], ["Aa"]),
        (r"(?i)(\u00e9)\1", ["\u00e9\u00e9"], ["\u00e9\u00c9"]),
        # Escapes.
        (r"\0100", "@", "\x08"),
        (r"\0400", [" 0"], "\u0100"),
        (r"\x{41}\x42\u0043", ["ABC"], ["A"]),
        (r"\ud83d\ude00", "\U0001f600", "\u00e9"),
        (r"[\cI\e\a]", "\t\x1b\x07", "I"),
        (r"\H", "a\n", " \t\xa0"),
        (r"\V", "a ", "\n\x0b\u2028"),
        (r"^\R$", ["\n", "\r\n", "\u2028"], ["a"]),
        (r"\w\R\w", ["a\nb", "a\r\nb"], ["ab"]),
        (r"^\X\z", ["a", "\r\n", "e\u0301"], ["ab"]),
        (r"\Q[a]*\E+", ["[a]*", "x[a]**"], ["a", "[a]"]),
        (r"^[\Q^]-\E]$", "^]-", "\\Q"),
        # Classes.
        ("[[:digit:]]", ":dgit", "1["),
        ("[a~~b]", "a~b", "c"),
        ("[a~~b|]", "a~b|", "c"),
        ("[a||b]", "a|b", "c"),
        ("[+--]", "+,-", "*."),
        ("[%--]", "%&-", ".$"),
        ("[--a]", "-.Aa", ",b"),
        ("[?*!@=||]", "?*!@=|", "a"),
        ("[&&a]", "a", "&b"),
        ("[a&&]", "a", "&b"),
        ("[a&b]", "a&b", "c"),
        ("[a-z&&[^aeiou]]", "bz", "ae1"),
        ("[^a-z&&[^aeiou]]", "a1", "bz"),
        ("[a-c&&b-d&&c]", "c", "abd"),
        ("[a&&[b]c]", "", "abc"),
        ("[a-c[x-z]]", "ay", "m"),
        ("[^[^a]]", "a", "b"),
        (r"[\[^a]", "[^a", "b"),
        ("[]a]", "]a", "["),
        (r"[\d-z]", "1-z", "a"),
        (r"[^\w\W]", "", "a "),
        ("[a&&b]", "", "ab"),
        # Properties, beyond ASCII too.
        (r"\pL", "a\u00e9\u4e2d", "1"),
        (r"\p{Lu}", "A\u00c9", "a\u00e9"),
        (r"\p{IsL}", "a\u00e9", "1"),
        (r"[^\p{L}\p{N}/]", "-\u2028", "a\u00e91\u0663/"),
        (r"\p{IsCyrillic}", "\u0436", "a\u03c9"),
        (r"\p{InCyrillic}", "\u0436", "a\u03c9"),
        (r"\p{script=Greek}", "\u03c9", "a\u0436"),
        (r"\p{Cn}", "\u0378", "a\u00e9"),
        (r"\p{L1}", "a\xff", "\u0100"),
        (r"\p{all}", "a\u0100\n", ""),
        (r"\P{all}", "", "a\u0100\n"),
        (r"\p{IsLowerCase}", "a\u00e9\u00aa", "A1"),
        (r"(?i)\p{IsLowercase}", "a\u00e9A", "1"),
        (r"(?i)\p{IsTitlecase}", "a\u01c5A", "1"),
        (r"\p{IsWhite_Space}", " \x85\xa0", "a"),
        (r"\p{IsAlphabetic}", "a\u4e2d", "1"),
        (r"\p{IsHex_Digit}", "aF9\uff21", "g"),
        (r"\p{gc=Lu}", "A", "a"),
        (r"\p{block=Greek and Coptic}", "\u03c9", "a"),
        (r"\p{IsDigit}", "1\u0663", "a"),
        (r"\p{IsPunctuation}", "!-", "$+a"),
        (r"\p{IsPunct}", "!-", "$+a"),
        (r"\w\d\s", ["a1 "], ["\u00e91 ", "a\u0663 ", "a1\xa0"]),
        (r"(?U)^\w\d\s", ["\u00e91 ", "a\u0663\u2003"], ["-1 "]),
        # References and groups.
        (r"(?<s>x)\k<s>", ["xx"], ["x"]),
        (r"\1", "", "a1"),
        (r"(a)\11", ["aa1"], ["aa"]),
        (r"(a)|b\1", ["a"], ["b", "bb"]),
        (r"a{2}{3}$", ["aa", "aaa"], "a"),
        (r"^(?:a){2}{3}$", ["aa"], ["aaaaaa"]),
        ("^*a", "a", "b"),
        ("(?=a)+", "a", "b"),
        ("(?x) a b # c", ["ab"], ["a b"]),
        ("(?x)[a b]c", ["ac"], [" c"]),
        ("a}]", ["a}]"], "a"),
        # Places.
        ("z$", ["z", "z\n", "z\r\n", "z\u2028"], ["z\n\n", "za"]),
        ("(?d)z$", ["z", "z\n"], ["z\r", "z\u2028"]),
        (r"z\z", ["z"], ["z\n"]),
        (r"\S$", ["z", "z\n"], ["z \n"]),
        ("^.$", "a\u00e9", "\n\r\x85\u2028"),
        ("(?d)^.$", "a\u2028", "\n"),
        ("(?s)^.$", "a\u2028", ["ab"]),
        ("(?m)^b", ["a\nb", "a\r\nb", "b"], ["ab"]),
        (r"caf\b", ["caf", "caf-"], ["caf\u00e9", "cafe"]),
        (r"caf\w", ["cafe"], ["caf\u00e9"]),
        (r"\Bz", ["\u00e9z"], ["z", "-z"]),
    ],
)  # fmt: skip
def test_patterns_find_the_same_texts_as_in_java(pattern, hits, misses):
    assert found(pattern, [*hits, *misses]) == [*hits]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(?:foo){e}", "{ must begin a number of times"),
        ("(?:foo){e<=1}", "{ must begin a number of times"),
        ("a{,2}", "{ must begin a number of times"),
        ("a{x}", "{ must begin a number of times"),
        ("a{2,1}", "{2,1} is no number of times"),
        ("a{3000000000}", "{3000000000} is no number of times"),
        ("(?:a{10000}){10000}", "with its repeats expanded it is longer than 100,000 characters"),
        ("a**", "* has nothing to repeat"),
        (r"\m", r"\m is not an escape"),
        (r"\K", r"\K is not an escape"),
        (r"[\b]", r"\b is not an escape"),
        ("\\", r"nothing follows the \ "),
        ("(?|a|b)", "(?| is not supported"),
        ("(?P<n>a)", "(?P is not supported"),
        ("(?R)", "(?R is not supported"),
        ("(?r)a", "(?r is not supported"),
        ("(?b)a", "(?b is not supported"),
        ("(?e)a", "(?e is not supported"),
        ("(?c)a", "(?c is not supported"),
        (r"\b{g}", r"\b{g} is not supported"),
        (r"[a-\d]", "a range in brackets must go up"),
        ("[a--b]", "a range in brackets must go up"),
        ("[&&]", "&& must have something on both sides"),
        ("[a", "missing ]"),
        ("(a", "missing )"),
        ("a)", "a ) has no ("),
        ("(?<n>a)(?<n>b)", "there are two groups <n>"),
        (r"\k<n>", r"\k must be followed by the name of a group before it"),
        (r"\p{Foo}", r"\p{Foo} is not known"),
        (r"\p{IsFoo}", r"\p{IsFoo} is not known"),
        (r"\p{Greek}", r"\p{Greek} is not known"),
        (r"\p{javaLowerCase}", r"\p{javaLowerCase} is not known"),
        (r"\N{DOT}", r"\N is not an escape"),
        (r"\p{L", r"\p{ has no }"),
        (r"\08", r"\0 must be followed by octal digits"),
        (r"\u12", r"\u must be followed by four hexadecimal digits"),
        (r"\x{110000}", r"\x must be followed by two hexadecimal digits, or some in braces"),
        ("(" * 2000 + ")" * 2000, "it is nested too deeply"),
    ],
)
def test_patterns_that_java_refuses_are_refused(pattern, message):
    """But for (?c), \\b{g}, \\N, \\p{java...} and the largest, which only we refuse."""
    with pytest.raises(
        ValueError, match=r"x\.txt:2: a rule must be a regular expression"
    ) as caught:
        RegexFilter(f"+a\n-{pattern}", "x.txt")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "template", "url", "wanted"),
    [
        ("b+", "[$0]", "abbc", "a[bb]c"),
        ("(?&lt;x>b)(c)", "${x}$2$1", "abc", "abcb"),
        ("(b)", "$10", "ab", "ab0"),
        ("(?&lt;!a)b$", "x", "bb", "bx"),
        ("(?i)B", r"\$\\", "abB", "a$\\$\\"),
    ],
)
def test_substitutions_give_the_same_text_as_in_java(pattern, template, url, wanted):
    text = (
        f"<r><regex><pattern>{pattern}</pattern><substitution>{template}</substitution></regex></r>"
    )
    rules = RegexNormalizer(text, "r.xml")
    assert [rules.apply(url), rules.apply_column(pl.Series([url])).urls.item()] == [wanted] * 2


@pytest.mark.parametrize(
    ("text", "has_column", "exact"),
    [
        (r"(?i)\.(?:gif|jpe?g)(?:\?|$)", True, True),
        (r"(?<!:)/{2,}", True, True),
        (r"(?<![?.])[?.]+$", True, True),
        (r"(?<![^a])b", True, True),
        (r"(?<!a)b|c", True, False),
        (r"(/[^/]+)/[^/]+\1/", True, False),
        (r"(a)(b)\2\1", True, False),
        (r"\bsid=[a-z]{2,5}?", True, True),
        (r"(?=a)", False, False),
        ("(?i)", True, True),
        (r"(?<=a)b", True, False),
        (r"a++b", True, False),
        (r"(?>a|ab)c", True, False),
        (r"((a)b)\1", True, False),
        (r"(^a)\1", True, False),
        (r"[a&&b]", True, True),
        (r"\p{Punct}", True, True),
        (r"\p{Lu}", True, True),
        ("(?x) a b", True, True),
        ("\u00e9", True, True),
    ],
)
def test_forms_for_columns(text, has_column, exact):
    pattern = compile_pattern(text)
    assert (pattern.column is not None, pattern.exact) == (has_column, exact)
