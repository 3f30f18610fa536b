from collections.abc import Iterator
from typing import Any

import pytest
from support.browser import started_browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started_browser() as found:
        yield found
