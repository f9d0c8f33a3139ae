#!/usr/bin/env python3
"""Writes the pages of the Python package of its docstrings and stubs, as they are installed. python_api.py --out DIR

Nothing is imported, so that no framework is needed. A public function without a docstring is an error.
"""
import argparse
import ast
import importlib.util
import inspect
import pathlib
import re
import sys

PACKAGE = pathlib.Path(importlib.util.find_spec("stoker").origin).parent
MODULES = ("augment", "torch", "keras", "jax", "ray", "losses")
ENTRY = re.compile(r"^([a-z_]\w*(?:, [a-z_]\w*)*(?:\(\))?|[A-Z]\w*Error(?:, [A-Z]\w*Error)*): (.*)$")


def escaped(text):
    """Text as Markdown that says the same; what stands in `...` is left."""
    parts = re.split(r"(`[^`\n]+`)", text)
    return "".join(part if i % 2 else re.sub(r"([\\*_<>\[\]{}$#|~`])", r"\\\1", part) for i, part in enumerate(parts))


def entries(lines):
    """Lines of `name: text`, whose further lines are indented, as a list of definitions; other lines as text."""
    made, text, term = [], [], None

    def end():
        nonlocal text, term
        if text:
            said = escaped(" ".join(text))
            made.extend([f"`{term}`", f": {said}", ""] if term else [said, ""])
        text, term = [], None

    for line in lines:
        begin = ENTRY.match(line)
        if begin and (term or not text):
            end()
            term, text = begin[1], [begin[2]]
        elif term and not line.startswith(" "):
            end()
            text = [line]
        else:
            text.append(line.strip())
    end()
    return made


def markdown(docstring):
    """A docstring as Markdown: paragraphs, code that is indented, and lists of arguments with or without a title."""
    made, listed = [], False
    for block in re.split(r"\n\s*\n", inspect.cleandoc(docstring)):
        lines = block.splitlines()
        if all(line.startswith("    ") for line in lines):
            if listed and ENTRY.match(lines[0].strip()):
                made += entries([line[4:] for line in lines])
            else:
                made += ["```python", *(line[4:] for line in lines), "```", ""]
            continue
        titled = len(lines) > 1 and lines[0][0] != " " and lines[0][-1] not in ".,:;)" and all(line.startswith("    ") for line in lines[1:])
        listed = titled
        if titled and not ENTRY.match(lines[0]):
            made += [f"**{escaped(lines[0])}**", "", *entries([line[4:] for line in lines[1:]])]
        else:
            made += entries(lines)
    return made


def tree_of(module):
    for name in (f"{module}.pyi", f"{module}.py"):
        if (PACKAGE / name).exists() and not (name == "__init__.pyi"):
            return ast.parse((PACKAGE / name).read_text(encoding="utf-8"))
    sys.exit(f"python_api: the package has no {module}")


def names_of(tree):
    """Returns {public name: (module, its name there)} of what a module imports, and of what it defines."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("stoker"):
            for alias in node.names:
                found[alias.asname or alias.name] = (node.module.removeprefix("stoker").lstrip(".") or "__init__", alias.name)
    return found


def all_of(tree):
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return ast.literal_eval(node.value)
    sys.exit("python_api: a module without __all__")


def definitions(tree, name):
    return [node for node in tree.body if getattr(node, "name", None) == name or name in
            [getattr(target, "id", "") for target in getattr(node, "targets", [getattr(node, "target", None)])]]


def is_decorated(node, word):
    return any(ast.unparse(each).split(".")[-1] == word for each in node.decorator_list)


def signature(name, node, method=False):
    arguments = node.args
    if method and not is_decorated(node, "staticmethod"):
        for part in (arguments.posonlyargs, arguments.args):
            if part:
                del part[0]
                break
    text = ast.unparse(arguments).removeprefix("/, ")
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{name}({text}){returns}"


def directive(kind, signatures, options, body, fence):
    head, *others = signatures
    return [f"{fence}{{py:{kind}}} {head}", *others, *options, "", *body, fence, ""]


def function(name, nodes, kind, fence, where):
    documented = next((node for node in nodes if ast.get_docstring(node)), None)
    if documented is None and kind == "function":
        sys.exit(f"python_api: {where}.{name}() has no docstring")
    shown = [node for node in nodes if is_decorated(node, "overload")] or nodes[:1]
    options = [f":{word}:" for word in ("staticmethod", "classmethod") if kind == "method" and is_decorated(nodes[0], word)]
    body = markdown(ast.get_docstring(documented)) if documented else []
    return directive(kind, [signature(name, node, kind == "method") for node in shown], options, body, fence)


def of_class(name, node, fence, where):
    made, inner = [], fence[:-1]
    methods = {}
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and (not each.name.startswith("_") or each.name == "__init__"):
            methods.setdefault(each.name, []).append(each)
        elif isinstance(each, ast.AnnAssign) and not each.target.id.startswith("_"):
            made += directive("attribute", [each.target.id], [f":type: {ast.unparse(each.annotation)}"], [], inner)
    heads = [name]
    for each, nodes in methods.items():
        if each == "__init__":
            shown = [node for node in nodes if is_decorated(node, "overload")] or nodes[:1]
            heads = [signature(name, node, True).removesuffix(" -> None") for node in shown]
        elif is_decorated(nodes[0], "property"):
            typed = [f":type: {ast.unparse(nodes[0].returns)}"] if nodes[0].returns else []
            made += directive("property", [each], typed, markdown(ast.get_docstring(nodes[0]) or ""), inner)
        elif ast.get_docstring(nodes[0]) or not any(is_decorated(node, "setter") for node in nodes):
            made += function(each, nodes, "method", inner, where)
    return directive("class", heads, [], markdown(ast.get_docstring(node) or "") + made, fence)


def page_of(module):
    """Returns the lines of a module's page."""
    tree = tree_of(module)
    dotted = "stoker" if module == "__init__" else f"stoker.{module}"
    imported, names = names_of(tree), all_of(tree)
    if module == "augment":
        names += all_of(tree_of("_stages"))
        imported.update({name: ("_stages", name) for name in all_of(tree_of("_stages"))})
    lines = [f"# {dotted}", "", f"```{{py:module}} {dotted}", "```", "", *markdown(ast.get_docstring(tree))]
    classes, functions, values, elsewhere = [], [], [], []
    for name in sorted(names, key=str.lower):
        of, there = imported.get(name, (module, name))
        if module == "__init__" and (of in ("augment", "__init__") or of == "_stages"):
            elsewhere.append(name)
            continue
        nodes = definitions(tree_of(of), there)
        if not nodes:
            sys.exit(f"python_api: {dotted}.{name} is not defined in {of}")
        if isinstance(nodes[0], ast.ClassDef):
            if module == "__init__" or of in (module, "_image_folder", "_torchvision"):
                classes += of_class(name, nodes[0], "::::::", dotted)
            else:
                elsewhere.append(name)
        elif isinstance(nodes[0], ast.FunctionDef):
            functions += function(name, nodes, "function", "::::::", dotted)
        else:
            values += directive("data", [name], [f":value: {ast.unparse(nodes[0].value)}"] if nodes[0].value else [], [], "::::::")
    if elsewhere and module == "__init__":
        shown = [f"`{name}`" for name in elsewhere if name != "augment"]
        lines += ["## Stages", "", f"{', '.join(shown)} are those of [stoker.augment](stoker.augment.md).", ""]
    for title, part in (("Functions", functions), ("Classes", classes), ("Values", values)):
        if part:
            lines += [f"## {title}", "", *part]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    names = []
    for module in ("__init__", *MODULES):
        names.append("stoker" if module == "__init__" else f"stoker.{module}")
        (out / f"{names[-1]}.md").write_text("\n".join(page_of(module)), encoding="utf-8")
    lines = ["# Python", "", "The docstrings of the package, as `help()` shows them.", "", "```{toctree}", "", *names, "```", ""]
    (out / "index.md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
