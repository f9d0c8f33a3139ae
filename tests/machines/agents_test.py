#!/usr/bin/env python3
"""Follows tools/docs/agents.md to the letter where there is nothing but Python: agents_test.py WHEEL ROOTS

WHEEL is of the Python of Debian 12; ROOTS keeps the roots of releases (bare_root.py). The page's installation takes the wheel's path, and its data are
drawn. Exit codes: 0 passed, 1 failed, 77 no such root can be had here.
"""
import json
import os
import pathlib
import re
import sys
import time

import bare_root

PAGE = pathlib.Path(__file__).resolve().parents[2] / "tools/docs/agents.md"
BEFORE = "cd /root && export PATH=/root/stoker-env/bin:$PATH\n"


def blocks(text):
    return re.findall(r"^```(bash|python)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def follow(wheel, roots):
    with bare_root.BareRoot("bookworm", roots, "agents") as root:
        begin = time.monotonic()
        inside = f"/root/{os.path.basename(wheel)}"
        root.add(wheel, inside)
        parts = blocks(PAGE.read_text(encoding="utf-8"))
        assert len(parts) >= 6, parts
        for number, (language, text) in enumerate(parts):
            if "pip install stoker " in text:
                text = re.sub(r"install stoker .*", f"install -q {inside}", text)
            if number == 1:
                text = "stoker make-shapes --out photos --count 300 > /dev/null\n" + text
            if language == "python":
                text = f"python3 - <<'PROGRAM'\n{text}PROGRAM\n"
            printed = root.run_well("bash", "-euo", "pipefail", "-c", BEFORE + text)
            print(f"{text.splitlines()[-1][:60]}: {printed.strip().splitlines()[-1:] or 'printed nothing'}")
        verdict = json.loads(pathlib.Path(root.path("/root/verdict.json")).read_text(encoding="utf-8"))["verdict"]
        assert verdict["limit"] in ("device", "unknown") or verdict["recommendations"], verdict
        found = json.loads(pathlib.Path(root.path("/root/doctor.json")).read_text(encoding="utf-8"))
        assert found and not [each for each in found if each["state"] == "broken"], found
        print(f"{time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    sys.exit(bare_root.conclude(follow, *sys.argv[1:3]))
