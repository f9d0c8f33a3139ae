#!/usr/bin/env python3
"""Lists, stats and ranges on servers that exist: SeaweedFS and rclone, which check signatures, moto
and nginx with HTTPS. Needs store_probe, and the servers (servers.py); those that are not there are
left out. SeaweedFS also says what curl's own signatures are worth."""
import contextlib
import hashlib
import os
import shutil
import subprocess
import unittest
import urllib.parse

import plain_s3
from fault_proxy import FAULTS, FaultProxy
from probe import Probe, ProbeError, digest
from servers import KEYS, SERVERS, find_program

LONG_KEY = "/".join(["long"] + ["k" * 199] * 5)  # 1,004 bytes, and a path of a file system
STRANGE_KEYS = ["a b+c=d%é&(x)'*.jpg", "plain", "dir/x", "dir/y", "dir-1", "a-b", "a/b", "z~_.!$",
                "q?r#s;t,u@v:w", "%41", "+", "a/-/b", LONG_KEY]


def data_of(key):
    return hashlib.sha256(key.encode()).digest() * 40


class OnServer:
    """The tests of every S3 server. `name` is one of servers.py."""

    @classmethod
    def setUpClass(cls):
        if find_program(SERVERS[cls.name].program) is None:
            raise unittest.SkipTest(f"{SERVERS[cls.name].program} is not there")
        cls.server = SERVERS[cls.name]()
        cls.addClassCleanup(cls.server.stop)
        cls.server.make_bucket("data")
        for key in cls.keys():
            cls.server.put("data", key, data_of(key))

    @classmethod
    def keys(cls):
        return STRANGE_KEYS

    def open(self, address="s3://data/", keys=KEYS, **options):
        return self.enterContext(Probe(address, keys, endpoint=self.server.endpoint, **options))

    def error(self, function, *arguments):
        with self.assertRaises(ProbeError) as caught:
            function(*arguments)
        self.assertNotIn(KEYS[1], str(caught.exception))
        return str(caught.exception)

    def test_every_key_is_listed_and_read(self):
        probe = self.open()
        listed = probe.list()
        self.assertEqual([entry[0] for entry in listed],
                         sorted(self.keys(), key=lambda key: key.encode()))
        for entry in listed:
            data = data_of(entry[0])
            self.assertEqual(entry, probe.stat(entry[0]))
            self.assertEqual(entry[1], len(data))
            for offset, length in ((0, 1), (10, 50), (len(data) - 1, 1), (0, len(data))):
                self.assertEqual(probe.range(entry, offset, length),
                                 digest(data[offset:offset + length]))

    def test_prefixes_are_of_bytes_and_not_of_folders(self):
        probe = self.open()
        for prefix in ("a", "dir", "dir/", "dir/x", "a b+", "nothing"):
            self.assertEqual([entry[0] for entry in probe.list(prefix)],
                             sorted(key for key in self.keys() if key.startswith(prefix)), prefix)

    def test_folders(self):
        probe = self.open()
        self.assertEqual(probe.folder("dir/"), ["dir/x", "dir/y"])
        top = {key.split("/")[0] + "/" if "/" in key else key for key in self.keys()}
        self.assertEqual(probe.folder(), sorted(top, key=lambda key: key.encode()))

    def test_what_is_not_there(self):
        self.assertIsNone(self.open().stat("nothing"))
        self.assertIn("NoSuchBucket", self.error(self.open("s3://nothing/").list))
        self.assertIn("NoSuchKey", self.error(self.open().range, ("nothing", 9, '"e"'), 0, 5))

    def test_an_object_that_was_replaced_is_an_error(self):
        probe = self.open()
        self.server.put("data", "changes", b"before")
        self.addCleanup(self.server.client().delete, "data", "changes")
        entry = probe.stat("changes")
        self.server.put("data", "changes", b"behind")
        self.assertIn("was changed", self.error(probe.range, entry, 0, 5))


class ChecksSignatures:
    def test_signatures_hold_through_the_fault_proxy_and_the_bytes_are_right(self):
        with FaultProxy(self.server.endpoint, delay_ms=5, seed=3, stall_s=60, slow_down=0.05,
                        reset=0.05, truncate=0.05, wrong_length=0.05, wrong_range=0.05) as proxy:
            probe = self.enterContext(Probe("s3://data/", KEYS, endpoint=proxy.endpoint))
            entries = probe.list()
            got = probe.ask(do="read", objects=entries, length=64, count=20 * len(entries))
        wanted = hashlib.sha256()
        for i in range(20 * len(entries)):
            data = data_of(entries[i % len(entries)][0])
            at = i // len(entries) % (len(data) // 64) * 64
            wanted.update(hashlib.sha256(data[at:at + 64]).digest())
        self.assertEqual(got["sha256"], wanted.hexdigest())
        self.assertEqual(got["ranges"], 20 * len(entries))
        self.assertGreater(sum(proxy.counts[fault] for fault in FAULTS), 0)

    def test_wrong_keys_are_refused(self):
        wrong = (KEYS[0], KEYS[1] + "x")
        self.assertIn("SignatureDoesNotMatch", self.error(self.open(keys=wrong).list))
        nobody = ("NOBODY", KEYS[1])
        self.assertIn("InvalidAccessKeyId", self.error(self.open(keys=nobody).stat, "plain"))


class HasPages:
    def test_a_list_of_several_pages(self):
        self.server.make_bucket("pages")
        keys = [f"page/{i:04}" for i in range(2100)]
        for key in keys:
            self.server.put("pages", key, b"x")
        self.assertEqual([entry[0] for entry in self.open("s3://pages/").list()], keys)


class WeedTest(OnServer, ChecksSignatures, HasPages, unittest.TestCase):
    name = "weed"

    # README.md says what two versions of curl's own --aws-sigv4 are refused.
    def test_no_spelling_of_a_key_or_a_list_matters_to_us_as_it_does_to_curl(self):
        probe = self.open()
        for key in ("a=b", "a+b", "(x)", "a b"):
            self.server.put("data", key, data_of(key))
            self.addCleanup(self.server.client().delete, "data", key)
            self.assertEqual(probe.range(probe.stat(key), 3, 20), digest(data_of(key)[3:23]))
        for prefix in ("", "dir/", "a b"):
            probe.list(prefix)
        if shutil.which("curl") is None:
            self.skipTest("curl is not there")
        refused = [path for path in (
            "a%3Db", "a=b", "a%2Bb", "a+b", "%28x%29", "(x)", "a%20b",
            "?list-type=2&prefix=", "?prefix=&list-type=2", "?list-type=2&prefix=dir%2F",
            "?list-type=2&prefix=dir/") if self.curl("/data/" + path) != "200"]
        version = subprocess.run(["curl", "--version"], capture_output=True, text=True, check=True)
        print(f"\n{version.stdout.split(' (')[0]} --aws-sigv4 is refused for: {' '.join(refused)}")

    def curl(self, path):
        """Returns the status of the answer to a request that curl signs."""
        done = subprocess.run(
            ["curl", "-s", "-o", os.devnull, "-w", "%{http_code}", "--path-as-is", "--aws-sigv4",
             "aws:amz:us-east-1:s3", "--user", ":".join(KEYS), self.server.endpoint + path],
            capture_output=True, text=True, check=True)
        return done.stdout


class RcloneTest(OnServer, ChecksSignatures, HasPages, unittest.TestCase):
    name = "rclone"


class MotoTest(OnServer, HasPages, unittest.TestCase):
    name = "moto"

    @classmethod
    def keys(cls):
        # A file system has none of these.
        return [*STRANGE_KEYS, "dir//two", "//", "k" * 1024, "a/"]

    def test_folders(self):
        self.assertEqual(self.open().folder("dir/"), ["dir//", "dir/x", "dir/y"])

    def test_a_bucket_of_another_region(self):
        client = plain_s3.Client(self.server.endpoint, KEYS, region="eu-west-3")
        client.make_bucket("far", "eu-west-3")
        client.put("far", "a", b"far away")
        probe = self.open("s3://far/")
        self.assertEqual([entry[:2] for entry in probe.list()], [("a", 8)])


class NginxTest(unittest.TestCase):
    name = "nginx"

    @classmethod
    def setUpClass(cls):
        if find_program("nginx") is None or find_program("openssl") is None:
            raise unittest.SkipTest("nginx or openssl is not there")
        cls.server = SERVERS["nginx"]()
        cls.addClassCleanup(cls.server.stop)
        cls.server.make_bucket("data")
        for key in STRANGE_KEYS:
            cls.server.put("data", key, data_of(key))

    def test_every_file_is_read_over_https(self):
        probe = self.enterContext(Probe(self.server.endpoint + "/data/",
                                        ca_file=self.server.ca_file))
        for key in STRANGE_KEYS:
            data = data_of(key)
            entry = probe.stat("/data/" + urllib.parse.quote(key))
            self.assertEqual(entry[1], len(data))
            self.assertEqual(probe.range(entry, 10, 50), digest(data[10:60]))
        self.assertIsNone(probe.stat("/data/nothing"))

    def test_a_file_that_was_replaced_is_an_error(self):
        probe = self.enterContext(Probe(self.server.endpoint + "/", ca_file=self.server.ca_file))
        self.server.put("data", "changes", b"before")
        entry = probe.stat("/data/changes")
        self.server.put("data", "changes", b"behind it")
        with self.assertRaisesRegex(ProbeError, "was changed"):
            probe.range(entry, 0, 5)

    def test_a_certificate_that_nobody_trusts_is_an_error(self):
        probe = self.enterContext(Probe(self.server.endpoint + "/"))
        with self.assertRaisesRegex(ProbeError, "(?i)certificate"):
            probe.stat("/data/plain")


class Servers(unittest.TestCase):
    def test_leave_nothing_behind(self):
        for name, kind in SERVERS.items():
            if find_program(kind.program) is None:
                continue
            with contextlib.suppress(KeyboardInterrupt), kind() as server:
                folder, process = server.folder, server._process.pid
                raise KeyboardInterrupt
            self.assertFalse(folder.exists(), name)
            self.assertFalse(os.path.exists(f"/proc/{process}"), name)


if __name__ == "__main__":
    unittest.main()
