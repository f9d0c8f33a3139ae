"""Runs a decoder that decodes files one by one (tests/decode/decode_files.cc)."""
import os
import subprocess


class DecoderProcess:
    """Runs decode_files; glibc's malloc fills memory with `perturb` (MALLOC_PERTURB_), so that unwritten memory is noticed."""

    def __init__(self, program, how, perturb, max_pixels=4_000_000):
        environment = {**os.environ, "MALLOC_PERTURB_": str(perturb)}
        self.process = subprocess.Popen(
            [program, how, str(max_pixels)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )

    def decode(self, path):
        """Returns (line, pixels, size), or None if the program died."""
        try:
            self.process.stdin.write(path.encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        line = self.process.stdout.readline().decode(errors="replace")
        if not line:
            return None
        code, width, height = line.split(" ")[:3]
        if not height.isdigit():
            raise ValueError(f"{path}: the decoder answered {line!r}")
        size = (int(width), int(height))
        pixels = self.process.stdout.read(size[0] * size[1] * 3) if code == "ok" else b""
        return line, pixels, size
