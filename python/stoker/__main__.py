"""`stoker`, or `python -m stoker`: the program, which lies beside this file in a wheel, and
`doctor`, which is Python's own and works without the program.
"""

from __future__ import annotations

import os
import sys

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stoker")


def main() -> None:
    """Becomes the program, so that signals and the exit code are its own."""
    words = sys.argv[1:]
    if words[:1] == ["doctor"]:
        from stoker import _doctor

        sys.exit(_doctor.main(words[1:]))
    if words == ["--version"] and not os.path.exists(_PROGRAM):
        from stoker import __version__

        print(f"stoker {__version__}, the Python package without the program")
        return
    if not os.path.exists(_PROGRAM):
        sys.exit(
            "stoker: this Python package was built without the program. The wheels of tools/wheel "
            "and the Debian packages have it; in a checkout it is built by\n"
            "`pip install --config-settings=cmake.define.STOKER_PROGRAM=ON .`"
        )
    os.execv(_PROGRAM, [_PROGRAM, *sys.argv[1:]])


if __name__ == "__main__":
    main()
