#!/usr/bin/env python3
"""Reads the public headers by Doxygen, and writes a page for each. cpp_api.py --out DIR --work DIR

Public are the headers that an installation has: those of stoker_library() in the folders' CMakeLists.txt. Their comments are
plain `//`; a copy says them in Doxygen's way.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDERS = {"pipeline": "Sources, augmentation, the Loader", "staging": "Devices and batches", "decode": "Decoding", "train": "Training"}
SECTIONS = ("briefdescription detaileddescription innernamespace innerclass define enum typedef func var user-defined public-type public-func "
            "public-static-func public-attrib public-static-attrib")
SETTINGS = """
INPUT = {input}
RECURSIVE = YES
FILE_PATTERNS = *.h
STRIP_FROM_PATH = {input}
STRIP_FROM_INC_PATH = {input}
OUTPUT_DIRECTORY = {work}
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
EXTRACT_ALL = YES
QUIET = YES
WARNINGS = NO
JAVADOC_AUTOBRIEF = NO
HIDE_UNDOC_RELATIONS = YES
ENABLE_PREPROCESSING = YES
MACRO_EXPANSION = NO
NUM_PROC_THREADS = 2
"""


def headers_of(folder):
    text = (ROOT / folder / "CMakeLists.txt").read_text(encoding="utf-8")
    found = re.search(rf"stoker_library\(stoker_{folder} HEADERS([^)]*)\)", text)
    if not found:
        sys.exit(f"cpp_api: {folder}/CMakeLists.txt names no public headers")
    return [word for word in found[1].split() if word.endswith(".h")]


def escaped(comment):
    return re.sub(r"([\\@<>#%])", r"\\\1", comment)


def for_doxygen(text):
    """The same header with comments that Doxygen takes: `///` before what they explain, `///<` behind it."""
    lines, behind, first = [], None, True
    for line in text.splitlines():
        alone = re.match(r"^(\s*)//(?!/)(.*)$", line)
        if alone and behind is not None and len(alone[1]) == behind:
            lines.append(f"{alone[1]}///<{escaped(alone[2])}")
            continue
        behind = None
        if alone:
            if first:
                lines.append("/// \\file")
            lines.append(f"{alone[1]}///{escaped(alone[2])}")
        else:
            trailing = re.match(r"^(.*[;,{)}\w]\s+)//(?!/)(.*)$", line)
            if trailing and not trailing[1].lstrip().startswith(("#", "}")) and not trailing[1].rstrip().endswith("{"):
                behind = len(trailing[1])
                lines.append(f"{trailing[1]}///<{escaped(trailing[2])}")
            else:
                lines.append(line)
        first = False
    return "\n".join(lines) + "\n"


def title_of(text, header):
    """The header's own first sentence says what it is for."""
    comment = " ".join(line.removeprefix("//").strip() for line in re.match(r"(?://.*\n)*", text)[0].splitlines())
    return re.match(r"(.*?[.:])(\s|$)|", comment)[1] or header


def name_by_path(folder):
    """Breathe finds a file by its name in the index, where Doxygen has the last part alone."""
    def path_of(entry):
        text = (folder / f"{entry[2]}.xml").read_text(encoding="utf-8")
        return f"{entry[1]}{re.findall('<location file=.([^ >]*?).(?: |/>)', text)[-1]}<"

    index = folder / "index.xml"
    text = index.read_text(encoding="utf-8")
    index.write_text(re.sub(r'(<compound refid="([^"]*)" kind="file"><name>)[^<]*<', path_of, text), encoding="utf-8")


def drop_initializers(folder):
    """Sphinx's parser of C++ does not know `{.name = value}`; the header itself has the value."""
    for path in folder.glob("*.xml"):
        text = path.read_text(encoding="utf-8")
        new = re.sub(r"<initializer>=? *\{\s*\.(?:(?!</initializer>).)*</initializer>", "", text, flags=re.DOTALL)
        if new != text:
            path.write_text(new, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    include = options.work / "include"
    index = ["# C++", "", "The public headers, as an installation has them in `include/stoker/`. [Feed a C++ program](../../feed/cpp.md) begins with a program; `stoker/pipeline/loader.h` is the place to begin here.", ""]
    names = []
    for folder, title in FOLDERS.items():
        index += [f"## {title}", ""]
        for header in headers_of(folder):
            text = (ROOT / folder / header).read_text(encoding="utf-8")
            copy = include / "stoker" / folder / header
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(for_doxygen(re.sub(r'#include "(decode|staging|pipeline|train)/', r'#include "stoker/\1/', text)), encoding="utf-8")
            name = f"{folder}/{header}".removesuffix(".h").replace("/", "_")
            names.append(name)
            said = re.sub(r"([*_<\[\]$#])", r"\\\1", title_of(text, header))
            index.append(f"- [{folder}/{header}]({name}.md): {said}")
            lines = [f"# {folder}/{header}", "", "```cpp", f"#include <stoker/{folder}/{header}>", "```", "",
                     f"```{{doxygenfile}} stoker/{folder}/{header}", ":project: stoker", f":sections: {SECTIONS}", "```", ""]
            (options.out / f"{name}.md").write_text("\n".join(lines), encoding="utf-8")
        index.append("")
    (options.out / "index.md").write_text("\n".join([*index, "```{toctree}", ":hidden:", "", *names, "```", ""]), encoding="utf-8")
    settings = options.work / "Doxyfile"
    settings.write_text(SETTINGS.format(input=include, work=options.work), encoding="utf-8")
    subprocess.run(["doxygen", str(settings)], check=True)
    name_by_path(options.work / "xml")
    drop_initializers(options.work / "xml")


if __name__ == "__main__":
    main()
