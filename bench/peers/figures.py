"""Figures of a participant's turns, which are [(images, CPU seconds, wall seconds)]."""

import statistics


def micros(participant):
    """CPU us per image, turn by turn."""
    return [1e6 * cpu / images for images, cpu, _ in participant["turns"]]


def samples_per_second(participant):
    """Images per second of CPU time, turn by turn."""
    return [images / cpu for images, cpu, _ in participant["turns"]]


def all_cores_rates(participant):
    """Images per second of wall time, turn by turn."""
    return [images / wall for images, _, wall in participant["turns"]]


def _paired(kept, name, base, of):
    return statistics.median(a / b for a, b in zip(of(kept[name]), of(kept[base])))


def ratio(kept, name, base):
    """How many times the CPU time of `base` does `name` take? Turn by turn, the median."""
    return _paired(kept, name, base, micros)


def wall_ratio(kept, name, base):
    """How many times the images per second of `base` does `name` do?"""
    return _paired(kept, name, base, all_cores_rates)
