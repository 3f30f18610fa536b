"""Whether a command printed its JSON document: an error that comes afterwards must not add a second one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Printed:
    """What stands on stdout already. It lives as long as one call of the command line."""

    is_whole: bool = False
