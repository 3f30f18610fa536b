"""Every code that accord prints is explained, with a link to its line in the documentation."""

import re
from pathlib import Path

import pytest
from reference.source import codes_of
from support.commands import Accord

from accord.cli.reference import explanations
from accord.loops.models import REASONS
from accord.runner.causes import CAUSES

ROOT = Path(__file__).parents[2]
PAGE = "https://github.com/accord-ci/accord/blob/main/"


@pytest.mark.slow
def test_each_code_of_the_source_has_an_explanation_with_a_line_in_a_page() -> None:
    found, pages = explanations(), dict[str, str]()
    assert found.keys() == codes_of(ROOT / "src/accord").keys() | CAUSES.keys() | REASONS.keys()
    for explanation in (one for several in found.values() for one in several):
        page, _, anchor = explanation.url.removeprefix(PAGE).partition("#")
        pages[page] = pages.get(page) or (ROOT / page).read_text(encoding="utf-8")
        assert f'<a id="{anchor}"></a>`{explanation.code}`' in pages[page]
        assert explanation.means.endswith((".", "?", "!"))


@pytest.mark.parametrize("code", ["scope-empty", "outage", "MISSING_REVIEW_ARTIFACTS"])
def test_a_code_is_explained_as_it_was_printed(accord: Accord, code: str) -> None:
    shown = accord("explain", code)
    (explanation,) = explanations()[code.lower().replace("_", "-")]
    assert shown.code == 0
    assert all(part in shown.out for part in (explanation.means, explanation.hint, explanation.url))
    assert accord("explain", code, "--format", "json").document["codes"][0]["url"] == explanation.url


def test_all_codes_of_one_name_are_explained(accord: Accord) -> None:
    name = next(name for name, several in explanations().items() if len(several) > 1)
    assert len(accord("explain", name, "--format", "json").document["codes"]) > 1


def test_without_a_code_all_are_listed(accord: Accord) -> None:
    shown = accord("explain").out
    assert [code for code in explanations() if not re.search(rf"^ +{re.escape(code)} ", shown, re.MULTILINE)] == []


def test_a_misspelt_code_leads_to_the_nearest(accord: Accord) -> None:
    refused = accord("explain", "scope-emtpy")
    assert (refused.code, "Did you mean `scope-empty`?" in refused.err) == (2, True)
    assert "Of `accord classify`, pass the `cause`, not the rule." in accord("explain", "http-429").err


def test_a_broken_document_names_the_command_that_explains(accord: Accord) -> None:
    path = accord.file("plan.json", "{")
    assert accord("check", path).out.splitlines()[-1] == "Next: `accord explain not-json` says more of a code."
