"""The HTML page of a profile."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

_TEMPLATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "profile_page.html")
_PLACE = "__STOKER_PROFILE_JSON__"  # once in the template


def profile_page(profile: Mapping[str, Any]) -> str:
    """Returns a self-contained HTML page that shows `profile`, the contents of a profile.json: from
    Watch.to_dict() or from `stoker profile`. Parts that it lacks are left out.

    ValueError: a number that JSON cannot express (nan, inf).
    """
    with open(_TEMPLATE, encoding="utf-8") as file:
        template = file.read()
    # '<' occurs only in strings. Written as \u003c, no name can end the <script> element.
    data = json.dumps(profile, allow_nan=False).replace("<", "\\u003c")
    return template.replace(_PLACE, data)
