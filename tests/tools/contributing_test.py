#!/usr/bin/env python3
"""CONTRIBUTING's "How to add ...": how many files each addition takes, and that these are all the files of the product that
name one that was added."""
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRODUCT = ["decode", "staging", "pipeline", "train", "tools", "python"]

# The heading in CONTRIBUTING, how many files at most, the product's names of an example, and the example.
AUGMENTATION = ("A built-in augmentation", 3, r"\bkTrimBorder\b|trim_border\.cc|def trim_border", {"NAME": "trim_border"})
SOURCE = ("A source.", 4, r"\bis_cifar_folder\b|cifar_source\.cc", {"NAME": "cifar"})  # Python has a function of its own for it, too
FORMAT = ("A format of shards", 4, r"\bscan_parquet\b|BlobFormat::parquet|enum class BlobFormat", {"NAME": "parquet"})
MODEL = ("A model", 2, r"alexnet_models|alexnet\.cc", {"NAME": "alexnet"})
RECIPE_FLAG = ("A flag of a recipe", 4, r"\bdouble trust\b|\(trust\b|&S::trust\b|&Optimizer::trust\b|--trust\b", {})


def listed_files(addition):
    """Returns the files of the first column of the table that follows **addition**."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    table = text[text.index(f"**{addition}**"):].split("\n| file |")[1].split("\n\n")[0]
    files = []
    for row in table.splitlines()[2:]:
        for name in re.findall(r"`([^`]+)`", row.split("|")[1]):
            if name.startswith("."):
                name = files[-1].rsplit(".", 1)[0] + name
            elif "/" not in name:
                name = files[-1].rsplit("/", 1)[0] + "/" + name
            files.append(name)
    return files


class Additions(unittest.TestCase):
    def check(self, addition, most, pattern, example, counts_tests=False, product=PRODUCT):
        files = listed_files(addition)
        counted = [name for name in files if counts_tests or not name.startswith("tests/")]
        self.assertLessEqual(len(counted), most, counted)
        for word, name in example.items():
            files = [each.replace(word, name) for each in files]
        for name in files:
            self.assertTrue((ROOT / name).is_file(), name)
        naming = subprocess.run(["grep", "-rlE", pattern, "--include=*.cc", "--include=*.h", "--include=*.py", "--include=CMakeLists.txt",
                                 *product], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual(set(naming), {name for name in files if not name.startswith("tests/")})

    def test_an_augmentation(self):
        self.check(*AUGMENTATION, counts_tests=True)

    def test_a_source(self):
        self.check(*SOURCE, product=PRODUCT[:-1])

    def test_a_format(self):
        self.check(*FORMAT)

    def test_a_model(self):
        self.check(*MODEL)

    def test_a_recipe_flag(self):
        self.check(*RECIPE_FLAG)


if __name__ == "__main__":
    unittest.main()
