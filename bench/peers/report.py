"""Writes the result as JSON, Markdown and a table for the terminal."""

import json

import aims
from figures import all_cores_rates, micros, ratio, samples_per_second, spread
from measured_on import neighbours_text

HEADINGS = {
    "train": "RandomResizedCrop 224, random flip",
    "eval": "Resize 256, CenterCrop 224",
    "cifar": "CIFAR as JPEG, 32x32: pad 4, crop, flip",
}


def _number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _quality(participant):
    quality = participant["quality"]
    if not quality:
        return ["", "", ""]
    psnr = "same" if quality["psnr"] is None else f"{quality['psnr']:.1f}"
    return [f"{quality['mean']:.3f}", f"{quality['worst']:.2f}", psnr]


def _table(result, section):
    """Returns the heading row and the rows of one section."""
    kept = result["sections"][section]
    cores = result["sections"].get("cores", {}) if section == "train" else {}
    head = ["", "CPU us/image", "quartiles", "images/s per core", "x stoker fast's time"]
    count = result["machine"]["cores"]
    head += [f"CPU us/image, {count} cores", f"images/s of wall time, {count} cores"] if cores else []
    head += ["MAE to Pillow", "worst image", "PSNR dB"]
    rows = []
    for name, participant in kept.items():
        us = spread(micros(participant))
        title = participant["title"] + (" (own crops)" if participant["given"] != "boxes" else "")
        row = [title, _number(us["median"]), f"{_number(us['low'])} to {_number(us['high'])}"]
        row.append(_number(1e6 / us["median"]))
        row.append(f"{ratio(kept, name, 'stoker-fast'):.2f}" if "stoker-fast" in kept else "")
        if cores:
            row += [_number(spread(of(cores[name]))["median"]) if name in cores else "" for of in (micros, all_cores_rates)]
        rows.append(row + _quality(participant))
    return head, rows


def _markdown_table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def _text_table(head, rows):
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    def line(row):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]
        return "  ".join(cells).rstrip()
    return "\n".join(line(row) for row in [head, *rows])


def _sections(result, table):
    for section, heading in HEADINGS.items():
        if result["sections"].get(section):
            yield heading, table(*_table(result, section))
    if result["sections"].get("records"):
        (participant,) = result["sections"]["records"].values()
        rate = spread(samples_per_second(participant))
        yield "CIFAR binary, uint8 out, through the Loader", (
            f"{rate['median'] / 1e6:.2f} million samples/s per core ({rate['low'] / 1e6:.2f} to {rate['high'] / 1e6:.2f})")


def terminal(result):
    parts = [f"{heading}\n{text}" for heading, text in _sections(result, _text_table)]
    met = _text_table(*aims.table(result))
    parts.append(f"Aims\n{met}")
    parts += [f"missing: {name}: {reason}" for name, reason in result["missing"].items()]
    parts.append(neighbours_text(result["machine"]["neighbours"]))
    return "\n\n".join(parts)


def _markdown(result):
    machine, settings = result["machine"], result["settings"]
    lines = [
        "# stoker beside its peers",
        "",
        f"`{result['command']}`",
        "",
        f"{machine['cpu']}, {machine['cores']} cores; {machine['date']}; commit {machine['commit']}; Python "
        f"{machine['python']}. {settings['images']} images, the same for all, in memory except for the Loader's, "
        f"which reads files. CPU time of a participant's processes and threads, pinned to one core, in turn with all "
        f"others: the median of {settings['rounds']} rounds and its quartiles; a ratio is the median of the rounds' "
        f"ratios. {neighbours_text(machine['neighbours'])}",
    ]
    for heading, text in _sections(result, _markdown_table):
        lines += ["", f"## {heading}", "", text]
    lines += ["", "## Aims", "", "Measured, with the aim in brackets where there is one.", "", *_aims(result)]
    lines += ["", "## Versions", ""]
    lines += [f"- {version}: {'; '.join(titles)}" for version, titles in _versions(result).items()]
    if result["missing"]:
        lines += ["", "## Missing", ""]
        lines += [f"- {result['participants'][n]['title']}: {why}" for n, why in result["missing"].items()]
    return "\n".join(lines) + "\n"


def _aims(result):
    """Returns a line for everything that has aims."""
    lines = {}
    for what, measure, aim, measured, met in aims.table(result)[1]:
        bracket = f" ({aim}{', **missed**' if met == 'missed' else ''})" if aim else ""
        lines.setdefault(what, []).append(f"{measure} {measured}{bracket}")
    return [f"- {what}: {'; '.join(texts)}" for what, texts in lines.items()]


def _versions(result):
    """Returns the titles of the participants by the versions that they ran with."""
    versions = {}
    for kept in result["sections"].values():
        for participant in kept.values():
            titles = versions.setdefault(participant["version"], [])
            if participant["title"] not in titles:
                titles.append(participant["title"])
    versions.pop("", None)
    return versions


def write(result, output):
    with open(output.with_suffix(".json"), "w") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
    output.with_suffix(".md").write_text(_markdown(result))
