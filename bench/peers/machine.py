"""What the figures were measured on and with."""

import datetime
import os
import platform
import subprocess


def _cpu():
    flags, name = "", platform.machine()
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() == "model name":
                    name = value.strip()
                if key.strip() in ("flags", "Features"):
                    flags = value
                    break
    except OSError:
        pass
    vectors = [v for v in ("avx512bw", "avx2", "asimd") if f" {v}" in flags]
    return f"{name} ({vectors[0]})" if vectors else name


def _commit(folder):
    def git(*words):
        return subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True).stdout.strip()

    commit = git("rev-parse", "--short=12", "HEAD")
    return commit + ("+changes" if commit and git("status", "--porcelain", "--untracked-files=no") else "")


def describe(folder):
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(folder),
        "load": os.getloadavg()[0],
    }


def public_arguments(arguments):
    """The command line with folders cut to their last name."""
    return [os.path.basename(a.rstrip("/")) if a.startswith("/") else a for a in arguments]
