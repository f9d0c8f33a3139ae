#!/usr/bin/env python3
"""Every link of a built site leads to a page or file of it, and to an anchor that is there; every picture exists and says what it shows.

    tests/docs/links_test.py SITE     (the folder that tools/docs/build made)

Links to other hosts are not tried. Exit codes: 0 all resolve, 1 some do not, 2 usage.
"""
import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """What a page names: anchors, links, pictures."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.wrong = set(), [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        for name in ("id", "name"):
            if attributes.get(name) and (name == "id" or tag == "a"):
                self.anchors.add(attributes[name])
        for name in ("href", "src"):
            if attributes.get(name) and tag != "base":
                self.links.append(attributes[name])
        if tag == "img" and not attributes.get("alt", "").strip() and "logo" not in attributes.get("class", ""):
            self.wrong.append(f"the picture {attributes.get('src')} has no alternative text")


def wrong_links(site):
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    wrong, tried = [], 0
    for path, page in pages.items():
        shown = path.relative_to(site)
        wrong += [f"{shown}: {what}" for what in page.wrong]
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme in ("http", "https", "mailto", "data", "javascript") or parts.netloc:
                continue
            tried += 1
            if parts.scheme:
                wrong.append(f"{shown}: {link} has an unknown scheme")
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path.resolve()
            if target.is_dir():
                target = target / "index.html"
            if site not in target.parents or not target.is_file():
                wrong.append(f"{shown}: {link} does not exist")
            elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].anchors | {"top"}:
                # A live page draws its parts by itself.
                wrong.append(f"{shown}: {link} has no such anchor")
    return pages, tried, wrong


def main():
    if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1], "index.html").is_file():
        print("links_test: usage: links_test.py SITE, a folder that tools/docs/build made", file=sys.stderr)
        return 2
    pages, tried, wrong = wrong_links(pathlib.Path(sys.argv[1]).resolve())
    print("\n".join(wrong + [f"{tried} links of {len(pages)} pages, {len(wrong)} wrong"]))
    return 1 if wrong or len(pages) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
