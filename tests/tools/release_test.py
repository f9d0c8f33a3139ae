#!/usr/bin/env python3
"""tools/release: what it writes into a tree, what it refuses, and that its archives depend on their content alone.

    release_test.py     (wheels, site and a second build are made by hand, as CONTRIBUTING.md says: they take minutes)
"""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True


def load(root):
    loader = importlib.machinery.SourceFileLoader("release", str(ROOT / "tools" / "release"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("release", loader))
    loader.exec_module(module)
    module.ROOT = str(root)
    return module


class InATree(unittest.TestCase):
    """A repository with the files that a release changes."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name) / "tree"
        self.root.mkdir()
        (self.root / "tools" / "conda").mkdir(parents=True)
        for name in ("CMakeLists.txt", "CHANGELOG.md", "CITATION.cff", "tools/conda/recipe.yaml"):
            (self.root / name).write_bytes((ROOT / name).read_bytes())
        changelog = self.root / "CHANGELOG.md"
        changelog.write_text(changelog.read_text().replace("## [", "## [7.8.9] - unreleased\n\n- **new**: a thing\n\n## [", 1))
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "nobody")
        self.git("config", "user.email", "nobody@localhost")
        self.git("add", "-A")
        self.git("commit", "-qm", "begin")
        self.release = load(self.root)

    def git(self, *words):
        return subprocess.run(["git", *words], cwd=self.root, text=True, capture_output=True, check=True).stdout

    def test_the_version_is_written_committed_and_tagged(self):
        self.release.commit_release("7.8.9")
        self.assertEqual(self.git("tag", "--points-at", "HEAD").strip(), "v7.8.9")
        self.assertEqual(self.git("status", "--porcelain"), "")
        self.assertIn("project(stoker VERSION 7.8.9 ", (self.root / "CMakeLists.txt").read_text())
        self.assertIn('\n  version: "7.8.9"', (self.root / "tools/conda/recipe.yaml").read_text())
        self.assertRegex((self.root / "CITATION.cff").read_text(), r"\ndate-released: \d{4}-\d\d-\d\d\nversion: 7\.8\.9\n")
        self.assertEqual((self.root / "CITATION.cff").read_text().count("date-released"), 1)
        self.assertRegex(self.release.section("7.8.9"), r"^## \[7\.8\.9\] - \d{4}-\d\d-\d\d\n\n- \*\*new\*\*: a thing\n$")
        before = self.git("rev-parse", "HEAD")
        self.release.commit_release("7.8.9")  # the same release again: nothing changes
        self.assertEqual(self.git("rev-parse", "HEAD"), before)
        changelog = self.root / "CHANGELOG.md"  # and the next one
        changelog.write_text(changelog.read_text().replace("## [", "## [8.0.0] - unreleased\n\n- **next**: more\n\n## [", 1))
        self.git("commit", "-qam", "more")
        self.release.commit_release("8.0.0")
        self.assertEqual((self.root / "CITATION.cff").read_text().count("date-released"), 1)
        self.assertEqual(self.git("tag").split(), ["v7.8.9", "v8.0.0"])

    def refuses(self, version, why):
        with self.assertRaisesRegex(self.release.NotReleasable, why):
            self.release.commit_release(version)
        self.assertEqual(self.git("tag"), "" if version != "7.8.9" or "another" not in why else "v7.8.9\n")

    def test_a_version_without_a_changelog_is_refused(self):
        self.refuses("9.9.9", "no section")

    def test_a_tree_with_changes_is_refused(self):
        (self.root / "new").write_text("x")
        self.refuses("7.8.9", "not committed")

    def test_another_commit_with_the_tag_is_refused(self):
        self.git("tag", "v7.8.9")
        self.git("commit", "-q", "--allow-empty", "-m", "more")
        self.refuses("7.8.9", "another commit")


class OfFiles(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        self.release = load(ROOT)

    def packed(self, name, time):
        site = self.path / name
        (site / "a").mkdir(parents=True)
        (site / "a" / "page.html").write_text("hello")
        (site / "index.html").write_text("index")
        os.utime(site / "index.html", (1, 1) if name == "one" else (2, 2))
        archive = self.path / f"{name}.tar.gz"
        self.release.pack(site, archive, "site", time)
        return archive

    def test_archives_depend_on_their_content_alone(self):
        one, other, later = self.packed("one", 1000), self.packed("other", 1000), self.packed("later", 2000)
        self.assertEqual(one.read_bytes(), other.read_bytes())
        self.assertNotEqual(one.read_bytes(), later.read_bytes())
        with tarfile.open(one) as tar:
            self.assertEqual(tar.getnames(), ["site", "site/a", "site/a/page.html", "site/index.html"])

    def test_the_list_names_the_libraries_inside_and_the_sums_all_files(self):
        component = {"type": "library", "bom-ref": "r", "name": "libtiff6", "version": "4.5.0", "purl": "pkg:deb/debian/libtiff6@4.5.0"}
        own = {"type": "library", "bom-ref": "s", "name": "stoker", "version": "7.8.9", "purl": "pkg:pypi/stoker@7.8.9"}
        with zipfile.ZipFile(self.path / "stoker-7.8.9-x.whl", "w") as wheel:
            wheel.writestr("stoker-7.8.9.dist-info/sboms/auditwheel.cdx.json", json.dumps({"components": [own, component]}))
            wheel.writestr("stoker.libs/libavif-0a0b0c0d.so.16.4.2", b"")
        self.release.list_contents("7.8.9", self.path, 0)
        self.release.write_sums(self.path)
        bom = json.loads((self.path / "stoker-7.8.9.cdx.json").read_text())
        names = [each["name"] for each in bom["components"]]
        self.assertEqual(bom["metadata"]["timestamp"], "1970-01-01T00:00:00Z")
        self.assertLessEqual({"stoker-7.8.9-x.whl", "libtiff6", "libavif"}, set(names))
        self.assertNotIn("stoker", names)
        refs = {each["bom-ref"] for each in bom["components"]}
        self.assertLessEqual(set(bom["dependencies"][0]["dependsOn"]), refs)
        subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=self.path, check=True)
        self.assertEqual(len((self.path / "SHA256SUMS").read_text().splitlines()), 2)

    def test_differences_are_named(self):
        for folder, text in (("a", "1"), ("b", "2")):
            (self.path / folder).mkdir()
            (self.path / folder / "same").write_text("=")
            (self.path / folder / "other").write_text(text)
        (self.path / "b" / "more").write_text("")
        self.assertEqual(self.release.differences(self.path / "a", self.path / "b"), ["more", "other"])


if __name__ == "__main__":
    unittest.main()
