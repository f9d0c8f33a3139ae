#!/usr/bin/env python3
"""Makes the pages of the tutorials, NAME.md, of their sources in tools/docs/tutorials. tutorials.py --out DIR [--notebooks DIR]

With --notebooks, the folder that `tests/docs/tutorials_test.py --out` has written, a page shows what each cell has printed
and drawn; without, the cells alone. A cell that draws says in its first line what one sees, `# %% alt="..."`: the picture's
alternative text. One that draws and does not say it is an error.
"""
import argparse
import base64
import json
import pathlib
import re
import sys

TUTORIALS = pathlib.Path(__file__).resolve().parents[1] / "tutorials"
CELL = re.compile(r"^# %%(?P<markdown> \[markdown\])?(?: alt=\"(?P<alt>[^\"]*)\")?$")


def cells_of(text):
    """Returns (is_markdown, alt, lines) of each cell."""
    cells = []
    for line in text.splitlines():
        begin = CELL.match(line)
        if begin:
            cells.append((begin["markdown"] is not None, begin["alt"], []))
        elif line.startswith("# %%"):
            raise ValueError(f"a cell begins with {line!r}")
        else:
            cells[-1][2].append(line)
    return cells


def outputs_of(notebook, name):
    """Returns the outputs of each code cell."""
    file = pathlib.Path(notebook) / f"{name}.ipynb"
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    return [cell["outputs"] for cell in cells if cell["cell_type"] == "code"]


def shown(outputs, alt, name, out):
    """Returns the lines of a cell's outputs, and writes its pictures."""
    lines = []
    printed = "".join("".join(each["text"]) for each in outputs if each.get("name") == "stdout").rstrip()
    if printed:
        lines += ["```text", printed, "```", ""]
    for each in outputs:
        png = each.get("data", {}).get("image/png")
        if png is None:
            continue
        if not alt:
            raise ValueError(f"{name}: a cell draws a picture and has no alt")
        number = len(list(out.glob(f"{name}_*.png"))) + 1
        picture = out / f"{name}_{number}.png"
        picture.write_bytes(base64.b64decode("".join(png)))
        lines += [f"![{alt}]({picture.name})", ""]
    return lines


def page_of(path, notebooks, out):
    name = path.stem
    outputs = iter(outputs_of(notebooks, name)) if notebooks else None
    lines = []
    for is_markdown, alt, cell in cells_of(path.read_text(encoding="utf-8")):
        text = "\n".join(cell).strip()
        if is_markdown:
            text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in text.splitlines())
            lines += [re.sub(r"\]\((\w+)\.py\)", r"](\1.md)", text), ""]
            continue
        lines += ["```python", text, "```", ""]
        if outputs is not None:
            lines += shown(next(outputs), alt, name, out)
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--notebooks", help="folder of notebooks that have been run")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for path in sorted(TUTORIALS.glob("*.py")):
        for old in options.out.glob(f"{path.stem}_*.png"):
            old.unlink()
        (options.out / f"{path.stem}.md").write_text(page_of(path, options.notebooks, options.out), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
