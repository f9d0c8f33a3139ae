#!/usr/bin/env python3
"""Stores as servers that a test scripts show them: lists, errors, other regions, wrong clocks, keys
that expire, endpoints of containers and instances, redirections. Needs Python and store_probe."""
import datetime
import email.utils
import json
import pathlib
import tempfile
import time
import unittest

import scripted_server
from probe import Probe, ProbeError, digest
from scripted_server import Answer, ScriptedServer, list_page, s3_error
from servers import make_certificate

KEYS = ("AKPUBLIC", "swordfish/secret")
TOKEN = "hunter2token"
DATA = bytes(range(256)) * 4
ETAG = '"etag-1"'


def object_answer(request, data=DATA, etag=ETAG):
    return scripted_server.object_answer(request, data, etag)


def iso(seconds_from_now):
    time_then = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(
        seconds=seconds_from_now)
    return time_then.strftime("%Y-%m-%dT%H:%M:%SZ")


class StoreTest(unittest.TestCase):
    def serve(self, answer, **how):
        return self.enterContext(ScriptedServer(answer, **how))

    def open(self, server, address="s3://bucket/", keys=KEYS, env=None, **options):
        options.setdefault("endpoint", server.endpoint)
        probe = Probe(address, keys, env, **options)
        self.addCleanup(self.assert_no_secret, probe)  # when the program has ended
        return self.enterContext(probe)

    def assert_no_secret(self, probe):
        for secret in (KEYS[1], TOKEN, "swordfish", "hunter2"):
            self.assertNotIn(secret, probe.written)

    def error(self, function, *arguments, **more):
        with self.assertRaises(ProbeError) as caught:
            function(*arguments, **more)
        return caught.exception


class Lists(StoreTest):
    def test_pages_are_put_together_with_tokens_that_need_encoding(self):
        pages = {None: (["a", "b+c d"], "x/+= &"), "x/+= &": (["b/é", "z"], None)}
        server = self.serve(lambda request: list_page(
            *pages[request.query.get("continuation-token")]))
        self.assertEqual([entry[0] for entry in self.open(server).list()],
                         ["a", "b+c d", "b/é", "z"])
        self.assertEqual(len(server.requests), 2)
        for request in server.requests:
            self.assertEqual(request.path, "/bucket")
            self.assertEqual(request.query["list-type"], "2")
            self.assertEqual(request.query["encoding-type"], "url")
            self.assertEqual(request.query["prefix"], "")

    def test_a_list_in_another_order_is_sorted(self):
        server = self.serve(lambda _: list_page(["a/b", "a-b", "é", "z"]))
        self.assertEqual([entry[0] for entry in self.open(server).list()],
                         ["a-b", "a/b", "z", "é"])

    def test_a_million_keys_take_bounded_memory_and_one_request_for_each_page(self):
        page, pages = 1000, 1000

        def answer(request):
            number = int(request.query.get("continuation-token", "0"))
            keys = [f"train/n{number:05}/{i:08}.JPEG" for i in range(page)]
            return list_page(keys, str(number + 1) if number + 1 < pages else None)

        server = self.serve(answer)
        answer = self.open(server).ask(do="count", prefix="train/")
        self.assertEqual(answer["count"], page * pages)
        self.assertEqual(len(server.requests), pages)
        self.assertLess(answer["peak_kib"], 400 << 10)

    def test_a_scan_has_the_servers_order_and_asks_for_no_page_that_nobody_wants(self):
        server = self.serve(lambda request: list_page(
            ["b", "a"], {None: "1", "1": "2"}.get(request.query.get("continuation-token"))))
        answer = self.open(server).ask(do="scan", prefix="", most=3)
        self.assertEqual([entry[0] for entry in answer["objects"]], ["b", "a", "b"])
        self.assertEqual(len(server.requests), 2)

    def test_a_list_that_repeats_itself_ends(self):
        server = self.serve(lambda _: list_page(["a"], "same"))
        self.assertIn("same page again", str(self.error(self.open(server).list)))

    def test_a_key_that_was_not_asked_for_is_refused(self):
        server = self.serve(lambda _: list_page(["other/a"]))
        self.assertIn("s3://bucket/other/a", str(self.error(self.open(server).list, "train/")))

    def test_a_folder_has_folders_and_objects_but_not_its_own_mark(self):
        def answer(request):
            self.assertEqual(request.query["delimiter"], "/")
            made = list_page(["d/", "d/x"])
            made.body = made.body.replace(
                b"</ListBucketResult>",
                b"<CommonPrefixes><Prefix>d/a+b/</Prefix></CommonPrefixes></ListBucketResult>")
            return made

        self.assertEqual(self.open(self.serve(answer)).folder("d/"), ["d/a b/", "d/x"])

    def test_servers_in_trouble_are_asked_again(self):
        answers = iter([s3_error(503, "SlowDown"), s3_error(500, "InternalError"), Answer(502),
                        list_page(["a"])])
        server = self.serve(lambda _: next(answers))
        self.assertEqual(len(self.open(server).list()), 1)
        self.assertEqual(len(server.requests), 4)

    def test_what_is_no_list_is_refused_at_once(self):
        server = self.serve(lambda _: Answer(200, b"<Other/>"))
        error = str(self.error(self.open(server).list))
        self.assertIn(server.endpoint, error)
        self.assertIn("speak S3", error)
        self.assertEqual(len(server.requests), 1)


class Errors(StoreTest):
    def test_each_has_its_name_the_address_the_endpoint_and_what_to_do(self):
        for status, code, advice in [
                (403, "AccessDenied", "s3:GetObject"), (404, "NoSuchBucket", "bucket's name"),
                (403, "InvalidAccessKeyId", "of this endpoint"),
                (403, "SignatureDoesNotMatch", "secret key"),
                (400, "ExpiredToken", "get new keys"), (403, "SomethingNew", "")]:
            # Servers repeat what was signed, with the token in it.
            server = self.serve(lambda request, s=status, c=code: s3_error(
                s, c, "why & how".replace("&", "&amp;"),
                f"<CanonicalRequest>{request.headers}</CanonicalRequest>"))
            probe = self.open(server, env={"AWS_SESSION_TOKEN": TOKEN})
            for error in (self.error(probe.list, "train/"), self.error(probe.stat, "train/a"),
                          self.error(probe.range, ("train/a", 9, ETAG), 0, 5)):
                self.assertIn(code, str(error))
                self.assertIn("why & how", str(error))
                self.assertIn("s3://bucket/train/", str(error))
                self.assertIn(server.endpoint, str(error))
                self.assertIn("the environment", str(error))
                self.assertIn(advice, str(error))
            self.assertEqual(error.kind, "refused")
            # One each, and two for stat(): HEAD has no text.
            self.assertEqual(len(server.requests), 4)

    def test_a_server_that_repeats_a_secret_does_not_get_it_into_an_error(self):
        server = self.serve(lambda request: s3_error(
            403, "AccessDenied", "your token " + request.headers["x-amz-security-token"]))
        probe = self.open(server, env={"AWS_SESSION_TOKEN": TOKEN})
        self.assertIn("your token ...", str(self.error(probe.list)))

    def test_a_web_page_is_one_clear_error(self):
        for status in (200, 403, 404):
            server = self.serve(lambda _, s=status: Answer(
                s, b"<!DOCTYPE html><html>Console</html>", {"Content-Type": "text/html"}))
            probe = self.open(server)
            for error in (self.error(probe.list), self.error(probe.stat, "a")):
                self.assertIn("web page", str(error))
                self.assertIn(server.endpoint, str(error))

    def test_an_object_may_be_a_web_page(self):
        def answer(request):
            made = object_answer(request)
            made.headers["Content-Type"] = "text/html"
            return made

        self.assertEqual(self.open(self.serve(answer)).stat("a.html"), ("a.html", 1024, ETAG))

    def test_an_object_that_is_not_there_is_no_error_but_a_missing_bucket_is(self):
        server = self.serve(lambda _: s3_error(404, "NoSuchKey"))
        self.assertIsNone(self.open(server).stat("a"))
        server = self.serve(lambda _: s3_error(404, "NoSuchBucket"))
        self.assertIn("NoSuchBucket", str(self.error(self.open(server).stat, "a")))

    def test_nobody_at_the_endpoint_is_an_error_after_few_tries(self):
        with ScriptedServer(object_answer) as server:
            pass
        error = self.error(self.open(server).list)
        self.assertIn("127.0.0.1", str(error))
        self.assertIn("3 times", str(error))

    def test_wrong_settings_are_refused(self):
        server = self.serve(object_answer)
        for options, text in [({"endpoint": "127.0.0.1:9000"}, "http://127.0.0.1:9000"),
                              ({"endpoint": "http://user:swordfish@h/"}, "is no URL"),
                              ({"region": "eu west"}, "is no region"),
                              ({"profile": "mine"}, "'mine'")]:
            self.assertIn(text, str(self.error(self.open(server, **options).list)))
        self.assertIn("no keys of AWS", str(self.error(self.open(server, keys=None).list)))


class Requests(StoreTest):
    def test_anonymous_requests_are_not_signed(self):
        server = self.serve(object_answer)
        self.open(server, keys=None, anonymous=True).stat("a")
        self.assertNotIn("authorization", server.requests[0].headers)

    def test_keys_are_encoded_once_and_host_style_puts_the_bucket_into_the_host(self):
        server = self.serve(object_answer)
        key = "a b+c=d%é&(x)'*.jpg//./../z"
        self.open(server).stat(key)
        self.assertEqual(server.requests[0].path,
                         "/bucket/a%20b%2Bc%3Dd%25%C3%A9%26%28x%29%27%2A.jpg//./../z")
        server = self.serve(object_answer)
        endpoint = server.endpoint.replace("127.0.0.1", "localhost")
        probe = self.open(server, style="host", endpoint=endpoint)
        self.assertEqual(probe.stat("a")[0], "a")
        self.assertEqual(server.requests[0].headers["host"], f"bucket.localhost:{server.port}")
        self.assertEqual(server.requests[0].path, "/a")

    def test_endpoint_and_region_come_from_the_environment_and_the_profile(self):
        server = self.serve(object_answer)
        with tempfile.TemporaryDirectory() as folder:
            config = pathlib.Path(folder, "config")
            config.write_text(f"[default]\nregion = mars-1\nendpoint_url = {server.endpoint}\n")
            env = {"AWS_CONFIG_FILE": str(config)}
            self.open(server, endpoint="", env=env).stat("a")
            self.assertIn("/mars-1/s3/", server.requests[-1].headers["authorization"])
            self.open(server, endpoint="", env={**env, "AWS_REGION": "venus-2"}).stat("a")
            self.assertIn("/venus-2/s3/", server.requests[-1].headers["authorization"])
            self.open(server, region="io-3", env={**env, "AWS_REGION": "venus-2"}).stat("a")
            self.assertIn("/io-3/s3/", server.requests[-1].headers["authorization"])
            env["AWS_ENDPOINT_URL"] = "http://127.0.0.1:9"
            env["AWS_ENDPOINT_URL_S3"] = server.endpoint + "/under/"
            self.open(server, endpoint="", env=env).stat("a")
            self.assertEqual(server.requests[-1].path, "/under/bucket/a")

    def test_ranges(self):
        server = self.serve(object_answer)
        probe = self.open(server)
        entry = probe.stat("a")
        self.assertEqual(entry, ("a", len(DATA), ETAG))
        self.assertEqual(probe.range(entry, 100, 50), digest(DATA[100:150]))
        self.assertEqual(server.requests[-1].headers["range"], "bytes=100-149")
        self.assertEqual(server.requests[-1].headers["if-match"], ETAG)

    def test_an_object_that_was_replaced_is_an_error(self):
        etags = iter([ETAG, '"etag-2"'])
        probe = self.open(self.serve(lambda request: object_answer(request, etag=next(etags))))
        error = self.error(probe.range, probe.stat("a"), 0, 5)
        self.assertEqual(error.kind, "changed")
        self.assertIn("s3://bucket/a", str(error))

    def test_an_object_that_was_replaced_on_a_server_without_if_match_is_an_error(self):
        def answer(request):
            request.headers.pop("if-match", None)
            return object_answer(request, etag='"etag-2"')

        probe = self.open(self.serve(answer))
        self.assertEqual(self.error(probe.range, ("a", 1024, ETAG), 0, 5).kind, "changed")

    def test_a_server_without_ranges_is_read_up_to_the_end_of_the_range(self):
        probe = self.open(self.serve(lambda _: Answer(200, DATA, {"ETag": ETAG})))
        self.assertEqual(probe.range(probe.stat("a"), 100, 50), digest(DATA[100:150]))


class Regions(StoreTest):
    def bucket_in(self, region, error):
        def answer(request):
            if f"/{region}/s3/" in request.headers["authorization"]:
                return list_page(["a"]) if request.path == "/bucket" else object_answer(request)
            return error
        return self.serve(answer)

    def test_is_learnt_from_the_error_and_kept(self):
        for error in (s3_error(400, "AuthorizationHeaderMalformed", more="<Region>mars-1</Region>"),
                      s3_error(400, "AuthorizationHeaderMalformed",
                               **{"x-amz-bucket-region": "mars-1"})):
            server = self.bucket_in("mars-1", error)
            probe = self.open(server)
            self.assertEqual(len(probe.list()), 1)
            self.assertEqual(len(server.requests), 2)
            self.assertEqual(probe.stat("a")[1], len(DATA))
            self.assertEqual(len(server.requests), 3)

    def test_is_learnt_by_stat_too(self):
        server = self.bucket_in("mars-1", s3_error(400, "AuthorizationHeaderMalformed",
                                                   more="<Region>mars-1</Region>"))
        self.assertEqual(self.open(server).stat("a")[1], len(DATA))

    def test_another_endpoint_is_named(self):
        server = self.bucket_in("mars-1", s3_error(301, "PermanentRedirect",
                                                   **{"x-amz-bucket-region": "mars-1"}))
        error = str(self.error(self.open(server).list))
        self.assertIn("the server says mars-1", error)
        self.assertIn("endpoint", error)
        self.assertEqual(len(server.requests), 1)


class Amazon(StoreTest):
    """Without an endpoint requests go to Amazon's hosts; a proxy plays them."""

    def open_at_amazon(self, answer, address, **options):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        hosts = [f"DNS:*.s3.{region}.amazonaws.com,DNS:s3.{region}.amazonaws.com"
                 for region in ("us-east-1", "mars-1")]
        certificate = make_certificate(folder, "amazon", ",".join(hosts))
        server = self.serve(answer, tunnel=certificate)
        env = {"https_proxy": server.endpoint, "no_proxy": "", "NO_PROXY": ""}
        probe = self.open(server, address, endpoint="", ca_file=certificate[0], env=env, **options)
        return probe, server

    def test_the_bucket_is_in_the_hosts_name_unless_it_has_a_dot(self):
        for bucket, host, path in (("bucket", "bucket.s3.us-east-1.amazonaws.com", "/a"),
                                   ("with.dot", "s3.us-east-1.amazonaws.com", "/with.dot/a")):
            probe, server = self.open_at_amazon(object_answer, f"s3://{bucket}/")
            self.assertEqual(probe.stat("a")[1], len(DATA))
            self.assertEqual((server.requests[0].headers["host"], server.requests[0].path),
                             (host, path))

    def test_a_bucket_elsewhere_is_found_by_its_region(self):
        def answer(request):
            if request.headers["host"] == "bucket.s3.mars-1.amazonaws.com":
                self.assertIn("/mars-1/s3/", request.headers["authorization"])
                return list_page(["a"]) if request.path == "/" else object_answer(request)
            return s3_error(301, "PermanentRedirect", **{"x-amz-bucket-region": "mars-1"})

        probe, server = self.open_at_amazon(answer, "s3://bucket/")
        self.assertEqual(len(probe.list()), 1)
        self.assertEqual(probe.stat("a")[1], len(DATA))
        self.assertEqual(len(server.requests), 3)


class Clocks(StoreTest):
    def test_that_of_the_server_is_learnt(self):
        ahead = 3 * 3600

        def answer(request):
            there = time.time() + ahead
            date = {"Date": email.utils.formatdate(there, usegmt=True)}
            signed = datetime.datetime.strptime(request.headers["x-amz-date"], "%Y%m%dT%H%M%SZ")
            signed = signed.replace(tzinfo=datetime.timezone.utc).timestamp()
            if abs(signed - there) > 900:
                return s3_error(403, "RequestTimeTooSkewed", **date)
            made = object_answer(request)
            made.headers.update(date)
            return made

        for ahead in (3 * 3600, -3 * 3600):
            server = self.serve(answer)
            probe = self.open(server)
            self.assertEqual(self.error(probe.range, ("a", 1024, ETAG), 0, 5).kind, "again")
            self.assertEqual(probe.range(("a", 1024, ETAG), 0, 5), digest(DATA[:5]))
            self.assertEqual(self.open(server).stat("a")[1], len(DATA))

    def test_a_clock_that_is_right_is_not_blamed_again_and_again(self):
        server = self.serve(lambda _: s3_error(403, "RequestTimeTooSkewed"))
        self.assertIn("this machine's clock", str(self.error(self.open(server).list)))
        self.assertEqual(len(server.requests), 1)


class Keys(StoreTest):
    """Keys that expire. `self.valid` is the id that the server takes."""

    def serve_objects(self):
        def answer(request):
            if f"Credential={self.valid}/" not in request.headers["authorization"]:
                return s3_error(400, "ExpiredToken", "The provided token has expired.")
            return object_answer(request)
        return self.serve(answer)

    def serve_container(self, lifetime):
        """Gives the keys ID0, ID1, ... one after the other."""
        self.given = 0
        self.is_broken = False

        def answer(request):
            if self.is_broken:
                return Answer(500)
            self.assertEqual(request.headers.get("authorization"), "Bearer " + TOKEN)
            self.given += 1
            return Answer(200, json.dumps({
                "AccessKeyId": f"ID{self.given - 1}", "SecretAccessKey": KEYS[1], "Token": TOKEN,
                "Expiration": iso(lifetime)}).encode())
        return self.serve(answer)

    def container_env(self, server):
        return {"AWS_CONTAINER_CREDENTIALS_FULL_URI": server.endpoint + "/role",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN": "Bearer " + TOKEN}

    def open_in_container(self, valid, lifetime, **env):
        """Returns a probe that gets keys of a container, and the server of the objects."""
        self.valid = valid
        objects, container = self.serve_objects(), self.serve_container(lifetime)
        return self.open(objects, keys=None, env={**self.container_env(container), **env}), objects

    def test_of_a_container(self):
        probe, objects = self.open_in_container("ID0", 3600)
        for _ in range(3):
            self.assertEqual(probe.stat("a")[1], len(DATA))
        self.assertEqual(self.given, 1)
        self.assertEqual(objects.requests[0].headers["x-amz-security-token"], TOKEN)

    def test_the_containers_token_may_be_in_a_file(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("Bearer " + TOKEN + "\n")
            file.flush()
            probe, _ = self.open_in_container("ID0", 3600, AWS_CONTAINER_AUTHORIZATION_TOKEN=None,
                                              AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=file.name)
            self.assertTrue(probe.stat("a"))

    def test_that_end_in_less_than_ten_minutes_are_renewed_while_the_old_ones_are_used(self):
        probe, objects = self.open_in_container("ID0", 300)
        for _ in range(3):
            probe.stat("a")
        self.assertEqual(self.given, 1)  # not more often than every half a minute

    def test_that_have_expired_are_renewed_before_the_next_request(self):
        probe, objects = self.open_in_container("ID1", 2)
        while self.given == 0:
            time.sleep(0.01)
        time.sleep(2.5)
        self.assertEqual(probe.stat("a")[1], len(DATA))
        self.assertEqual(len(objects.requests), 1)

    def test_that_the_server_calls_expired_are_renewed(self):
        probe, objects = self.open_in_container("ID1", 36000)
        self.assertEqual(probe.range(("a", 1024, ETAG), 0, 5, tries=100), digest(DATA[:5]))

    def test_that_expired_and_cannot_be_renewed_are_the_error(self):
        probe, objects = self.open_in_container("none", 2)
        while self.given == 0:
            time.sleep(0.01)
        self.is_broken = True
        time.sleep(2.5)
        error = str(self.error(probe.stat, "a"))
        self.assertIn("expired at", error)
        self.assertIn("could not be renewed", error)
        self.assertIn("container", error)

    def test_that_somebody_renews_in_the_file_are_read_again(self):
        self.valid = "NEW"
        objects = self.serve_objects()
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "credentials")
            text = f"[default]\naws_access_key_id=%s\naws_secret_access_key={KEYS[1]}\n"
            file.write_text(text % "OLD")
            probe = self.open(objects, keys=None, env={"AWS_SHARED_CREDENTIALS_FILE": str(file)})
            self.assertIn("ExpiredToken", str(self.error(probe.stat, "a")))
            file.write_text(text % "NEW")
            self.assertEqual(probe.range(("a", 1024, ETAG), 0, 5, tries=5), digest(DATA[:5]))

    def test_of_the_environment_that_have_expired_say_so(self):
        self.valid = "none"
        objects = self.serve_objects()
        probe = self.open(objects, env={"AWS_SESSION_TOKEN": TOKEN,
                                        "AWS_CREDENTIAL_EXPIRATION": iso(-100)})
        error = str(self.error(probe.stat, "a"))
        self.assertIn("the environment expired at", error)
        self.assertEqual(objects.requests, [])

    def instance(self, request):
        """The instance metadata service, version 2."""
        path = "/latest/meta-data/iam/security-credentials/"
        if request.path == "/latest/api/token":
            self.assertEqual(request.method, "PUT")
            self.assertIn("x-aws-ec2-metadata-token-ttl-seconds", request.headers)
            return Answer(200, TOKEN.encode())
        if request.headers.get("x-aws-ec2-metadata-token") != TOKEN:
            return Answer(401)
        if request.path == path:
            return Answer(200, b"my role")
        self.assertEqual(request.path, path + "my%20role")
        return Answer(200, json.dumps({
            "Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": "ID0",
            "SecretAccessKey": KEYS[1], "Token": TOKEN, "Expiration": iso(3600)}).encode())

    def instance_env(self, server):
        return {"AWS_EC2_METADATA_DISABLED": None,
                "AWS_EC2_METADATA_SERVICE_ENDPOINT": server.endpoint}

    def test_of_an_instances_role(self):
        self.valid = "ID0"
        objects, instance = self.serve_objects(), self.serve(self.instance)
        probe = self.open(objects, keys=None, env=self.instance_env(instance))
        self.assertEqual(probe.stat("a")[1], len(DATA))
        self.assertEqual(len(instance.requests), 3)

    def test_an_instance_without_a_role_is_an_error_that_says_where_was_looked(self):
        def answer(request):
            return self.instance(request) if request.method == "PUT" else Answer(404)
        objects, instance = self.serve(object_answer), self.serve(answer)
        error = str(self.error(self.open(objects, keys=None,
                                         env=self.instance_env(instance)).list))
        for text in ("no role", "the environment", "'default'"):
            self.assertIn(text, error)

    def test_broken_answers_of_the_endpoints_are_errors(self):
        objects = self.serve(object_answer)
        for body in (b"", b"[]", b'{"AccessKeyId": 7}', b'{"Code": "Failed"}',
                     b'{"AccessKeyId":"A","SecretAccessKey":"swordfish","Expiration":"soon"}'):
            server = self.serve(lambda _, b=body: Answer(200, b))
            error = str(self.error(self.open(objects, keys=None,
                                             env=self.container_env(server)).list))
            self.assertIn("no keys of AWS", error)


class Http(StoreTest):
    def open_http(self, server, query="", **options):
        address = server.endpoint + "/data/" + query
        return self.open(server, address, keys=None, endpoint="", **options)

    def test_stat_and_ranges_with_the_query_of_a_signed_url(self):
        def answer(request):
            return object_answer(request) if request.query == {"sig": "swordfish"} else Answer(403)

        server = self.serve(answer)
        probe = self.open_http(server, "?sig=swordfish")
        entry = probe.stat("/data/a%20b")
        self.assertEqual(entry, ("/data/a%20b", len(DATA), ETAG))
        self.assertEqual(server.requests[-1].path, "/data/a%20b")
        self.assertEqual(probe.range(entry, 100, 50), digest(DATA[100:150]))
        self.assertNotIn("authorization", server.requests[-1].headers)

    def test_errors_do_not_have_the_query(self):
        for status in (401, 403, 400):
            server = self.serve(lambda request, s=status: Answer(
                s, request.query["sig"].encode()))
            probe = self.open_http(server, "?sig=swordfish", tries=2)
            self.assertIn(str(status), str(self.error(probe.stat, "/a")))
            self.assertEqual(self.error(probe.range, ("/a", 9, ETAG), 0, 5).kind, "refused")
        server.__exit__()
        self.assertIn("127.0.0.1", str(self.error(probe.stat, "/a")))

    def test_a_file_that_is_not_there(self):
        self.assertIsNone(self.open_http(self.serve(lambda _: Answer(404))).stat("/a"))

    def test_lists_are_refused_with_what_to_do(self):
        error = self.error(self.open_http(self.serve(object_answer)).list, "/data/")
        self.assertIn("train-{000..127}.tar", str(error))

    def test_a_server_that_refuses_head_is_asked_for_a_byte(self):
        server = self.serve(lambda request: Answer(403) if request.method == "HEAD"
                            else object_answer(request))
        self.assertEqual(self.open_http(server).stat("/a"), ("/a", len(DATA), ETAG))

    def test_a_server_without_etags_is_asked_by_time(self):
        then = "Sun, 06 Nov 1994 08:49:37 GMT"

        def answer(request):
            if request.headers.get("if-unmodified-since", then) != then:
                return Answer(412)
            made = object_answer(request)
            del made.headers["ETag"]
            made.headers["Last-Modified"] = then
            return made

        probe = self.open_http(self.serve(answer))
        entry = probe.stat("/a")
        self.assertEqual(entry[2], "modified:" + then)
        self.assertEqual(probe.range(entry, 0, 5), digest(DATA[:5]))
        other = (entry[0], entry[1], "modified:Mon, 07 Nov 1994 08:49:37 GMT")
        self.assertEqual(self.error(probe.range, other, 0, 5).kind, "changed")

    def test_redirections_are_followed_and_kept(self):
        def answer(request):
            if request.path == "/data/a":
                return Answer(302, headers={"Location": "/far/a?sig=swordfish"})
            return object_answer(request) if request.query else Answer(403)

        server = self.serve(answer)
        probe = self.open_http(server)
        entry = probe.stat("/data/a")
        self.assertEqual(entry[0], "/data/a")
        for _ in range(3):
            self.assertEqual(probe.range(entry, 100, 50), digest(DATA[100:150]))
        self.assertEqual(len(server.asked("/data/a")), 1)

    def test_a_place_whose_signature_has_expired_is_asked_for_again(self):
        count = 0

        def answer(request):
            nonlocal count
            if request.path == "/a":
                count += 1
                return Answer(302, headers={"Location": f"/far?sig={count}"})
            return object_answer(request) if request.query["sig"] == str(count) else Answer(403)

        probe = self.open_http(self.serve(answer))
        entry = probe.stat("/a")
        count += 1  # what was given is worth nothing any more
        self.assertEqual(probe.range(entry, 0, 5, tries=3), digest(DATA[:5]))

    def test_redirections_in_a_circle_and_to_elsewhere_are_refused(self):
        for location, text in [("/a", "more than 5 times"), ("file:///etc/passwd", "no address"),
                               ("", "no address")]:
            server = self.serve(lambda _, to=location: Answer(302, headers={"Location": to}))
            error = str(self.error(self.open_http(server).stat, "/a"))
            self.assertIn(text, error)


class Certificates(StoreTest):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.right = make_certificate(cls.folder.name, "right", "IP:127.0.0.1,DNS:localhost")
        cls.other = make_certificate(cls.folder.name, "other", "DNS:example.org")

    def test_one_that_is_trusted(self):
        server = self.serve(object_answer, certificate=self.right)
        self.assertTrue(self.open(server, ca_file=self.right[0]).stat("a"))
        self.assertTrue(self.open(server, env={"AWS_CA_BUNDLE": self.right[0]}).stat("a"))

    def test_one_that_is_not_is_an_error_without_another_try(self):
        for certificate, ca_file in ((self.right, ""), (self.other, self.other[0]),
                                     (self.right, "/nowhere.pem")):
            server = self.serve(object_answer, certificate=certificate)
            started = time.monotonic()
            for address in ("s3://bucket/", server.endpoint + "/"):
                probe = self.open(server, address, ca_file=ca_file)
                error = str(self.error(probe.stat, "/a"))
                self.assertRegex(error, "(?i)certificate")
                self.assertNotIn("times", error)
            self.assertEqual(server.requests, [])

    def test_a_redirection_from_https_to_http_is_refused(self):
        server = self.serve(lambda _: Answer(302, headers={"Location": "http://127.0.0.1/a"}),
                            certificate=self.right)
        probe = self.open(server, server.endpoint + "/", ca_file=self.right[0])
        self.assertIn("from https to http", str(self.error(probe.stat, "/a")))


if __name__ == "__main__":
    unittest.main()
