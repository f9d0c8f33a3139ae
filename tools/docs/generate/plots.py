#!/usr/bin/env python3
"""Draws a plot of each table of bench/results that one sees more in than in the table. plots.py --out DIR

Writes DIR/plots.md, which begins as measured/plots.md, with all of them, and DIR/plots/PAGE_N.svg, N being the table's number on its page. TABLES says of every table which columns are
drawn, or why none is; a table without an entry ends the build, and so does an entry without a table.
"""
import argparse
import pathlib
import re
import sys
import textwrap
from typing import NamedTuple
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parents[3]
RESULTS = ROOT / "bench/results"


class Bars(NamedTuple):
    """A bar for each row, or one for each of several columns."""
    columns: tuple  # numbers of the columns with the values, from 0
    title: str | None = None  # default: the column's head
    labels: tuple | None = None  # the columns that name a row; default: those before the first value
    names: tuple | None = None  # of several columns; default: their heads
    least: float = 0  # where the scale begins; above 0 dots are drawn, because a bar's length would mislead


def bars(*columns, title=None, labels=None, names=None, least=0):
    return Bars(columns, title, labels, names, least)


LIST = "a list, without figures"
WORDS = "its cells are sentences"
FEW = "two rows that say it as they are"
MIXED = "each row has another unit"

_RECIPE = bars(1)
_PEERS = bars(1, title="CPU time per image, µs")
_SCORED = bars(7, 8, title="images/s with the first recommendation", labels=(0,), names=("predicted", "achieved"))
_LOOPS = bars(3, 4, title="images/s of a faster loader", labels=(0,), names=("the bound", "achieved"))
_ANNOTATED = bars(1, title="ms of CPU time per picture")
_PICTURES = bars(1, title="ms of CPU time per picture")
_FORMATS = bars(2, title="rate of rows, divided by the folder's")
_SHARED = bars(2, title="CPU time per row that a process is given, µs")

TABLES = {
    "README.md": [LIST, bars(1, 2, 3, 4, title="share of the CPU time of the client that left all to libcurl"),
                  bars(3, title="torch's CPU time, divided by stoker's", labels=(0, 1)),
                  bars(1, 2, 3, 4, 5, title="stoker's peak memory, MiB (torch's stands in the table)"),
                  bars(3, title="top-1 of CIFAR-10 with 6 views, %", labels=(0,), least=88), bars(2, 3, 4, 5, title="efficiency, %", labels=(0, 1)), WORDS, LIST],
    "accuracy_airbench94.md": [bars(1, 2, title="top-1 of CIFAR-10, %", least=88)],
    "accuracy_airnet_whole_batch_norms.md": [bars(1, 2, 3, title="top-1 of CIFAR-10, %", least=88)],
    "annotations.md": [_ANNOTATED] * 11 + [bars(3, 4, title="µs of CPU time per object", labels=(0, 1))],
    "bucket_batches.md": [_PICTURES],
    "buckets.md": [FEW],
    "build_times.md": [WORDS, WORDS],
    "codecs.md": [bars(2, 3, 4, title="µs of CPU time per picture", labels=(0, 1))],
    "convergence.md": [bars(3)],
    "decoded_cache.md": [bars(1)],
    "decoded_cache_cifar.md": [bars(1)],
    "depth_throttled.md": [bars(1, title="gap between two steps, ms, by slots")],
    "emulate_h100_224px.md": [bars(1, title="AU, %, by the number of accelerators")],
    "emulate_h100_originals.md": [bars(1, title="AU, %, by the number of accelerators")],
    "feed.md": [bars(1), bars(1, title="images/s, by workers")],
    "fuzz.md": [bars(2, title="million inputs that were tried", labels=(0,))],
    "gpu_h200/README.md": [LIST, bars(1, title="ResNet-50 on an H200, images/s"), bars(1, title="ResNet-18 in PyTorch on an H200, images/s"),
                           bars(1, 2, 3, 4, title="gap between a model's steps, ms, by slots", names=("0 slots", "1 slot", "2 slots", "3 slots")), WORDS],
    "gpu_h200/stem.md": [bars(1, 2)],
    "grad_wire.md": [bars(6, title="accuracy on CIFAR-10, %, by the format of gradients", labels=(0,), least=84)],
    "guard_found.md": [bars(2), bars(2)],
    "idle_costs.md": [bars(3, labels=(0,))],
    "large_batches.md": [bars(1, 2, 3, title="error, %, by the global batch")],
    "libraries.md": [WORDS, bars(1, title="inputs"), WORDS, bars(2, 3, 4, 5, title="time divided by ours", labels=(0,), names=("ISA-L", "zlib-ng", "zlib", "libdeflate"))],
    "list_costs.md": [bars(1), bars(1)],
    "many_samples.md": [MIXED],
    "memory.md": [bars(1, 2, title="memory, MiB, of each run", labels=(0,), names=("limit", "peak"))],
    "peers.md": [_PEERS, _PEERS, _PEERS],
    "peers_epyc_25.md": [_PEERS],
    "peers_intel.md": [_PEERS],
    "pillow_bytes.md": [WORDS],
    "pixel_geometry.md": [bars(1, 2, 3, title="µs per picture")],
    "predict.md": [bars(4, 5, title="images/s", names=("measured", "predicted"))],
    "profile_score.md": [_SCORED, _LOOPS],
    "profile_score_first.md": [_SCORED, _LOOPS],
    "ray_rows.md": [bars(2, title="rows/s, by workers", labels=(0,))],
    "recipes.md": [_RECIPE] * 8,
    "recipes_epyc_25.md": [_RECIPE] * 8,
    "shards.md": [bars(1, title="CPU time per image, µs")],
    "share_costs.md": [_SHARED],
    "share_peers.md": [_SHARED],
    "share_store.md": [_SHARED],
    "shuffle.md": [bars(3, labels=(0,))],
    "slice_throttled.md": [bars(1, 3, title="ms of the transfers, by where a batch is cut", labels=(0,), names=("measured", "predicted")),
                           bars(2, title="MB from the host"), "two figures in each cell"],
    "source_formats.md": [_FORMATS],
    "source_formats_cifar.md": [_FORMATS],
    "step_bytes.md": [bars(2, title="GB that a ResNet-50 step moves", labels=(0,))],
    "store_index.md": [bars(1, 2, 3, 4, title="share of the other way's time, by how late each answer comes")],
    "store_peers.md": [bars(1, title="CPU time per image, µs")],
    "store_ranges.md": [bars(3, title="GB/s and core")],
    "text_to_image.md": [_PICTURES] * 3,
    "train_side_by_side_epyc_25.md": [bars(5, title="stoker's images/s, divided by torch's", labels=(0, 1))],
    "train_side_by_side_one_core_epyc_25.md": [bars(5, title="torch's CPU time, divided by stoker's", labels=(0, 1))],
}


# ---- Reading

class Table(NamedTuple):
    section: str  # the heading above it
    head: list
    rows: list


def plain(cell):
    """A cell without Markdown."""
    cell = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", cell)
    return re.sub(r"[`*]", "", cell).replace("\\|", "|").replace(" (page)", "").strip()


def cells(line):
    return [plain(cell) for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def tables_of(text):
    found, section, lines = [], "", text.splitlines()
    at = 0
    while at < len(lines):
        if lines[at].startswith("#"):
            section = plain(lines[at].lstrip("# "))
        if lines[at].startswith("|") and at + 1 < len(lines) and re.fullmatch(r"\|[-:| ]+\|", lines[at + 1]):
            end = at + 2
            while end < len(lines) and lines[end].startswith("|"):
                end += 1
            found.append(Table(section, cells(lines[at]), [cells(line) for line in lines[at + 2:end]]))
            at = end
        at += 1
    return found


def pages():
    return {str(path.relative_to(RESULTS)): tables_of(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.rglob("*.md"))}


def differences(found):
    """What is wrong with TABLES, in words."""
    names = sorted(set(TABLES) | {name for name, tables in found.items() if tables})
    return [f"bench/results/{name} has {len(found.get(name, []))} tables, TABLES in tools/docs/generate/plots.py has {len(TABLES.get(name, []))}"
            for name in names if len(found.get(name, [])) != len(TABLES.get(name, []))]


_NUMBER = r"[-+−]?\d[\d,]*(?:\.\d+)?"


class Value(NamedTuple):
    value: float
    low: float
    high: float
    text: str


def number(text):
    return float(text.replace(",", "").replace("−", "-"))


def value_of(cell):
    """The first figure of a cell with its range, or None."""
    match = re.match(rf"[^\d-]*({_NUMBER})", cell)
    if not match or cell.startswith("–"):
        return None
    value = number(match[1])
    rest = cell[match.end():]
    between = re.search(rf"\(({_NUMBER})\s*(?:–|-|to)\s*({_NUMBER})\)", rest)
    around = re.search(rf"±\s*({_NUMBER})", rest)
    if between:
        return Value(value, number(between[1]), number(between[2]), match[1])
    spread = number(around[1]) if around else 0
    return Value(value, value - spread, value + spread, match[1])


# ---- Drawing

# On white, so that it reads the same on a light and on a dark page. Okabe and Ito's colours, darkened: 4.5:1 or more.
_INK, _FAINT, _RULE = "#1f2328", "#57606a", "#d8dee4"
_COLOURS = ["#0072b2", "#b34700", "#007a5a", "#a8487f", "#7a6000"]
_OURS, _OTHERS = "#0072b2", "#6e7781"
_WIDTH = 440


def series_of(how, table):
    """[(name, [(label, Value)])] of the columns that are drawn."""
    labels = how.labels if how.labels is not None else tuple(range(min(how.columns)))
    series = []
    for place, column in enumerate(how.columns):
        name = how.names[place] if how.names else table.head[column]
        rows = [(", ".join(row[each] for each in labels if row[each]) or "–", value_of(row[column])) for row in table.rows]
        series.append((name, [(label, value) for label, value in rows if value is not None]))
    return series


def svg_of(title, series, least):
    most = max(max(value.value, value.high) for _, rows in series for _, value in rows) or 1
    labels = list(dict.fromkeys(label for _, rows in series for label, _ in rows)) if len(series) > 1 else None
    if labels:
        most = least + (most - least) * 1.18  # the figures stand behind the bars
    if least:
        title += f" (the scale begins at {least})"
    parts, y = [], 14

    def text(x, at, content, anchor="start", colour=_INK, weight="400"):
        parts.append(f'<text x="{x}" y="{at}" text-anchor="{anchor}" fill="{colour}" font-weight="{weight}">{escape(content)}</text>')

    def bar(value, colour, height):
        nonlocal y
        middle = y + height / 2

        def place(figure):
            return 14 + max(0, figure - least) / (most - least) * (_WIDTH - 28)

        if least:
            parts.append(f'<path d="M14 {middle}H{_WIDTH - 14}" stroke="{_RULE}"/><circle cx="{place(value.value):.1f}" cy="{middle}" r="5" fill="{colour}"/>')
        else:
            parts.append(f'<rect x="14" y="{y}" width="{place(value.value) - 14:.1f}" height="{height}" rx="2" fill="{colour}"/>')
        if value.high > value.low:
            left, right = place(value.low), place(value.high)
            parts.append(f'<path d="M{left:.1f} {middle}H{right:.1f}M{left:.1f} {y}v{height}M{right:.1f} {y}v{height}" stroke="{_INK}" fill="none"/>')
        y += height

    def label_lines(label, most_letters):
        nonlocal y
        for line in textwrap.wrap(label, most_letters) or [""]:
            y += 16
            text(14, y, line)

    for line in textwrap.wrap(title, 56):
        y += 14
        text(14, y, line, weight="600")
        y += 4
    if labels is None:
        for label, value in series[0][1]:
            y += 6
            label_lines(label, 50)
            text(_WIDTH - 14, y, value.text, "end")
            y += 5
            bar(value, _OURS if re.match("stoker|ours", label) else _OTHERS, 10)
    else:
        x = 14
        y += 20
        for i, (name, _) in enumerate(series):
            width = 30 + 8 * len(name)
            if x + width > _WIDTH and x > 14:
                x, y = 14, y + 18
            parts.append(f'<rect x="{x}" y="{y - 10}" width="11" height="11" rx="2" fill="{_COLOURS[i]}"/>')
            text(x + 16, y, name)
            x += width
        y += 4
        for label in labels:
            y += 8
            label_lines(label, 58)
            y += 3
            for i, (_, rows) in enumerate(series):
                value = dict(rows).get(label)
                if value is None:
                    continue
                y += 2
                text(_WIDTH - 14, y + 11, value.text, "end", _FAINT)
                bar(value, _COLOURS[i], 12)
    y += 16
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y}" width="{_WIDTH}" height="{y}" font-family="system-ui, sans-serif" font-size="13">'
            f'<rect width="{_WIDTH}" height="{y}" rx="6" fill="#ffffff"/>' + "".join(parts) + "</svg>\n")


def alternative(how, title, series, most=10):
    """The figures in words; of many the first ones and the ends."""
    figures = [(f"{label}, {name}" if len(series) > 1 else label, value) for name, rows in series for label, value in rows]
    if len(figures) > most:
        least, top = min(figures, key=lambda each: each[1].value), max(figures, key=lambda each: each[1].value)
        said = "; ".join(f"{label} {value.text}" for label, value in figures[:most // 2])
        said += f"; {len(figures)} figures in all, the least {least[1].text} ({least[0]}), the largest {top[1].text} ({top[0]})"
    else:
        said = "; ".join(f"{label} {value.text}" for label, value in figures)
    return re.sub(r"[\[\]|`]", " ", f"{'Dots' if how.least else 'Bars'} of {title}: {said}.")


class Plot(NamedTuple):
    page: str
    table: Table
    file: str
    alternative: str
    svg: str


def plots(found):
    for page, hows in TABLES.items():
        for place, (how, table) in enumerate(zip(hows, found[page]), 1):
            if isinstance(how, str):
                continue
            title = how.title or table.head[how.columns[0]]
            series = series_of(how, table)
            file = f"{page.removesuffix('.md').replace('/', '_')}_{place}.svg"
            yield Plot(page, table, file, alternative(how, title, series), svg_of(title, series, how.least))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    found = pages()
    wrong = differences(found)
    if wrong:
        sys.exit("\n".join(wrong))
    folder = arguments.out / "plots"
    folder.mkdir(parents=True, exist_ok=True)
    page, last = [(ROOT / "tools/docs/measured/plots.md").read_text(encoding="utf-8")], None
    for plot in plots(found):
        (folder / plot.file).write_text(plot.svg, encoding="utf-8")
        if plot.page != last:
            last = plot.page
            heading = plain((RESULTS / last).read_text(encoding="utf-8").splitlines()[0].lstrip("# "))
            page += [f"## {heading} ({last.removesuffix('.md')})", "", f"[The figures](../../../bench/results/{last})", ""]
        if plot.table.section and plot.table.section != heading:
            page += [f"{plot.table.section}:", ""]
        page += [f"![{plot.alternative}](plots/{plot.file})", ""]
    (arguments.out / "plots.md").write_text("\n".join(page), encoding="utf-8")


if __name__ == "__main__":
    main()
