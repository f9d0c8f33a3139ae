"""Describes the machine that the numbers were measured on."""
import shutil
import subprocess

import measured_on


def read(words):
    """Returns a program's output, or None if there is no such program or it fails."""
    if not shutil.which(words[0]):
        return None
    try:
        result = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return None
    return result.stdout.strip() if result.returncode == 0 else None


def gpus():
    fields = "name,uuid,driver_version,memory.total,clocks.sm,clocks.mem,power.limit,pcie.link.gen.current,pcie.link.width.current"
    output = read(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"])
    return output.splitlines() if output else []


def gpu_mib_used():
    """Returns the memory in use on the first GPU by all processes, or None if nvidia-smi does not
    report it."""
    output = read(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"])
    return int(output.split()[0]) if output else None


def describe(commit):
    return {**measured_on.describe("."), "commit": commit, "gpus": gpus()}
