"""Calculates figures from a participant's turns, which are [(images, CPU seconds, wall
seconds)]."""

import statistics


def spread(values):
    """Returns the median and the quartiles."""
    if len(values) < 2:
        return {"median": values[0], "low": values[0], "high": values[0]}
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": median, "low": low, "high": high}


def micros(participant):
    """Returns the CPU us per image of each turn."""
    return [1e6 * cpu / images for images, cpu, _ in participant["turns"]]


def samples_per_second(participant):
    """Returns the images per second of CPU time of each turn."""
    return [images / cpu for images, cpu, _ in participant["turns"]]


def all_cores_rates(participant):
    """Returns the images per second of wall time of each turn."""
    return [images / wall for images, _, wall in participant["turns"]]


def _paired(kept, name, base, of):
    return statistics.median(a / b for a, b in zip(of(kept[name]), of(kept[base])))


def ratio(kept, name, base):
    """Returns the CPU time of `name` divided by that of `base`: the median over the turns."""
    return _paired(kept, name, base, micros)


def wall_ratio(kept, name, base):
    """Returns the images per second of `name` divided by those of `base`: the median over the
    turns."""
    return _paired(kept, name, base, all_cores_rates)
