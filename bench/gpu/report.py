"""Writes gpu-check.md: the aims beside what was measured, and a table for each step."""
import os

from aims import aims_table
from runner import missing


def number(value):
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"
    return str(value)


def cell(value):
    if isinstance(value, dict) and "median" in value:
        return f"{number(value['median'])} ({number(value['min'])}–{number(value['max'])})"
    if isinstance(value, dict):
        return flat(value)
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return number(value)


def flat(result):
    """Returns a result as one line of text: its figures, or why there are none."""
    reason = missing(result)
    if reason:
        found = {k: v for k, v in result.items() if k not in ("failed", "not_run")}
        return f"{reason}; before that {flat(found)}" if found else reason
    if "median" in result:
        rest = {k: v for k, v in result.items() if k not in ("median", "min", "max", "runs")}
        return "; ".join([cell(result), *(f"{k} {cell(v)}" for k, v in rest.items())])
    parts = {k: v for k, v in result.items() if not isinstance(v, dict) or "median" in v}
    for name, inner in result.items():  # one level deeper, for example milliseconds by kind
        if isinstance(inner, dict) and "median" not in inner:
            parts.update({f"{name} {k}": v for k, v in inner.items() if isinstance(v, (int, float))})
    return "; ".join(f"{k} {cell(v)}" for k, v in parts.items())


def rows_lines(rows):
    """Returns a table of dictionaries that have the same keys."""
    return ["", "| " + " | ".join(rows[0]) + " |", "|---" * len(rows[0]) + "|", *("| " + " | ".join(map(cell, r.values())) + " |" for r in rows), ""]


def part_lines(name, part):
    """Returns a named part of a result: what a program printed, figures with their tables, or one line of figures."""
    if "text" in part and not missing(part):
        return [f"{name}:", "```", part["text"], "```", ""]
    tables = [value for value in part.values() if isinstance(value, list) and value and isinstance(value[0], dict)]
    lines = [f"- {name}: {flat({k: v for k, v in part.items() if v not in tables})}"]
    return lines + [line for rows in tables for line in rows_lines(rows)]


def step_lines(name, step):
    result = step["result"]
    lines = [f"## {name}", "", f"{step['what']} {step['seconds']:.0f} s, call {step['call'] + 1}.", ""]
    if missing(result):
        lines += [missing(result), ""]
    for key, value in result.items():
        if key not in ("failed", "not_run"):
            lines += part_lines(key, value) if isinstance(value, dict) else [f"- {key}: {cell(value)}"]
    return lines + [""]


def call_lines(number, call):
    about = call["machine"]
    return (f"{number}. stoker {about['commit']}, {about['date']}; {about['cpu']}, {about['cores']} cores; "
            f"{'; '.join(about['gpus']) or 'no GPU seen'}; {about['system']}; `{call['command']}`")


def markdown(progress):
    found = progress.found
    title = "gpu-check, a rehearsal: none of these numbers means anything" if progress.rehearsal else "gpu-check"
    lines = [f"# {title}", "", *aims_table(progress.results(), progress.rehearsal), ""]
    lines += ["Figures are medians (smallest–largest). What is compared ran in turn in one step, on one machine. The calls:", ""]
    lines += [call_lines(number, call) for number, call in enumerate(found["calls"], 1)] + [""]
    for name, step in found["steps"].items():
        lines += step_lines(name, step)
    return "\n".join(lines)


def write(progress, out):
    """Replaces the file atomically, so that a killed call leaves a complete file."""
    path = os.path.join(out, "gpu-check.md")
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(markdown(progress) + "\n")
    os.replace(path + ".part", path)
