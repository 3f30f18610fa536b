"""Every text that people read keeps to the rules of ``tools/language.py``."""

import io
import tokenize

import language
import pytest


def words_hit(name: str, content: str) -> list[str]:
    return [hit.words for hit in language.hits_in(name, language.texts_of(name, content))]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.py", '"""What others wrote."""', ["What others", "What others wrote."]),
        ("a.py", "x = f'`{x}` is no URL.'", ["is no"]),
        ("a.py", "x = 'there is no longer a way'", []),
        ("a.py", "x = 'kernel'", []),
        ("a.py", "x = 'What happened to it?'", []),
        ("a.py", "# It is not said which\n# repository.\nx = 1", ["It is not said"]),
        ("a.py", "def test_what_is_posted_is_kept(): ...", ["What is posted is kept."]),
        ("a.md", "# What it does\n\nWhat stays is\nkept.", ["What stays is kept."]),
        ("a.md", "| Name | Use |\n| - | - |\n| `x` | Drawn anew |", ["anew"]),
        ("a.yml", "inputs:\n  x:\n    description: Who asks, by name.", ["Who asks, by name."]),
        ("a.json", '{\n  "description": "The text of others"\n}', ["of others"]),
    ],
)
def test_texts_are_found_in_every_kind_of_file(name: str, content: str, words: list[str]) -> None:
    assert words_hit(name, content) == words


@pytest.mark.parametrize(
    "source",
    ["x = '#a'  # b\n# c\n\n# d", 'x = """\n# a\n"""  # b', "x = 'a\\'#b'  # c", "x = f\"{y['#']}\"  # d"],
)
def test_comments_are_those_that_python_reads(source: str) -> None:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    read = [(token.start[0], token.string.lstrip("# ")) for token in tokens if token.type == tokenize.COMMENT]
    found = [text for text in language.comments(source) if text.words]
    assert " ".join(text.words.strip() for text in found) == " ".join(words for _, words in read)
    assert found[0].line == read[0][0]


@pytest.mark.slow
def test_every_text_reads_like_plain_english() -> None:
    hits = [hit for name in language.files() for hit in language.check_file(name)]
    assert not hits, "\n" + "\n".join(map(str, hits))
