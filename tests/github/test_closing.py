"""Which work items a pull request closes: those that GitHub closes, and none that only code or a comment names."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.growth import grows_too_fast
from support.reviews import CLOSING_PULL

from accord.github.models import Pull
from accord.github.pulls import MOST_ITEMS, closing_references

HERE = "https://github.com/octo/home/pull/9"


def pull(body: str, url: str = HERE) -> Pull:
    return replace(CLOSING_PULL, body=body, url=url)


@pytest.mark.parametrize(
    ("body", "numbers"),
    [
        ("Closes #1", (1,)), ("closes: #1, Fixed #2 and RESOLVE #3.", (1, 2, 3)),
        ("Closes #1\r\nCloses #1\r\nfixes #2", (1, 2)),
        ("Fixes octo/home#4, fixes Octo/Home#5, fixes other/home#6", (4, 5)),
        (
            "Resolves https://github.com/octo/home/issues/7 and closes http://github.example.org/octo/tools/issues/8",
            (7,),
        ),
        ("`Closes #1` ``closes `#2` `` but Closes #3", (3,)),
        ("See <!-- Closes #1 --> and closes #2 <!-- Closes #3", (2, 3)),
        ("<!-- Closes #1 -->\nCloses #2", (2,)),
        ("```\nCloses #1\n```\n\n    Closes #2\n\nCloses #3", (3,)),
        ("```\n<!--\n```\nCloses #1", (1,)), ("a ` stray\n\nCloses #1\n\nand ` another", (1,)),
        ("Closes#1 Closes # 2 encloses #3 closes #4a Closes #0 dis-closes #5", ()),
        ("Closes #1000000000 closes #12", (12,)), ("See #1 and #2, discloses #3", ()),
        ("Closes octo/home#4, closes #4", (4,)), ("Closes\n\n#1, closes `by` #2, and closes #3", (3,)),
        ("| a | closes #1 |\n|---|---|\n| `closes #2` | closes #3 |", (1, 3)),
        ("Closes https://GitHub.com/Octo/Home/issues/2?x#issuecomment-3", (2,)),
        ("Closes octo/home/issues/1, fixes https://ghe.example/octo/home/issues/2", ()),
        ("\\closes #1, closes \\#2, c\\loses #3, \\\\fixes #4, closes &#35;5", (1, 2, 4, 5)),
        ("~~closes #1~~ *fixes #2* ***fixes #3***", (1, 2, 3)),
        ("_Fixes #1_, __closes #2__ and ___closes #3___ (fixes #4)", (1, 2, 3, 4)),
        ("snake_fixes #1, snake__fixes #2, fixes #3_a, fixes #4__b", ()), ("**Closes** #1, closes **#2**", ()),
        ("- Fixes GH-1\n- closes gh-2, Resolves <https://github.com/octo/home/issues/3>\n1. fixes #4", (1, 2, 3, 4)),
        ("Fixes [#5](https://github.com/octo/home/issues/5)", (5,)), ("Closes GH-0, fixes GH-1a, closes XGH-2", ()),
        ("Fixes https://github.com:443x/octo/home/issues/1", ()), ("Fixes #1, #2 and GH-3", (1,)),
        ("", ()),
    ],
)  # fmt: skip
def test_a_body_closes_what_it_says_with_githubs_own_words(body: str, numbers: tuple[int, ...]) -> None:
    assert closing_references(pull(body)) == numbers


def test_no_body_makes_more_requests_than_a_few() -> None:
    assert len(closing_references(pull(" ".join(f"closes #{n}" for n in range(1, 500))))) == MOST_ITEMS


@pytest.mark.parametrize("part", ["`", "`a``b```c", "<!--", "closes ", "closes a/", "fixes https://x"])
def test_a_body_made_to_be_slow_is_not(part: str) -> None:
    assert not grows_too_fast(lambda size: closing_references(pull(part * (size // len(part)))), 65_536)


@given(st.text(alphabet="closes #1`<!-> \n/octhme", max_size=80))
def test_any_body_is_read(body: str) -> None:
    assert all(number > 0 for number in closing_references(pull(body)))


@pytest.mark.parametrize(
    ("server", "numbers"),
    [
        ("https://ghe.example", (1, 2)), ("https://ghe.example:8443", (1, 3)), ("http://127.0.0.1:8080", (1,)),
        ("https://github.com", (1, 4)),
    ],
)  # fmt: skip
def test_an_address_closes_on_its_own_server_only(server: str, numbers: tuple[int, ...]) -> None:
    named = ["https://ghe.example", "https://GHE.example:8443", "https://github.com"]
    body = "Closes octo/home#1" + "".join(f", fixes {name}/octo/home/issues/{n}" for n, name in enumerate(named, 2))
    assert closing_references(pull(body, f"{server}/octo/home/pull/9")) == numbers
