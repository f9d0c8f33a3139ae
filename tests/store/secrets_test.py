#!/usr/bin/env python3
"""No secret of a store is written, printed, cached or sent to anybody else.

Every subcommand that takes an address, and every function of the Python package that takes `store`, runs with a marked secret in each
place where one can stand, well and in ways that fail; then every byte that is left is searched for it, as it is, percent-encoded and in
base64. Which subcommands and functions there are is asked of the program and of the package: a new one must be named here.

Needs build/stoker ($STOKER_PROGRAM) with the plugin for stores; the package too, if it can be imported."""
import base64
import concurrent.futures
import io
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import urllib.parse

from probe import clean_environment
from program import PROGRAM, run
from scripted_server import Answer, ScriptedServer, list_page, object_answer, s3_error

LIMIT_S = 100
AT_ONCE = 6

# By the place where it stands. Such bytes are in the keys of AWS and in signatures.
SECRETS = {
    "query": "sword/fishQ+1uery==",
    "user part": "sword.fishU2serPart",
    "AWS_SECRET_ACCESS_KEY": "sword/fishK+3eyOfEnvironment",
    "AWS_SESSION_TOKEN": "sword/fishT+4okenOfEnvironment==",
    "profile": "sword/fishP+5rofile",
    "token of a profile": "sword/fishO+6kenOfProfile==",
    "token of a container": "Bearer sword/fishB+7earer",
    "keys of a container": "sword/fishC+8ontainer",
    "user part of an endpoint": "sword.fishE9ndpoint",
    "password of a proxy": "sword.fishX0proxy",
    "redirection": "sword/fishR+1edirection",
}
SIGNED = "?" + urllib.parse.urlencode({"X-Amz-Credential": "AK/2026/s3", "X-Amz-Signature": SECRETS["query"]})


def forms(secret):
    """The texts that a secret is told from."""
    secret = secret.removeprefix("Bearer ")
    found = {secret, urllib.parse.quote(secret, safe=""), urllib.parse.quote(secret), secret.replace("/", "\\/")}
    found.add(re.sub("%..", lambda code: code[0].lower(), urllib.parse.quote(secret, safe="")))
    # In base64 it looks another way behind 0, 1 and 2 bytes; the ends depend on what stands beside it.
    for before in range(3):
        text = base64.b64encode(b"x" * before + secret.encode()).decode()[4 if before else 0:-4]
        found |= {text, text.replace("+", "-").replace("/", "_")}
    # Forms in which a part of it could be left.
    found |= {part for part in re.split("[/+=.]", secret) if len(part) > 8}
    return {form.encode() for form in found}


FORMS = {place: forms(secret) for place, secret in SECRETS.items()}


def secrets_in(data):
    return sorted(place for place, texts in FORMS.items() if any(text in data for text in texts))


# ---- What is run: the words behind a subcommand. ADDRESS and OUT are replaced.

SMALL = ["--batch", "8", "--workers", "1"]
TRAIN = ["--model", "airnet-narrow", *SMALL, "--micro-batch", "8", "--max-steps", "2", "--out", "OUT"]
COMMANDS = {
    "train": ["--data", "ADDRESS", *TRAIN],
    "eval": ["--checkpoint", "CHECKPOINT", "--data", "ADDRESS", *SMALL],
    "peek": ["--data", "ADDRESS", "--out", "OUT/sheet.png"],
    "dump": ["--data", "ADDRESS", *SMALL, "--size", "16", "--steps", "2", "--out", "OUT"],
    "profile": ["--data", "ADDRESS", *SMALL, "--size", "16", "--demand", "1000", "--seconds", "0.5", "--out", "OUT"],
    "check": ["--data", "ADDRESS"],
    "index": ["--data", "ADDRESS"],
    "pack": ["--data", "ADDRESS", "--format", "tar", "--out", "OUT/packed"],
    "plan": ["--data", "ADDRESS", "--gpus", "1", "--rate", "100", "--size", "16", "--seconds", "0.5", "--out", "OUT"],
    "bench feed": ["--data", "ADDRESS", *SMALL, "--size", "16", "--cpu-ms", "1", "--repeats", "1", "--out", "OUT"],
    "bench emulate": ["--data", "ADDRESS", "--size", "16", "--rate", "200", "--batch", "8", "--n", "1", "--steps", "2", "--repeats", "1",
                      "--out", "OUT"],
    "bench scaling": ["--data", "ADDRESS", "--n", "1", "--batch", "8", "--steps", "1", "--repeats", "1", "--feed", "real", "--out", "OUT"],
    "bench convergence": ["--data", "ADDRESS", "--model", "airnet-narrow", "--n", "1", "--seeds", "1", "--batch", "8", "--epochs", "1",
                          "--limit-train", "8", "--limit-eval", "8", "--out", "OUT"],
}
# Commands that take no address; `receipt` opens what a run's config.json names.
WITHOUT = {"export", "augment", "top", "bench", "info", "make-shapes", "receipt", "rewind",
           *("bench " + name for name in ("links", "depth", "layout", "slice", "predict", "guard", "compare"))}
# More words for one of them, or another one for an option.
MORE = {
    "train, everything": ["train", "--data", "ADDRESS", "--eval-data", "ADDRESS", *TRAIN, "--cache", "OUT/kept", "--cache-size", "10M",
                          "--metrics-port", "0"],
    "train, evaluated": ["train", "--data", "LOCAL", "--eval-data", "ADDRESS", *TRAIN],
    "train, blended": ["train", "--blend", "ADDRESS=2", "--blend", "LOCAL=1", *TRAIN],
    "dump, in blocks": ["dump", "--data", "ADDRESS", *SMALL, "--size", "16", "--steps", "2", "--shuffle-blocks", "2", "--out", "OUT"],
    "profile of a training": ["profile", "--seconds", "0.5", "--out", "OUT/profile", "--", "train", "--data", "ADDRESS", *TRAIN],
    "pack to Parquet": ["pack", "--data", "ADDRESS", "--format", "parquet", "--out", "OUT/packed"],
    "index to a file": ["index", "--data", "ADDRESS", "--out", "OUT/seek.bin"],
}
# Command lines that are wrong.
WRONG = [
    ["check", "ADDRESS"], ["check", "--no-such=ADDRESS"], ["check", "--split", "ADDRESS"], ["check", "--data=ADDRESS", "--workers=ADDRESS"],
    ["train", "--blend", "ADDRESS"], ["train", "--blend", "ADDRESS=x"], ["dump", "--data", "ADDRESS", "--label-from", "nothing"],
    ["check", "--data", "ADDRESS", "--image-from", "nothing"], ["check", "--data", "LOCAL", "--cache", "ADDRESS", "--cache-size", "1M"],
    ["check", "--data", "ADDRESS", "--cache", "ADDRESS", "--cache-size", "1M"], ["check", "--data", "ADDRESS", "--store-ca", "ADDRESS"],
    ["check", "--data", "UPPER"], ["check", "--data", "FTP"], ["check", "--data", "FILE"], ["check", "--data", "ADDRESS#part"],
    ["check", "--data", "BRACES"], ["check", "--data", "S3USER"], ["train", "--data", "ADDRESS", "--eval-data", "UPPER", *TRAIN],
    ["index", "--data", "ADDRESS", "--split", "test"], ["train", "--data", "ADDRESS", *TRAIN, "--seek-index", "ADDRESS"],
]


class Store:
    """Signed URLs and a bucket on one server, which redirects some paths to another one."""

    def __init__(self, files):
        self.files = files
        self.elsewhere = ScriptedServer(self.answer_elsewhere)
        self.server = ScriptedServer(self.answer)

    def answer_elsewhere(self, request):
        if request.query.get("sig") != SECRETS["redirection"]:
            return Answer(403, str(request).encode())
        name = request.path.rsplit("/", 1)[-1]
        return object_answer(request, self.files[name]) if name in self.files else Answer(404)

    def answer(self, request):
        # Servers repeat parts, and a bad one everything that it was sent.
        echo = f"{request.path} {request.query} {request.headers}".encode()
        name = request.path.rsplit("/", 1)[-1]
        if request.path.startswith("/keys"):
            return Answer(200, ('{"AccessKeyId":"AKC","SecretAccessKey":"%s","Token":"t","Expiration":"2199-01-01T00:00:00Z"}' %
                                SECRETS["keys of a container"]).encode())
        if request.path.startswith("/moved/"):
            where = {"sig": SECRETS["redirection"]}
            return Answer(302, headers={"Location": f"{self.elsewhere.endpoint}/there/{name}?{urllib.parse.urlencode(where)}"})
        if request.path.startswith("/bucket"):
            if request.path == "/bucket" or "prefix" in request.query:
                prefix = request.query.get("prefix", "")
                return list_page([(key, len(data), "e") for key, data in sorted(self.files.items()) if key.startswith(prefix)])
            if name not in self.files:
                return s3_error(404, "NoSuchKey", echo.decode())
            return object_answer(request, self.files[name])
        if request.path.startswith("/denied"):
            return Answer(403, echo)
        # As a store does with signed URLs: whatever is not signed is forbidden, whether it is there or not.
        if request.query.get("X-Amz-Signature") != SECRETS["query"]:
            return Answer(403, echo, {"x-echo": request.path})
        return object_answer(request, self.files[name]) if name in self.files else Answer(404, echo)

    def stop(self):
        for server in (self.server, self.elsewhere):
            server.__exit__()


def without_one_picture(tar):
    """The same tar with one picture that cannot be decoded."""
    data = bytearray(tar)
    at = data.find(b"\xff\xd8\xff")
    data[at:at + 400] = b"\0" * 400
    return bytes(data)


def labels_aside(tar):
    """The same tar with an entry that is left out, which is said."""
    out = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(tar)) as source, tarfile.open(fileobj=out, mode="w") as target:
        for member in source:
            target.addfile(member, source.extractfile(member))
        odd = tarfile.TarInfo("zz.odd")
        odd.size = 3
        target.addfile(odd, io.BytesIO(b"odd"))
    return out.getvalue()


class SecretsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        shapes, packed = cls.folder / "shapes", cls.folder / "packed"
        run("make-shapes", "--out", shapes, "--count", 32, "--test-count", 16)
        for split in ("train", "test"):
            run("pack", "--data", shapes, "--split", split, "--format", "tar", "--out", packed / split)
        # Without classes.txt, as a signed URL has them.
        cls.local = cls.folder / "local"
        cls.local.mkdir()
        for shard in packed.rglob("*.tar"):
            shutil.copy(shard, cls.local)
        run("train", "--data", cls.local, *(str(cls.folder / "first") if word == "OUT" else word for word in TRAIN))
        files = {f"{split}-000000.tar": (packed / split / f"{split}-000000.tar").read_bytes() for split in ("train", "test")}
        files["noted.tar"] = labels_aside(files["train-000000.tar"])
        files["damaged.tar"] = without_one_picture(files["train-000000.tar"])
        files["cut.tar"] = files["train-000000.tar"][:5000]
        files["no.tar"] = b"this is no tar" * 100
        cls.store = Store(files)
        cls.addClassCleanup(cls.store.stop)

    def address(self, name, place="/b"):
        return f"{self.store.server.endpoint}{place}/{name}{SIGNED}"

    def words(self, words, address, out):
        values = {"ADDRESS": address, "OUT": str(out), "CHECKPOINT": str(self.folder / "first"), "LOCAL": str(self.local),
                  "UPPER": "HTTPS" + address[4:], "FTP": "ftp" + address[4:], "FILE": "file" + address[4:],
                  "BRACES": address.replace("train-", "train-{9..1}"),
                  "S3USER": f"s3://AK:{SECRETS['user part']}@bucket/train-000000.tar"}
        pattern = re.compile("|".join(values))
        return [pattern.sub(lambda name: values[name[0]], word) for word in words]

    def look(self, words, address, codes=None, sent=None, **environment):
        """Runs a subcommand; returns what it printed, in which there is no secret, nor in anything that it left."""
        left = self.folder_of_its_own()
        for name in ("home", "cache", "tmp", *["out"] * any(word.startswith("OUT/") for word in words)):
            (left / name).mkdir()
        given = self.words(words, address, left / "out")
        done = subprocess.run(
            [PROGRAM, *given], capture_output=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL, cwd=left / "tmp",
            env=self.environment(left, environment))
        shown = f"stoker {' '.join(words)}: {done.returncode}\n{(done.stdout + done.stderr)[-3000:].decode(errors='replace')}"
        if codes is not None:
            self.assertIn(done.returncode, codes, shown)
        self.clean(done.stdout + done.stderr, shown)
        self.clean_folder(left, shown)
        return (done.stdout + done.stderr).decode(errors="replace")

    def look_at_all(self, jobs):
        """Several at a time, because they wait for retries most of the time. A job: what it is called, look()'s words, and the rest."""
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            looks = [(name, pool.submit(self.look, *arguments, **more)) for name, arguments, more in jobs]
            for name, look in looks:
                with self.subTest(name):
                    look.result()

    def folder_of_its_own(self):
        return pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(dir=self.folder)))

    @staticmethod
    def environment(left, more):
        folders = {"XDG_CACHE_HOME": str(left / "cache"), "TMPDIR": str(left / "tmp")}
        clean = clean_environment(left / "home", **folders)
        return {**{name: value for name, value in clean.items() if not name.lower().endswith("_proxy")}, **more}

    def clean(self, data, where):
        self.assertEqual(secrets_in(data), [], where)

    def clean_folder(self, folder, where):
        for path in sorted(folder.rglob("*")):
            self.clean(str(path.relative_to(folder)).encode(), where)
            if path.is_file() and path.name not in ("credentials", "config"):
                self.clean(path.read_bytes(), f"{path.relative_to(folder)}\n{where}")

    # ---- Which there are

    def listed(self, *words):
        help_text = run(*words, "--help")
        part = help_text.split("Subcommands:\n")[1].split("\n\n")[0]
        return {" ".join([*words, line.split()[0]]) for line in part.splitlines()}

    def test_every_subcommand_is_run_or_takes_no_address(self):
        there = self.listed() | self.listed("bench")
        self.assertEqual(there, set(COMMANDS) | WITHOUT)
        for name in sorted(there - {"bench"}):
            help_text = run(*name.split(), "--help")
            self.assertEqual(re.search("--data( |,)", help_text) is not None, name in COMMANDS, name)

    # ---- Signed URLs

    def every(self):
        yield from ((name, [*name.split(), *words]) for name, words in COMMANDS.items())
        yield from MORE.items()

    def test_good_runs(self):
        for name, words in self.every():
            parts = name == "bench convergence"
            with self.subTest(name):
                files = "{train,test}-000000.tar" if parts else "noted.tar"
                shown = self.look(words, self.address(files), codes=(0,))
                if name in ("train", "dump", "check"):
                    self.assertIn("left out", shown)

    def test_objects_that_are_not_there_forbidden_damaged_or_moved(self):
        addresses = (self.address("none.tar"), self.address("train-000000.tar", "/denied"), self.address("damaged.tar"),
                     self.address("cut.tar"), self.address("no.tar"), self.address("moved.tar", "/moved"))
        self.look_at_all([(f"{name}: {address.split('?')[0]}", (words, address), {}) for name, words in self.every() for address in addresses
                          if name in ("train", "dump", "check", "pack", "index") or "none.tar" in address])

    def test_servers_that_are_not_there(self):
        address = self.address("train-000000.tar").replace(str(self.store.server.port), "9")
        self.look_at_all([(name, ([*words, "--store-tries", "1"], address), {"codes": (2, 3)}) for name, words in self.every()])

    def test_wrong_command_lines(self):
        self.look_at_all([(" ".join(words), (words, self.address("train-000000.tar")), {"codes": (2, 3)}) for words in WRONG])

    def test_what_is_found_again_and_what_is_told_apart(self):
        """An index and the names of samples: objects that differ in their queries alone are two."""
        both = self.address("train-000000.tar").replace(SIGNED, SIGNED + "&part={1,2}")
        left = self.folder_of_its_own()
        environment = self.environment(left, {})

        def indexes(*addresses):
            for address in addresses:
                run("check", "--data", address, environment=environment)
            return len(list((left / "cache").rglob("blobs-*.bin")))

        one = self.address("train-000000.tar")
        self.assertEqual(indexes(one), 1)
        self.assertEqual(indexes(one, one), 1)
        self.assertEqual(indexes(one + "&part=1"), 2)
        self.assertEqual(indexes(both), 3)
        out = left / "rows"
        run("dump", "--data", both, *SMALL, "--size", 16, "--steps", 8, "--out", out, environment=environment)
        rows = (out / "rows.jsonl").read_text()
        self.assertIn('"train-000000.tar/', rows)
        self.assertIn('"train-000000.tar~2/', rows)
        self.clean_folder(left, "indexes and rows")

    def test_a_run_that_is_interrupted_says_how_to_go_on(self):
        left = self.folder_of_its_own()
        words = ["train", "--data", self.address("train-000000.tar"), "--model", "airnet-narrow", *SMALL, "--micro-batch", "8",
                 "--epochs", "100000", "--out", str(left / "out")]
        process = subprocess.Popen([PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=self.environment(left, {}))
        until = time.monotonic() + LIMIT_S
        while not (left / "out" / "metrics.jsonl").exists() and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        shown = process.communicate(timeout=LIMIT_S)[0]
        self.assertIn(b"to go on", shown)
        self.clean(shown, "interrupted")
        self.clean_folder(left, "interrupted")

    def test_a_run_can_be_compared_although_its_query_is_not_kept(self):
        left = self.folder_of_its_own()
        for name in ("a", "b"):
            words = [str(left / name) if word == "OUT" else word for word in TRAIN]
            run("train", "--data", self.address("train-000000.tar"), *words, "--seed", len(os.listdir(left)),
                environment=self.environment(left, {}))
        shown = run("receipt", "diff", left / "a", left / "b", codes=(1,), environment=self.environment(left, {}))
        self.clean(shown.encode(), "receipt diff")
        self.clean_folder(left, "receipt diff")

    # ---- Users, keys and tokens

    def test_users_and_passwords_in_addresses(self):
        secret = SECRETS["user part"]
        host = self.store.server.endpoint.split("://")[1]
        addresses = (f"http://me:{secret}@{host}/b/train-000000.tar", f"http://{secret}@{host}/b/train-{{0..3}}.tar",
                     f"http://me:{secret}/x@{host}/b/*.tar", f"https://me:{secret}@{host}/b", f"hf://me:{secret}@x/y",
                     f"s3://me:{secret}@bucket/train-000000.tar", f"HTTP://me:{secret}@{host}/b")
        self.look_at_all([(f"{words[0]}: {address.replace(secret, 'S')}", (words, address), {"codes": (2, 3)})
                          for words in (*([name, *COMMANDS[name]] for name in ("check", "dump", "train")), MORE["train, evaluated"])
                          for address in addresses])

    def s3(self, words, codes, **environment):
        """Runs on the bucket; nothing secret may come to the other server."""
        host = environment.pop("host", self.store.server.endpoint)
        return self.look(words, "s3://bucket/train-000000.tar", codes=codes, AWS_ENDPOINT_URL=host, **environment)

    def test_keys_of_the_environment(self):
        keys = {"AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": SECRETS["AWS_SECRET_ACCESS_KEY"],
                "AWS_SESSION_TOKEN": SECRETS["AWS_SESSION_TOKEN"]}
        self.look_at_all([(name, (words, "s3://bucket/train-000000.tar"), {"codes": (0,), "AWS_ENDPOINT_URL": self.store.server.endpoint, **keys})
                          for name, words in self.every() if name != "bench convergence"])
        for address in ("s3://bucket/none.tar", "s3://bucket/no.tar", "s3://bucket/damaged.tar"):
            self.look(["check", *COMMANDS["check"]], address, AWS_ENDPOINT_URL=self.store.server.endpoint, **keys)
        self.s3(["check", *COMMANDS["check"], "--store-tries", "1"], (3,), host="http://127.0.0.1:9", **keys)

    def test_keys_of_a_profile_and_of_a_container(self):
        files = self.folder / "aws"
        files.mkdir(exist_ok=True)
        (files / "keys").write_text(f"[mine]\naws_access_key_id = AKP\naws_secret_access_key = {SECRETS['profile']}\n"
                                    f"aws_session_token = {SECRETS['token of a profile']}\n")
        profile = {"AWS_SHARED_CREDENTIALS_FILE": str(files / "keys"), "AWS_PROFILE": "mine"}
        self.s3(["train", *COMMANDS["train"]], (0,), **profile)
        self.s3(["check", *COMMANDS["check"], "--store-tries", "1"], (3,), host="http://127.0.0.1:9", **profile)
        self.s3(["train", *COMMANDS["train"], "--store-profile", "other"], (2, 3), **profile)
        container = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": self.store.server.endpoint + "/keys",
                     "AWS_CONTAINER_AUTHORIZATION_TOKEN": SECRETS["token of a container"]}
        self.s3(["train", *COMMANDS["train"]], (0,), **container)
        container["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = self.store.server.endpoint + "/denied?" + SECRETS["query"]
        self.s3(["check", *COMMANDS["check"], "--store-tries", "1"], (2, 3), **container)

    def test_endpoints_and_proxies_with_passwords(self):
        host = self.store.server.endpoint.split("://")[1]
        endpoint = f"http://me:{SECRETS['user part of an endpoint']}@{host}"
        keys = {"AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": SECRETS["AWS_SECRET_ACCESS_KEY"]}
        self.s3(["train", *COMMANDS["train"]], (2, 3), host=endpoint, **keys)
        self.s3(["train", *COMMANDS["train"], "--store-endpoint", endpoint], (2, 3), **keys)
        self.s3(["dump", *COMMANDS["dump"], "--store-endpoint", f"{endpoint}/?x={SECRETS['query']}"], (2, 3), **keys)
        proxy = f"http://me:{SECRETS['password of a proxy']}@127.0.0.1:9"
        self.look(["check", *COMMANDS["check"], "--store-tries", "1"], "http://example.invalid/train-000000.tar", codes=(2, 3),
                  http_proxy=proxy)

    def test_another_server_gets_nothing_but_what_it_was_redirected_with(self):
        self.look(["train", *COMMANDS["train"]], self.address("train-000000.tar", "/moved"), codes=(0,))
        self.assertTrue(self.store.elsewhere.requests)
        for request in self.store.elsewhere.requests:
            found = secrets_in(str(request).encode())
            self.assertIn(found, ([], ["redirection"]))

    def test_schemes_that_are_not_there_say_what_there_is(self):
        for address, said in (("gs://b/x.tar", "AWS_ENDPOINT_URL_S3=https://storage.googleapis.com"), ("hf://datasets/x", "huggingface"),
                              ("az://c/x", "https://ACCOUNT"), ("ftp://h/x.tar", "s3://")):
            self.assertIn(said, self.look(["check", *COMMANDS["check"]], address, codes=(2,)))

    # ---- The Python package

    def test_the_python_package(self):
        there = subprocess.run([sys.executable, "-c", "import stoker"], capture_output=True, text=True)
        if there.returncode != 0:
            self.skipTest("the package cannot be imported")
        left = self.folder_of_its_own()
        program = str(pathlib.Path(__file__).with_name("secrets_in_python.py"))
        done = subprocess.run(
            [sys.executable, program, self.store.server.endpoint, SIGNED, SECRETS["user part"], left / "out"], capture_output=True,
            timeout=LIMIT_S, env=self.environment(left, {"PYTHONDONTWRITEBYTECODE": "1",
                                                         "STOKER_PLUGIN_DIR": os.environ.get("STOKER_PLUGIN_DIR", os.path.dirname(PROGRAM))}),
            cwd=left)
        shown = (done.stdout + done.stderr).decode()
        self.assertEqual(done.returncode, 0, shown[-3000:])
        self.assertIn("refused", shown)
        self.clean(done.stdout + done.stderr, shown)
        self.clean_folder(left, shown)


if __name__ == "__main__":
    unittest.main()
