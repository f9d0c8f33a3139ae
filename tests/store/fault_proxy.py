#!/usr/bin/env python3
"""A proxy before an HTTP server on this machine: it makes answers late, and breaks a share of them.

  tests/store/fault_proxy.py HOST:PORT [--port N] [--delay-ms 20] [--seed 1] [--slow-down 0.01] ...

Prints one line of JSON with its endpoint, works until stdin ends or a signal comes, and then prints
a line with what it did. Requests pass unchanged, with their Host, so that signatures hold. Which
requests are hit depends on the seed and the order in which they come.

  slow-down     503 with S3's SlowDown, without asking the server
  reset         the connection is reset instead of an answer
  truncate      the connection ends after a part of the body
  wrong-length  Content-Length promises more than comes; then the connection ends
  wrong-range   Content-Range tells other bytes than come (of an answer that has one)
  stall         nothing more comes after a part of the body, for --stall-s seconds
"""
import argparse
import asyncio
import contextlib
import json
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import time

FAULTS = ["slow_down", "reset", "truncate", "wrong_length", "wrong_range", "stall"]
# Bytes that are buffered of an answer that the client does not take.
HIGH_WATER = 1 << 20

SLOW_DOWN_BODY = (b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>SlowDown</Code>'
                  b"<Message>Please reduce your request rate.</Message></Error>")
SLOW_DOWN = (b"HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\nContent-Length: "
             b"%d\r\n\r\n" % len(SLOW_DOWN_BODY))


def header(head, name):
    """The value of a header in the bytes of a head, b"" if it is not there."""
    found = re.search(rb"(?im)^" + name + rb":[ \t]*(.*?)[ \t]*\r?$", head)
    return found[1] if found else b""


class Chunks:
    """Finds the end of a body in chunks (RFC 9112, 7.1), as it comes piece by piece."""

    def __init__(self):
        self._line = b""
        self._left = 0  # of the chunk and its line end
        self._in_trailer = False

    def take(self, data):
        """Returns whether the body ends in this piece."""
        at = 0
        while at < len(data):
            if self._left:
                step = min(self._left, len(data) - at)
                self._left -= step
                at += step
                continue
            end = data.find(b"\n", at)
            if end < 0:
                self._line += data[at:]
                return False
            line, self._line = (self._line + data[at:end]).strip(), b""
            at = end + 1
            if self._in_trailer:
                if not line:
                    return True
                continue
            size = int(line.split(b";")[0], 16)
            self._in_trailer = size == 0
            self._left = size + 2 if size else 0
        return False


class Upstream(asyncio.Protocol):
    """The connection to the server, of one client."""

    def __init__(self, client):
        self.client = client
        self.transport = None

    def connection_made(self, transport):
        self.transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data):
        self.client.answer_received(data)

    def connection_lost(self, _):
        self.client.server_lost()


class Client(asyncio.Protocol):
    """The connection of one client. It has one request under way at a time."""

    def __init__(self, proxy):
        self.proxy = proxy
        self.transport = None
        self.server = None  # an Upstream, from the first request on
        self.request = b""  # what came of the next one
        self.fault = None
        self.waits = False  # for an answer
        self._reset_answer()

    def _reset_answer(self):
        self.head = b""
        self.left = None  # bytes of the body that are to come
        self.chunks = None
        self.to_pass = None  # bytes of the body until a fault

    def connection_made(self, transport):
        self.transport = transport
        transport.set_write_buffer_limits(high=HIGH_WATER)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.proxy.counts["connections"] += 1

    def connection_lost(self, _):
        if self.server and self.server.transport:
            self.server.transport.abort()

    def pause_writing(self):
        if self.server and self.server.transport:
            self.server.transport.pause_reading()

    def resume_writing(self):
        if self.server and self.server.transport:
            self.server.transport.resume_reading()

    def data_received(self, data):
        self.request += data
        self._next_request()

    def _next_request(self):
        end = self.request.find(b"\r\n\r\n")
        if self.waits or end < 0:
            return
        size = end + 4 + int(header(self.request[:end], b"content-length") or 0)
        if len(self.request) < size:
            return
        whole, self.request = self.request[:size], self.request[size:]
        self.waits = True
        self.is_head = whole.startswith(b"HEAD ")
        self._reset_answer()
        self.fault = self.proxy.draw()
        if self.proxy.delay:
            self.proxy.loop.call_later(self.proxy.delay, self._send, whole)
        else:
            self._send(whole)

    def _send(self, whole):
        if self.transport.is_closing():
            return
        if self.fault == "reset":
            self.proxy.counts["reset"] += 1
            self._reset()
        elif self.fault == "slow_down":
            self.proxy.counts["slow_down"] += 1
            self.transport.write(SLOW_DOWN + (b"" if self.is_head else SLOW_DOWN_BODY))
            self._answer_ended()
        elif self.server and self.server.transport and not self.server.transport.is_closing():
            self.server.transport.write(whole)
        else:
            self.proxy.keep(self._connect(whole))

    async def _connect(self, whole):
        try:
            _, self.server = await self.proxy.loop.create_connection(
                lambda: Upstream(self), *self.proxy.target)
        except OSError:
            self.transport.close()
            return
        self.server.transport.write(whole)

    def server_lost(self):
        # A server may close a connection that is not used; then the next request opens another.
        if self.waits and self.fault != "stall":
            self.transport.close()

    def _reset(self):
        sock = self.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def answer_received(self, data):
        if self.left is None and self.chunks is None:
            self.head += data
            end = self.head.find(b"\r\n\r\n")
            if end < 0:
                return
            head, data = self.head[:end + 4], self.head[end + 4:]
            self.transport.write(self._read_head(head))
        if self.chunks:
            is_end = self.chunks.take(data)
        else:
            self.left -= len(data)
            is_end = self.left <= 0
        self._pass(data)
        if is_end:
            self._answer_ended()

    def _read_head(self, head):
        """Finds how long the body is. Returns the head as the client gets it."""
        status = int(head.split(b" ", 2)[1])
        if header(head, b"transfer-encoding").lower() == b"chunked" and not self.is_head:
            self.chunks = Chunks()
            length = None
        else:
            length = int(header(head, b"content-length") or 0)
            has_body = not self.is_head and status not in (204, 304)
            self.left = length if has_body else 0
        # Some answers have nothing that could be broken in this way.
        if self.fault == "wrong_length" and not self.left:
            self.fault = None
        elif self.fault == "wrong_range" and not header(head, b"content-range"):
            self.fault = None
        elif self.fault in ("truncate", "stall") and self.left == 0:
            self.fault = None
        if self.fault is None:
            return head
        self.proxy.counts[self.fault] += 1
        if self.fault == "wrong_length":
            return re.sub(rb"(?im)^(content-length:).*?\r$", rb"\1 %d\r" % (length + 7), head)
        if self.fault == "wrong_range":
            return re.sub(rb"(?im)^(content-range: bytes )(\d+)",
                          lambda found: found[1] + b"%d" % (int(found[2]) + 1), head)
        self.to_pass = self.proxy.random.randrange(max(1, self.left or 1))
        return head

    def _pass(self, data):
        self.proxy.counts["bytes"] += len(data)
        if self.to_pass is None:
            self.transport.write(data)
        elif self.to_pass > 0:
            self.transport.write(data[:self.to_pass])
            self.to_pass -= len(data)

    def _answer_ended(self):
        if self.fault in ("truncate", "wrong_length"):
            self.transport.close()
            return
        if self.fault == "stall":
            self.proxy.loop.call_later(self.proxy.stall, self.transport.close)
            return
        self.waits = False
        self._next_request()


class Proxy:
    """All connections, and what they did. In one event loop."""

    def __init__(self, loop, target, shares, delay, stall, seed):
        self.loop, self.target, self.shares = loop, target, shares
        self.delay, self.stall = delay, stall
        self.random = random.Random(seed)
        self.counts = {"connections": 0, "requests": 0, "bytes": 0, **dict.fromkeys(FAULTS, 0)}
        self._tasks = set()

    def draw(self):
        """Returns what happens to the next request: one of FAULTS, or None."""
        self.counts["requests"] += 1
        place = self.random.random()
        for fault in FAULTS:
            place -= self.shares[fault]
            if place < 0:
                return fault
        return None

    def keep(self, coroutine):
        task = self.loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def serve(options):
    loop = asyncio.get_running_loop()
    host, _, port = options.target.rpartition(":")
    shares = {fault: getattr(options, fault) for fault in FAULTS}
    proxy = Proxy(loop, (host, int(port)), shares, options.delay_ms / 1000, options.stall_s,
                  options.seed)
    server = await loop.create_server(lambda: Client(proxy), "127.0.0.1", options.port,
                                      backlog=1024)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    stdin = loop.run_in_executor(None, sys.stdin.read)
    stdin.add_done_callback(lambda _: ended.set())
    print(json.dumps({"endpoint": "http://127.0.0.1:%d" % server.sockets[0].getsockname()[1]}),
          flush=True)
    started = time.monotonic()
    await ended.wait()
    server.close()
    print(json.dumps({**proxy.counts, "seconds": round(time.monotonic() - started, 3)}), flush=True)


class FaultProxy(contextlib.AbstractContextManager):
    """The program beside a test. `counts` is there when it has ended. Options as on the command
    line: FaultProxy(server.endpoint, delay_ms=20, slow_down=0.1)."""

    def __init__(self, endpoint, **options):
        words = [word for name, value in options.items()
                 for word in (f"--{name.replace('_', '-')}", str(value))]
        self._process = subprocess.Popen(
            [sys.executable, __file__, endpoint.removeprefix("http://"), *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.endpoint = json.loads(self._process.stdout.readline())["endpoint"]
        self.counts = {}

    def __exit__(self, *_):
        self._process.stdin.close()
        try:
            self.counts = json.loads(self._process.stdout.readline())
            self._process.wait(10)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()


def share(text):
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError("a share is from 0 to 1")
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", metavar="HOST:PORT")
    parser.add_argument("--port", type=int, default=0, help="to listen on; default: a free one")
    parser.add_argument("--delay-ms", type=float, default=0, help="before the first byte")
    parser.add_argument("--stall-s", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    for fault in FAULTS:
        parser.add_argument(f"--{fault.replace('_', '-')}", type=share, default=0, metavar="SHARE")
    options = parser.parse_args()
    if sum(getattr(options, fault) for fault in FAULTS) > 1:
        parser.error("the shares are more than 1 together")
    asyncio.run(serve(options))


if __name__ == "__main__":
    main()
