"""A policy for posted texts has one form, and an entry without an effect is refused."""

import pytest

from accord.core.errors import WrongUsage
from accord.text.posting import host_problem, posting_policy

FORMS = ["img.test", "IMG.test", "www.img.test", "img.test.", " img.test ", "*"]


@pytest.mark.parametrize("host", FORMS)
def test_each_form_of_a_host_allows_its_images(host: str) -> None:
    for policy in (posting_policy({"ACCORD_ALLOWED_HOSTS": host}), posting_policy({}, hosts=[host])):
        assert policy.may_load("https://img.test/a.png")
        assert policy.may_load("https://www.img.test:8443/a.png")


WRONG = {
    "img.test:8443": "`img.test`", "https://www.img.test/a?b": "`img.test`", "//img.test": "`img.test`",
    "img.test/a": "`img.test`", "http://*.img.test:80": "`*.img.test`", "a_b": "`img.example.org`",
    "*img.test": "`img.example.org`", "": "`img.example.org`", "bücher.test": "`img.example.org`",
}  # fmt: skip


@pytest.mark.parametrize("host", WRONG)
def test_a_host_that_no_image_could_have_is_refused_with_the_one_that_is_meant(host: str) -> None:
    found = host_problem(host)
    assert found is not None
    assert WRONG[host] in found[1]
    if host:
        with pytest.raises(WrongUsage, match="`ACCORD_ALLOWED_HOSTS`: "):
            posting_policy({"ACCORD_ALLOWED_HOSTS": f"ok.test, {host}"})


def test_words_come_from_everywhere_once() -> None:
    found = posting_policy({"ACCORD_BREAK_WORDS": "bors r+, recheck\n ,"}, words=["recheck", " ", "@claude"])
    assert found.words == ("bors r+", "recheck", "@claude")
