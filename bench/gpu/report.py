"""Writes gpu-check.md: the aims beside what was measured, and a table for each step."""
import os

from aims import aims_table
from measure import missing


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


def depth_lines(name, case):
    if missing(case):
        return [f"{name}: {missing(case)}", ""]
    why = f" (the model {case['instead_of_the_model']})" if "instead_of_the_model" in case else ""
    lines = [f"{name}: {case['batch']} samples of {case['size']} px; a step is {case['step']}{why}", "",
             "| slots | idle gap per step, ms | longest | step, ms | images/s | host CPU per batch, µs | next() takes, µs |",
             "|---|---|---|---|---|---|---|"]
    lines += [f"| {d['slots']} | {d['gap_ms_median']:.3f} | {d['gap_ms_max']:.3f} | {d['step_ms']:.2f} | {d['images_per_second']:.0f} | "
              f"{d['host_us_per_batch']:.1f} | {d['next_us_median']:.1f} |" for d in case["depths"]]
    return lines + [""]


def text_lines(result):
    """Returns what programs printed, unchanged."""
    lines = []
    for name, part in result.items():
        lines += [f"{name}: {missing(part)}", ""] if missing(part) else [f"{name}:", "```", part["text"], "```", ""]
    return lines


def step_lines(name, step):
    result = step["result"]
    lines = [f"## {name}", "", f"{step['what']} {step['seconds']:.0f} s, call {step['call'] + 1}.", ""]
    if "not_run" in result or list(result) == ["failed"]:
        return lines + [missing(result), ""]
    if "failed" in result:
        lines += [missing(result), ""]
    parts = {k: v for k, v in result.items() if k != "failed"}
    if name == "machine":
        return lines + text_lines(parts)
    if name == "staging":
        return lines + [line for key, case in parts.items() for line in depth_lines(key, case)]
    if all(isinstance(v, dict) for v in parts.values()):
        return lines + ["| | |", "|---|---|"] + [f"| {k} | {flat(v)} |" for k, v in parts.items()] + [""]
    return lines + [f"- {k}: {cell(v)}" for k, v in parts.items()] + [""]


def call_lines(number, call):
    about = call["machine"]
    return (f"{number}. {call['name']}: stoker {call['commit']}, {about['date']}; {about['cpu']}, {about['cores']} cores; "
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
