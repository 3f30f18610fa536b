"""Every text that people read keeps to the rules of ``tools/language.py``."""

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


def test_every_text_reads_like_plain_english() -> None:
    hits = [hit for name in language.files() for hit in language.check_file(name)]
    assert not hits, "\n" + "\n".join(map(str, hits))
