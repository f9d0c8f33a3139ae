#!/usr/bin/env python3
"""`stoker train` with --cache on SeaweedFS: what leaves the store, what is said about it before and
after the run, and the same receipt. Needs the program (STOKER_PROGRAM, or build/stoker) and
SeaweedFS (servers.py)."""
import json
import os
import pathlib
import random
import re
import tempfile
import unittest

from probe import clean_environment
from program import PROGRAM, run
from servers import KEYS, Weed, find_program

PICTURES, CLASSES, EPOCHS = 1600, 2, 3
UNITS = {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}


def picture(number):
    """A PPM of noise, of 9 to 21 kB."""
    random_source = random.Random(number)
    width = random_source.randrange(55, 84)
    return b"P6 %d %d 255\n" % (width, width) + random_source.randbytes(3 * width * width)


def size_in(text):
    number, unit = re.match(r"([0-9.e+]+) (bytes|kB|MB|GB)", text).groups()
    return float(number) * UNITS[unit]


class CacheTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if find_program(Weed.program) is None:
            raise unittest.SkipTest(f"{Weed.program} is not there")
        if not os.access(PROGRAM, os.X_OK):
            raise unittest.SkipTest(f"{PROGRAM} is not there")
        cls.server = Weed()
        cls.addClassCleanup(cls.server.stop)
        cls.server.make_bucket("data")
        cls.bytes = 0
        for number in range(PICTURES):
            data = picture(number)
            cls.bytes += len(data)
            cls.server.put("data", f"pictures/class{number % CLASSES}/{number:04}.ppm", data)

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_program(self, *arguments, code=0):
        keys = {"AWS_ACCESS_KEY_ID": KEYS[0], "AWS_SECRET_ACCESS_KEY": KEYS[1]}
        return run(*arguments, codes=(code,), environment=clean_environment(self.folder, **keys))

    # A model that looks at no samples before it trains: airnet's first convolution does.
    def train(self, name, *more):
        return self.run_program(
            "train", "--data", "s3://data/pictures", "--store-endpoint", self.server.endpoint,
            "--store-memory", "1", "--model", "resnet20", "--size", "32", "--batch", "32",
            "--epochs", str(EPOCHS), "--workers", "2", "--out", str(self.folder / name), *more)

    def cache(self, share, name="cache"):
        return "--cache", str(self.folder / name), "--cache-size", str(round(share * self.bytes))

    def check_run(self, text, share, first_hits):
        """The lines before and after a run agree with each other and with the formula."""
        fetched_before = self.bytes * (share if first_hits else 0)
        expected = self.bytes * (1 + (EPOCHS - 1) * (1 - share)) - fetched_before
        planned = size_in(re.search(r"store: ([^,]*) will leave it", text).group(1))
        self.assertLess(abs(planned - expected), 0.01 * expected, text)
        hits, samples, gigabytes = re.search(
            r"^cache +(\d+) of (\d+) samples came from it .*, and ([0-9.e+-]+) GB of samples",
            text, re.MULTILINE).groups()
        self.assertEqual(int(samples), EPOCHS * PICTURES)
        counted = float(gigabytes) * 1e9
        self.assertLess(abs(counted - planned), 0.01 * planned, text)
        epochs_with_hits = EPOCHS if first_hits else EPOCHS - 1
        self.assertLess(abs(int(hits) / (epochs_with_hits * PICTURES) - share), 0.01, text)

    def test_bytes_hits_and_receipt(self):
        self.train("plain")
        for share in (0.25, 0.5, 0.75):
            with self.subTest(share=share):
                name = f"cached{share}"
                options = self.cache(share, f"kept{share}")
                self.check_run(self.train(name, *options), share, False)
                self.assertIn("same", self.run_program(
                    "receipt", "diff", str(self.folder / "plain"), str(self.folder / name)))
        again = self.train("again", *self.cache(0.5, "kept0.5"))
        self.check_run(again, 0.5, True)
        config = json.loads((self.folder / "again" / "config.json").read_text())
        options = config["data"]["options"]
        self.assertEqual(options["cache"], [str(self.folder / "kept0.5")])
        self.assertEqual(options["cache_size"], [str(round(0.5 * self.bytes))])

    def test_a_check_fills_the_cache_and_a_training_reads_it(self):
        self.run_program("check", "--data", "s3://data/pictures", "--store-endpoint",
                         self.server.endpoint, *self.cache(1))
        text = self.train("run", *self.cache(1))
        self.assertIn(f"{EPOCHS * PICTURES} of {EPOCHS * PICTURES} samples came from it", text)
        self.assertIn("store: 0 bytes will leave it", text)

    def test_decoded_pictures_are_not_fetched_again(self):
        recipe = ("--augment", "resize((32, 32)) | flip")
        self.train("plain", *recipe)
        cache = ("--cache", f"decoded:{self.folder / 'kept'}", "--cache-size", "1G")
        for name, found in (("first", 0), ("second", PICTURES)):
            text = self.train(name, *recipe, *cache)
            self.assertIn(f"for {PICTURES} of {PICTURES} decoded pictures, {self.folder}/kept",
                          text)
            self.assertIn(f"of which {found} are there", text)
            self.assertIn("same", self.run_program(
                "receipt", "diff", str(self.folder / "plain"), str(self.folder / name)))
        self.assertIn(f"{EPOCHS * PICTURES} of {EPOCHS * PICTURES} rows came from it", text)
        # The second run asked for nothing but what it looked at beforehand.
        asked = size_in(re.search(r"^store +([0-9.e+-]+ [kMG]?B|[0-9]+ bytes) in", text,
                                  re.MULTILINE).group(1))
        self.assertLess(asked, 0.02 * self.bytes, text)

    def test_half_a_cache_and_local_data_are_refused(self):
        def refused(*arguments):
            return self.run_program("train", "--data", *arguments, "--model", "airnet-narrow",
                                    "--out", str(self.folder / "refused"), code=2)
        stored = ("s3://data/pictures", "--store-endpoint", self.server.endpoint)
        cache = str(self.folder / "cache")
        self.assertIn("--cache: needs --cache-size", refused(*stored, "--cache", cache))
        self.assertIn("--cache-size: needs --cache", refused(*stored, "--cache-size", "5G"))
        for size in ("0", "-5", "5X", "G", "nan", "5 G", "1e30"):
            with self.subTest(size=size):
                self.assertIn("--cache-size", refused(*stored, "--cache", cache,
                                                      f"--cache-size={size}"))
        local = self.folder / "data" / "class0"
        local.mkdir(parents=True)
        (local / "a.ppm").write_bytes(picture(0))
        self.assertIn("no address in a store", refused(str(local.parent), *self.cache(1)))
        self.assertFalse((self.folder / "refused").exists())
        self.assertFalse((self.folder / "cache").exists())


if __name__ == "__main__":
    unittest.main()
