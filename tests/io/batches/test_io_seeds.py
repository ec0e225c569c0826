import gzip
import logging

import pytest
from dropping import as_nobody
from seed_lines import lines_that_shrink_little

from nutbeam.io.batches import seed_lines
from nutbeam.io.batches import seeds as module
from nutbeam.io.batches.seeds import SeedSource, read_seeds, sources, unread_folders
from nutbeam.policy.components.schema import SEEDS, empty
from nutbeam.web.base.errors import UsageError, UserError
from nutbeam.web.rules.url_rules import UrlOptions, UrlRules
from nutbeam.web.urls.row_keys import from_key

RULES = UrlRules()


def read(source):
    """All rows of a source, and all counts."""
    rows, total = [], {}
    for frame, counts in read_seeds(source, RULES):
        assert frame.schema == empty(SEEDS).schema
        rows += frame.to_dicts()
        for name, number in counts.items():
            total[name] = total.get(name, 0) + number
    return rows, total


@pytest.fixture
def seed_file(tmp_path):
    def make(text):
        path = tmp_path / "seeds.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return SeedSource(0, path=str(path))

    return make


def urls(rows):
    return [from_key(row["key"]) for row in rows]


def test_words_are_urls_files_and_folders(tmp_path):
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    for name in ("b.txt", "a.txt"):
        (folder / name).write_text("http://a.com/")
    (folder / "below" / "c.txt").write_text("http://ignored.com/")
    single = tmp_path / "single"
    single.touch()
    found = sources(["http://a.com/", "http://b.com/", str(folder), str(single), "http://c.com/"])
    assert found == [
        SeedSource(0, ("http://a.com/", "http://b.com/")),
        SeedSource(1, path=str(folder / "a.txt")),
        SeedSource(2, path=str(folder / "b.txt")),
        SeedSource(3, path=str(single)),
        SeedSource(4, ("http://c.com/",)),
    ]


def test_hidden_files_of_a_folder_are_not_read(tmp_path):
    """As Hadoop does; a hidden file that is named is read."""
    (tmp_path / ".DS_Store").write_bytes(b"\0\0")
    (tmp_path / "_SUCCESS").touch()
    with pytest.raises(UsageError, match=r"^no seed files in folder '.*'$"):
        sources([str(tmp_path)])
    (tmp_path / ".more").write_text("http://b.com/")
    (tmp_path / "seeds").write_text("http://a.com/")
    for below in (".git", "more"):
        (tmp_path / below).mkdir()
    assert [source.path for source in sources([str(tmp_path)])] == [str(tmp_path / "seeds")]
    assert unread_folders([str(tmp_path), "http://a.com/"]) == [str(tmp_path / "more")]
    hidden = str(tmp_path / ".more")
    assert [source.path for source in sources([hidden])] == [hidden]


def test_many_urls_as_words_are_read_at_once(monkeypatch):
    words = [f"http://h{n}.com/" for n in range(450)]
    (source,) = sources(words)
    ((frame, counts),) = read_seeds(source, RULES)
    assert (urls(frame.to_dicts()), counts) == (words, {"lines": 450})
    assert frame["order"].to_list() == list(range(1, 451))  # later ones win
    monkeypatch.setattr(module, "LINES", 400)
    assert [len(frame) for frame, _ in read_seeds(source, RULES)] == [400, 50]


def test_keys_that_are_too_long_are_refused_and_counted(seed_file):
    any_length = UrlRules(UrlOptions(max_url_length=-1))
    long = "http://foo.com/" + "x" * 5000
    ((frame, counts),) = read_seeds(seed_file(f"{long}\nhttp://foo.com/\n"), any_length)
    assert (urls(frame.to_dicts()), counts["dropped/key_too_long"]) == (["http://foo.com/"], 1)


def test_paths_do_not_depend_on_the_folder_of_the_worker(tmp_path, monkeypatch):
    (tmp_path / "seeds").touch()
    monkeypatch.chdir(tmp_path)
    assert sources(["seeds"]) == [SeedSource(0, path=str(tmp_path / "seeds"))]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "missing",
            None,
            r"cannot read seeds '.*missing': No such file or directory; a URL begins",
        ),
        ("file/below", None, r"cannot read seeds '.*below': Not a directory$"),
        ("binary", b"\x7fELF\x00\x00", r"seed file '.*binary' is binary, expected lines of text$"),
        ("utf16", b"\xff\xfeA\0\0\0", r"is binary"),
        ("x" * 300, None, r"File name too long$"),
    ],
)
def test_words_that_name_no_seeds(tmp_path, name, content, message):
    (tmp_path / "file").touch()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=message):
        sources([str(tmp_path / name)])


def test_a_folder_without_files(tmp_path):
    (tmp_path / "below").mkdir()
    with pytest.raises(
        UsageError, match=r"^no seed files in folder '.*'; folders in it are not read: .*/below$"
    ):
        sources([str(tmp_path)])


@pytest.mark.parametrize("mode", [0o000, 0o600])
def test_a_file_that_may_not_be_read(locked, mode):
    locked.chmod(0o755)
    path = locked / "folder" / "seeds"
    path.parent.mkdir(mode=0o755)
    path.touch()
    (path.parent if mode == 0o600 else path).chmod(0o000)
    error = as_nobody(sources, [str(path)])
    assert isinstance(error, UsageError)
    assert str(error) == f"cannot read seeds {str(path)!r}: Permission denied"
    path.parent.chmod(0o755)


def test_lines(seed_file):
    rows, counts = read(
        seed_file(
            "# a comment\n\n  http://a.com/1  \r\n\t\n  # another\nHTTP://A.com:80/2#frag\n"
            "http://a.com/3"  # without an end
        )
    )
    assert urls(rows) == ["http://a.com/1", "http://a.com/2", "http://a.com/3"]
    assert [row["order"] for row in rows] == [3, 6, 7]
    assert counts == {"lines": 3}
    assert {name for row in rows for name, value in row.items() if value is not None} == {
        "key", "order"
    }  # fmt: skip


def test_fields_after_tabs_set_score_intervals_and_metadata(seed_file):
    rows, counts = read(
        seed_file(
            "http://a.com/\tnutch.score=2.5\t nutch.fetchInterval = 60 \t topic = a=b \tnothing\n"
            "http://b.com/\tnutch.fetchInterval.fixed=30\n"
            "http://c.com/\tnutch.score=0.5\tnutch.score=0.25\t=x\n"
        )
    )
    wanted = ("score", "fetch_interval", "fixed_interval", "metadata")
    assert [tuple(row[name] for name in wanted) for row in rows] == [
        (2.5, 60, None, {"topic": "a=b"}),
        (None, 30, 30, None),
        (0.25, None, None, {"": "x"}),
    ]
    assert counts == {"lines": 3}


@pytest.mark.parametrize(
    "piece",
    ["nutch.score=high", "nutch.score=nan", "nutch.score=inf", "nutch.score=1e39", "nutch.score=",
     "nutch.fetchInterval=1.5", "nutch.fetchInterval=-1", "nutch.fetchInterval=2147483648",
     "nutch.fetchInterval=9999999999999999999999", "nutch.fetchInterval.fixed=-1",
     "nutch.fetchDelay=-1", "nutch.fetchDelay=soon", "nutch.fetchDelay=nan",
     "nutch.fetchDelay=86401", "nutch.fetchDelay=",
     "nutch.fetchInterval=0", "nutch.fetchInterval.fixed=0"],
)  # fmt: skip
def test_values_that_are_none_are_counted_and_left_out(seed_file, piece):
    rows, counts = read(seed_file(f"http://a.com/\t{piece}\tk=v\n"))
    assert urls(rows) == ["http://a.com/"]
    values = [rows[0][name] for name in ("score", "fetch_interval", "fixed_interval")]
    assert values == [None, None, None]
    assert rows[0]["metadata"] == {"k": "v"}
    assert counts == {"lines": 1, "bad_values": 1}


def test_the_largest_values(seed_file):
    rows, _ = read(seed_file("http://a.com/\tnutch.score=3.4e38\tnutch.fetchInterval=2147483647"))
    assert rows[0]["fetch_interval"] == 2**31 - 1


def test_bad_lines_are_counted_and_shown_with_their_numbers(seed_file, caplog):
    bad = ["no url at all", "ftp://a.com/", "http://a.com/logo.png", "http://\x01/", "\ufffd"]
    source = seed_file("# head\nhttp://a.com/\n" + "\n".join(bad) + "\nhttp://b.com/\n")
    with caplog.at_level(logging.WARNING, "nutbeam.inject"):
        rows, counts = read(source)
    assert urls(rows) == ["http://a.com/", "http://b.com/"]
    assert counts == {
        "lines": 7,
        "dropped/malformed": 3,
        "dropped/scheme_not_allowed": 1,
        "dropped/filtered": 1,
    }
    shown = [record.getMessage() for record in caplog.records]
    assert shown[1] == f"{source.path}:4: scheme_not_allowed: 'ftp://a.com/'"
    assert [line.split(":")[1] for line in shown] == ["3", "4", "5", "6", "7"]


def test_bad_values_are_shown_with_their_lines(seed_file, caplog):
    lines = [f"http://a.com/{n}\tnutch.score=bad{n}\tnutch.fetchInterval=0" for n in range(7)]
    source = seed_file("# head\n" + "\n".join(lines))
    with caplog.at_level(logging.WARNING, "nutbeam.inject"):
        rows, counts = read(source)
    assert (len(rows), counts) == (7, {"lines": 7, "bad_values": 14})
    shown = [record.getMessage() for record in caplog.records]
    assert shown[:2] == [
        f"{source.path}:2: bad value, ignored: 'nutch.score=bad0'",
        f"{source.path}:2: bad value, ignored: 'nutch.fetchInterval=0'",
    ]
    assert len(shown) == module.SHOWN


def test_few_of_many_bad_lines_are_shown(seed_file, caplog):
    with caplog.at_level(logging.WARNING, "nutbeam.inject"):
        _, counts = read(seed_file("bad\n" * 1000))
    assert counts == {"lines": 1000, "dropped/malformed": 1000}
    assert len(caplog.records) == module.SHOWN


def test_a_url_as_a_word():
    rows, counts = read(SeedSource(3, ("http://a.com/\tnutch.score=2",)))
    assert (urls(rows), rows[0]["score"], counts) == (["http://a.com/"], 2.0, {"lines": 1})
    rows, counts = read(SeedSource(3, ("ftp://a.com/",)))
    assert (rows, counts) == ([], {"lines": 1, "dropped/scheme_not_allowed": 1})


def test_later_sources_are_later_than_all_lines_before(seed_file):
    source = seed_file("http://a.com/\n" * 3)
    early, _ = read(source)
    late, _ = read(SeedSource(1, ("http://a.com/",)))
    assert max(row["order"] for row in early) < late[0]["order"]


@pytest.mark.parametrize("text", ["", "\n\n", "# only\n#comments\n"])
def test_files_without_seeds(seed_file, text):
    assert read(seed_file(text)) == ([], {})


def test_a_byte_order_mark_is_not_part_of_the_url(seed_file):
    rows, _ = read(seed_file(b"\xef\xbb\xbfhttp://a.com/\r\nhttp://b.com/\r\n"))
    assert urls(rows) == ["http://a.com/", "http://b.com/"]


def test_lines_that_are_not_utf8_are_malformed(seed_file):
    rows, counts = read(seed_file(b"http://a.com/\n\xff\xfe\xfa\n\x00\x01\n"))
    assert urls(rows) == ["http://a.com/"]
    assert counts == {"lines": 3, "dropped/malformed": 2}


def test_many_lines(seed_file, monkeypatch):
    monkeypatch.setattr(module, "LINES", 20_000)
    source = seed_file("".join(f"http://h{n % 97}.com/{n}\n" for n in range(50_000)))
    parts = list(read_seeds(source, RULES))
    assert [len(frame) for frame, _ in parts] == [20_000, 20_000, 10_000]
    assert parts[2][0]["order"].to_list() == list(range(40_001, 50_001))
    assert from_key(parts[2][0]["key"][-1]) == f"http://h{49_999 % 97}.com/49999"


def test_a_file_that_goes_before_it_is_read(tmp_path):
    with pytest.raises(UserError, match=r"^cannot read seeds '.*gone': No such file or directory$"):
        read(SeedSource(0, path=str(tmp_path / "gone")))


def test_a_delay_is_kept_among_the_metadata(seed_file):
    rows, counts = read(seed_file("http://a.com/\tnutch.fetchDelay = 2.50\ttopic=x"))
    assert rows[0]["metadata"] == {"nutch.fetchDelay": "2.5", "topic": "x"}
    assert counts == {"lines": 1}


def packed(tmp_path, data, name="seeds.txt"):
    """Returns a source of one file with the given bytes, after the check that commands make first."""
    path = tmp_path / name
    path.write_bytes(data)
    (source,) = sources([str(path)])
    return source


def test_a_packed_file_is_known_by_its_content(tmp_path):
    text = b"\xef\xbb\xbfhttp://a.com/\nhttp://b.com/\n"
    halves = gzip.compress(text[:20]) + gzip.compress(text[20:]) + b"\0" * 64
    rows, counts = read(packed(tmp_path, halves, "named.txt"))
    assert (urls(rows), counts) == (["http://a.com/", "http://b.com/"], {"lines": 2})
    rows, _ = read(packed(tmp_path, text, "named.gz"))
    assert urls(rows) == ["http://a.com/", "http://b.com/"]


@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_files_of_a_few_bytes(tmp_path, size):
    assert [
        row
        for frame, _ in read_seeds(packed(tmp_path, b"#x\n"[:size]), RULES)
        for row in frame.rows()
    ] == []


def test_a_damaged_or_cut_packed_file_is_refused_at_once_or_while_it_is_read(tmp_path):
    whole = gzip.compress(lines_that_shrink_little(5_000))
    broken = whole[: len(whole) // 2] + b"\xff" * 50 + whole[len(whole) // 2 + 50 :]
    for data, reason in (
        (whole[:-9], "incomplete"),
        (broken, "damaged"),
        (whole + b"tail", "damaged"),
    ):
        with pytest.raises(UserError, match=f"cannot read seeds '.*seeds.txt': .* {reason}"):
            read(packed(tmp_path, data))
    with pytest.raises(UsageError, match=r"cannot read seeds '.*seeds.txt': .* damaged"):
        packed(tmp_path, b"\x1f\x8bhttp://a.com/\n")
    with pytest.raises(UsageError, match="is binary, expected lines of text"):
        packed(tmp_path, gzip.compress(b"\0" * 10))


@pytest.mark.long
def test_a_packed_file_that_grows_too_much_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(seed_lines, "EXEMPT_BYTES", 100_000)
    bomb = gzip.compress(b"http://a.com/\n" * 3_000_000)
    made = []
    monkeypatch.setattr(module, "LINES", 1_000)
    with pytest.raises(UserError, match="more than 200 times as large unpacked"):
        made.extend(len(frame) for frame, _ in read_seeds(packed(tmp_path, bomb), RULES))
    # It was refused long before its end. A list of URLs of the same size is read.
    assert sum(made) < 2_500_000
    rows, _ = read(packed(tmp_path, gzip.compress(lines_that_shrink_little(2_000))))
    assert len(rows) == 2_000


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_line_that_is_too_long_costs_no_memory_and_only_itself(tmp_path, pack):
    long = b"http://a.com/\tx=" + b"y" * (3 * seed_lines.LONGEST_LINE)
    rows, counts = read(packed(tmp_path, pack(b"http://b.com/\n" + long + b"\nhttp://c.com/\n")))
    assert urls(rows) == ["http://b.com/", "http://c.com/"]
    assert counts == {"lines": 3, "dropped/line_too_long": 1}


def test_few_long_lines_are_read_at_once(seed_file, monkeypatch):
    monkeypatch.setattr(seed_lines, "BLOCK_CHARS", 100)
    text = "".join(f"http://a.com/{number}/{'x' * 30}\n" for number in range(10))
    assert [len(frame) for frame, _ in read_seeds(seed_file(text), RULES)] == [2, 2, 2, 2, 2]


@pytest.mark.parametrize(
    ("line", "url", "values"),
    [
        ("http://a.com/x # a note\tnutch.score=9", "http://a.com/x", {}),
        ("http://a.com/x\u00a0#note nutch.score=9", "http://a.com/x", {}),
        ("http://a.com/x#part", "http://a.com/x", {}),
        ("http://a.com/x nutch.score=2", "http://a.com/x", {"score": 2.0}),
        ("http://a.com/x   nutch.score=2 lang=en", "http://a.com/x", {"score": 2.0, "lang": "en"}),
        ("http://a.com/x nutch.score=2\tlang=old en", "http://a.com/x", {"score": 2.0, "lang": "old en"}),
        ("http://a.com/x\tnutch.score=2 # best", "http://a.com/x", {"score": 2.0}),
        ("http://a.com/x\t# a=b", "http://a.com/x", {}),
        ("http://a.com/x\tlang=en # 5", "http://a.com/x", {"lang": "en # 5"}),
        ("http://a.com/x\tnutch.score=2 nutch.fetchInterval=60", "http://a.com/x", {"score": 2.0}),
        ("http://a.com/x lang=en", None, {}),
        ("http://a.com/x nutch.score=2 the best", None, {}),
        ("http://a.com/my file.pdf", None, {}),
        ("http://a.com/ http://b.com/", None, {}),
    ],
)  # fmt: skip
def test_comments_and_blanks_are_read_if_their_meaning_is_sure(
    seed_file, caplog, line, url, values
):
    rows, counts = read(seed_file(f"{line}\n"))
    assert urls(rows) == ([url] if url else [])
    assert counts == ({"lines": 1} if url else {"lines": 1, "dropped/blank_in_url": 1})
    for row in rows:
        found = dict(row["metadata"] or ()) | ({"score": row["score"]} if row["score"] else {})
        assert found == values
    assert (repr(line) in caplog.text and "write a tab" in caplog.text) == (url is None)


@pytest.mark.parametrize(
    ("word", "url"),
    [
        ("http://a.com/my file.pdf", "http://a.com/my%20file.pdf"),
        ("http://a.com/x?q=a b", "http://a.com/x?q=a%20b"),
        ("http://a.com/x nutch.score=2", "http://a.com/x"),
        ("http://a.com/x lang=en", None),
        ("http://a.com/ http://b.com/", None),
    ],
)
def test_a_url_on_the_command_line_may_have_blanks(word, url):
    rows, _ = read(SeedSource(0, (word,)))
    assert urls(rows) == ([url] if url else [])


@pytest.mark.parametrize("seed", ["example.com", "//example.com/a", "localhost:80", "10.0.0.1/a b"])
def test_a_seed_without_scheme_gets_a_hint(seed_file, caplog, seed):
    rows, _ = read(seed_file(seed))
    assert rows == []
    assert f"write https://{seed.removeprefix('//').partition(' ')[0]}\n" in caplog.text


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"])
def test_seeds_may_be_in_any_utf(seed_file, encoding):
    text = "# caf\u00e9\r\nhttp://a.com/\u00e9\r\n" + "http://a.com/x\tlang=\u65e5\r\n" * 5000
    source = seed_file(text.encode(encoding))
    assert sources([source.path]) == [source]
    rows, counts = read(source)
    assert (urls(rows)[0], counts) == ("http://a.com/%C3%A9", {"lines": 5001})
    assert dict(rows[-1]["metadata"]) == {"lang": "\u65e5"}


@pytest.mark.parametrize("chars", [1, 7, 100])
def test_lines_are_the_same_wherever_blocks_end(seed_file, monkeypatch, chars):
    monkeypatch.setattr(seed_lines, "LONGEST_LINE", 60)
    monkeypatch.setattr(module, "LONGEST_LINE", 60)
    text = f"# a\r\nhttp://a.com/1\r\n\nhttp://b.com/{'x' * 200}\n \x1f\nhttp://a.com/2 # b\nhttp://a.com/3"
    expected = read(seed_file(text))
    monkeypatch.setattr(seed_lines, "BLOCK_CHARS", chars)
    rows, counts = read(seed_file(text))
    assert (rows, counts) == expected
    assert [row["order"] for row in rows] == [2, 6, 7]
    assert counts == {"lines": 4, "dropped/line_too_long": 1}
