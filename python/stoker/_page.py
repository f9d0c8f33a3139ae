"""The HTML page of a profile."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

_PLACE = "__STOKER_PROFILE_JSON__"  # once in the template


def profile_page(profile: Mapping[str, Any]) -> str:
    """Returns a self-contained HTML page that shows `profile`, the contents of a profile.json: from
    Watch.to_dict() or from `stoker profile`. Parts that it lacks are left out.

    ValueError: a number that JSON cannot express (nan, inf).
    """
    template = resources.files("stoker").joinpath("profile_page.html").read_text("utf-8")
    # '<' occurs only in strings. Written as \u003c, no name can end the <script> element.
    data = json.dumps(profile, allow_nan=False).replace("<", "\\u003c")
    return template.replace(_PLACE, data)
