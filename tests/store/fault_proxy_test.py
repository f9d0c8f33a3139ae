#!/usr/bin/env python3
"""The fault proxy does what it says, and stores read what is right through it."""
import unittest

from fault_proxy import FAULTS, Chunks, FaultProxy
from probe import Probe, ProbeError, digest
from scripted_server import ScriptedServer, list_page
from scripted_store_test import DATA, ETAG, KEYS, object_answer

ENTRY = ("a", len(DATA), ETAG)


class FaultProxyTest(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(ScriptedServer(object_answer))

    def read(self, ranges, tries=1, **options):
        """Reads ranges through a proxy. Returns its counts, and how often one was tried."""
        tried = []
        with FaultProxy(self.server.endpoint, **options) as proxy, \
                Probe("s3://bucket/", KEYS, endpoint=proxy.endpoint) as probe:
            for i in range(ranges):
                answer = probe.ask(do="range", object=ENTRY, offset=i, length=100, tries=tries,
                                   stall_ms=300)
                self.assertEqual(answer["sha256"], digest(DATA[i:i + 100]))
                tried.append(answer["tried"])
        return proxy.counts, tried

    def test_without_faults_everything_passes_on_one_connection(self):
        counts, tried = self.read(50)
        self.assertEqual(tried, [1] * 50)
        self.assertEqual(counts["requests"], 50)
        self.assertEqual(counts["connections"], 1)
        self.assertEqual(counts["bytes"], 50 * 100)
        # Otherwise signatures would not hold.
        self.assertNotIn(str(self.server.port), self.server.requests[0].headers["host"])

    def test_each_fault_is_found_and_tried_again(self):
        for fault in FAULTS:
            counts, tried = self.read(20, tries=20, **{fault: 0.3})
            self.assertGreater(counts[fault], 0, fault)
            # A broken answer is asked for again, and nothing else. After a reset of a kept
            # connection libcurl does so by itself.
            self.assertEqual(counts["requests"] - 20, counts[fault], fault)
            if fault != "reset":
                self.assertEqual(sum(tried), counts["requests"], fault)

    def test_all_faults_together(self):
        counts, _ = self.read(60, tries=30, **dict.fromkeys(FAULTS, 0.1))
        self.assertEqual(counts["requests"] - 60, sum(counts[fault] for fault in FAULTS))

    def test_the_same_seed_breaks_the_same_requests(self):
        first = self.read(30, tries=20, seed=5, slow_down=0.3, truncate=0.2)
        again = self.read(30, tries=20, seed=5, slow_down=0.3, truncate=0.2)
        other = self.read(30, tries=20, seed=6, slow_down=0.3, truncate=0.2)
        self.assertEqual(first[1], again[1])
        self.assertNotEqual(first[1], other[1])

    def test_a_broken_answer_is_never_taken_for_a_good_one(self):
        for fault in FAULTS:
            with FaultProxy(self.server.endpoint, **{fault: 1}) as proxy, \
                    Probe("s3://bucket/", KEYS, endpoint=proxy.endpoint) as probe:
                with self.assertRaises(ProbeError) as caught:
                    probe.range(ENTRY, 0, 100, stall_ms=300)
                self.assertIn(caught.exception.kind, ("again", "throttled"), fault)

    def test_only_what_was_broken_is_counted(self):
        with FaultProxy(self.server.endpoint, wrong_range=0.5, wrong_length=0.5) as proxy, \
                Probe("s3://bucket/", KEYS, endpoint=proxy.endpoint) as probe:
            for _ in range(5):
                self.assertEqual(probe.stat("a"), ENTRY)  # HEAD has no body and no range
        self.assertEqual([proxy.counts[fault] for fault in FAULTS], [0] * len(FAULTS))
        self.assertEqual(proxy.counts["requests"], 5)

    def test_the_delay_is_before_the_first_byte(self):
        with FaultProxy(self.server.endpoint, delay_ms=200) as proxy, \
                Probe("s3://bucket/", KEYS, endpoint=proxy.endpoint) as probe:
            answer = probe.ask(do="range", object=ENTRY, offset=0, length=100)
        self.assertGreaterEqual(answer["first_byte_ms"], 200)

    def test_lists_and_large_bodies_in_chunks_pass(self):
        big = bytes(1 << 24)

        def answer(request):
            if request.path == "/bucket":
                made = list_page(["a", "b"])
                half = len(made.body) // 2
                parts = [made.body[:half], made.body[half:]]
                made.body = b"".join(b"%x;x=y\r\n%s\r\n" % (len(p), p) for p in parts)
                made.body += b"0\r\nTrailer: x\r\n\r\n"
                made.headers["Transfer-Encoding"] = "chunked"
                return made
            return object_answer(request, data=big)

        server = self.enterContext(ScriptedServer(answer))
        with FaultProxy(server.endpoint) as proxy, \
                Probe("s3://bucket/", KEYS, endpoint=proxy.endpoint) as probe:
            for _ in range(3):
                self.assertEqual(len(probe.list()), 2)
                self.assertEqual(probe.range(("a", len(big), ETAG), 0, len(big)), digest(big))
        # libcurl's for the lists, and one for the ranges.
        self.assertEqual(proxy.counts["connections"], 2)

    def test_chunks_are_found_in_every_cut(self):
        body = b"5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n"
        for step in range(1, len(body) + 1):
            chunks = Chunks()
            pieces = [body[i:i + step] for i in range(0, len(body), step)]
            self.assertEqual([chunks.take(piece) for piece in pieces],
                             [False] * (len(pieces) - 1) + [True])


if __name__ == "__main__":
    unittest.main()
