#!/usr/bin/env python3
"""What the site's generators draw is complete: each stage has a picture, each table of results a plot or a reason, each live page its verdict.

generated_test.py FOLDER: of the site's sources, tools/docs. Without the package, the stages are left out (exit code 77 where nothing else fails).
"""
import html.parser
import json
import pathlib
import re
import sys
import xml.etree.ElementTree as xml


def wrong_plots(plots):
    found = plots.pages()
    wrong = plots.differences(found)
    if wrong:
        return wrong
    drawn = list(plots.plots(found))
    assert len(drawn) > 50
    for plot in drawn:
        xml.fromstring(plot.svg)
        if plot.svg.count("<rect") + plot.svg.count("<circle") < 2:
            wrong.append(f"{plot.file}: a plot without a value")
        if not any(letter.isdigit() for letter in plot.alternative):
            wrong.append(f"{plot.file}: an alternative text without a figure")
    # A table that nobody entered must be found.
    assert plots.differences({**found, "new.md": found["feed.md"]})
    assert plots.differences({**found, "feed.md": found["feed.md"] + found["feed.md"]})
    return wrong


class Data(html.parser.HTMLParser):
    """Takes the JSON out of a live page."""

    def __init__(self):
        super().__init__()
        self.inside, self.text = False, ""

    def handle_starttag(self, tag, attrs):
        self.inside = tag == "script" and dict(attrs).get("id") == "profile"

    def handle_data(self, data):
        if self.inside:
            self.text += data


def wrong_profiles(starvation):
    wrong = []
    assert sum(kind.limit != "device" for kind in starvation.KINDS) >= 8
    for kind in starvation.KINDS:
        profile = json.loads((starvation.RECORDED / f"{kind.name}.json").read_text(encoding="utf-8"))
        if profile["verdict"]["limit"] != kind.limit:
            wrong.append(f"{kind.name}.json has the verdict {profile['verdict']['limit']}, the page says {kind.limit}")
        data = Data()
        data.feed(starvation.page_of(profile))
        if json.loads(data.text) != profile:
            wrong.append(f"{kind.name}: the page has other figures than its profile")
    extra = {path.stem for path in starvation.RECORDED.glob("*.json")} - {kind.name for kind in starvation.KINDS}
    return wrong + [f"{name}.json is no page's" for name in sorted(extra)]


def wrong_stages(gallery):
    wrong = [f"the gallery and stoker augment differ in {name}" for name in gallery.forgotten()]
    return wrong + [f"{name}: no alternative text" for name, shown in gallery.SHOWN.items() if len(shown.see) < 15]


def wrong_skills(folder):
    """Agents find a skill by its front matter: name as its folder, and a description of at most 1024 letters."""
    wrong, skills = [], sorted(folder.glob("skill/*/SKILL.md"))
    assert skills
    for skill in skills:
        front = re.match(r"---\n(.*?)\n---\n", skill.read_text(encoding="utf-8"), re.DOTALL)
        fields = dict(line.split(": ", 1) for line in front[1].splitlines()) if front else {}
        if fields.get("name") != skill.parent.name or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", skill.parent.name):
            wrong.append(f"{skill}: its name is not its folder's")
        if not 40 <= len(fields.get("description", "")) <= 1024:
            wrong.append(f"{skill}: a description of {len(fields.get('description', ''))} letters")
    return wrong


def main():
    sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "generate"))
    import plots
    import starvation

    wrong = wrong_plots(plots) + wrong_profiles(starvation) + wrong_skills(pathlib.Path(sys.argv[1]))
    try:
        import gallery
    except ImportError as missing:
        print(f"left out: the gallery ({missing})")
        gallery = None
    if gallery:
        wrong += wrong_stages(gallery)
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0 if gallery else 77)


if __name__ == "__main__":
    main()
