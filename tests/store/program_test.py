#!/usr/bin/env python3
"""The program `stoker` on data in SeaweedFS: what it does on a disk it does there, with the same
receipts, also where requests fail. Needs build/stoker ($STOKER_PROGRAM) and `weed` (servers.py)."""
import json
import pathlib
import shutil
import tempfile
import unittest

from fault_proxy import FAULTS, FaultProxy
from program import run
from servers import KEYS, SERVERS, find_program, put_folder

@unittest.skipIf(find_program(SERVERS["weed"].program) is None, "weed is not there")
class Program(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        local = cls.folder / "local"
        run("make-shapes", "--out", local / "shapes", "--count", 96, "--test-count", 32)
        run("pack", "--data", local / "shapes", "--split", "train", "--out", local / "tar",
            "--format", "tar")
        cls.server = SERVERS["weed"]()
        cls.addClassCleanup(cls.server.stop)
        cls.server.make_bucket("data")
        put_folder(cls.server, "data", local)

    def stored(self, *words, endpoint=None, **more):
        """Runs a subcommand whose --data is in the bucket."""
        return run(*words, AWS_ENDPOINT_URL=endpoint or self.server.endpoint,
                   AWS_ACCESS_KEY_ID=KEYS[0], AWS_SECRET_ACCESS_KEY=KEYS[1], **more)

    def train(self, name, data, run_it=run, **more):
        out = self.folder / name
        run_it("train", "--data", data, "--model", "airnet-narrow", "--epochs", 2, "--batch", 32,
               "--seed", 3, "--out", out, "--limit-train", 96, "--workers", 1, **more)
        return out

    def test_runs_have_the_receipts_of_local_files(self):
        local = self.train("local_run", self.folder / "local/shapes")
        for name in ("shapes", "tar"):
            stored = self.train(f"stored_{name}", f"s3://data/{name}", self.stored)
            self.assertIn("pixels         same", run("receipt", "diff", local, stored, codes=(0, 1)))
            for path in stored.rglob("*"):
                if path.is_file():
                    self.assertNotIn(KEYS[1].encode(), path.read_bytes(), path)

    def test_faults_change_nothing(self):
        clean = self.train("clean", self.folder / "local/tar")
        shares = {fault: 0.01 for fault in FAULTS}
        with FaultProxy(self.server.endpoint, stall_s=3, **shares) as proxy:
            broken = self.train("broken", "s3://data/shapes", self.stored,
                                endpoint=proxy.endpoint)
        self.assertIn("pixels         same", run("receipt", "diff", clean, broken, codes=(0, 1)))

    def test_check_index_pack_and_peek(self):
        self.assertIn("96 images", self.stored("check", "--data", "s3://data/tar"))
        self.assertIn("128 images", self.stored("check", "--data", "s3://data/shapes"))
        index = self.folder / "seek.bin"
        self.stored("index", "--data", "s3://data/tar", "--out", index)
        self.assertTrue(index.is_file())
        packed = self.folder / "packed"
        self.stored("pack", "--data", "s3://data/tar", "--out", packed, "--format", "tar")
        self.assertEqual(len(list(packed.glob("*.tar"))), 1)
        sheet = self.folder / "sheet.png"
        self.stored("peek", "--data", "s3://data/tar", "--out", sheet)
        self.assertTrue(sheet.is_file())

    def test_the_profile_knows_the_store(self):
        out = self.folder / "profile"
        self.stored("profile", "--data", "s3://data/shapes", "--size", 32, "--batch", 16,
                    "--demand", 1000, "--seconds", 2, "--no-trace", "--workers", 1, "--out", out)
        store = json.loads((out / "profile.json").read_text())["store"]
        self.assertGreater(store["ranges"], 0)
        self.assertIn(store["cause"],
                      ["throttled", "requests", "memory", "answers", "bandwidth"])

    def test_errors_are_one_line_without_a_secret(self):
        for words, text in ((["--data", "s3://nothing/x"], "nothing"),
                            (["--data", "s3://data/none"], "s3://data/none"),
                            (["--data", "s3://data/tar/train-{0..9}.tar"], "no such file"),
                            (["--data", str(self.folder / "local/tar"), "--store-tries", 3],
                             "--store-tries")):
            shown = self.stored("check", *words, codes=(2, 3))
            self.assertIn(text, shown)
            self.assertEqual(len(shown.strip().splitlines()), 1, shown)
            self.assertNotIn(KEYS[1], shown)


if __name__ == "__main__":
    unittest.main()
