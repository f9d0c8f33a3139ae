"""Google's jpegli decodes, in the bindings of ajpegli; the rest is OpenCV's."""

import ajpegli

import opencv
from peer import versions


class Participant(opencv.Participant):
    def version(self):
        return f"{versions('ajpegli')} (jpegli@{ajpegli.jpegli_commit()[:12]}), {super().version()}"

    def decode(self, data):
        return ajpegli.decode(data)
