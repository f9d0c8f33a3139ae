"""Ultralytics' RandomHSV with given numbers, as OpenCV computes it: the bytes that decode/pixel/hsv.h gives."""
import cv2
import numpy

cv2.setNumThreads(1)
# OpenCV's vectors take whole groups of pixels and truncate; what is left of a row is rounded. 64 is the longest group.
GROUP = 64


def hsv(pixels, hue, saturation, value):
    """pixels: (height, width, 3) uint8 RGB; hue in colour circles, the others are factors."""
    x = numpy.arange(256, dtype=numpy.float64)
    hue_table = ((x + hue * 180) % 180).astype(numpy.uint8)
    saturation_table = numpy.clip(x * saturation, 0, 255).astype(numpy.uint8)
    saturation_table[0] = 0
    value_table = numpy.clip(x * value, 0, 255).astype(numpy.uint8)
    h, s, v = cv2.split(cv2.cvtColor(pixels, cv2.COLOR_RGB2HSV))
    mapped = cv2.merge((cv2.LUT(h, hue_table), cv2.LUT(s, saturation_table), cv2.LUT(v, value_table)))
    return cv2.cvtColor(mapped, cv2.COLOR_HSV2RGB)


def draw_numbers(rng):
    """Returns numbers of hsv(), with gains of 0.015, 0.7 and 0.4 or of 1."""
    gains = (0.015, 0.7, 0.4) if rng.randrange(2) else (1, 1, 1)
    hue, saturation, value = (rng.uniform(-1, 1) * gain for gain in gains)
    return hue, 1 + saturation, 1 + value
