"""An HTTP server in this process that answers as a test says, and keeps what it was asked."""
import contextlib
import dataclasses
import http.server
import ssl
import threading
import urllib.parse
import xml.sax.saxutils


@dataclasses.dataclass
class Request:
    method: str
    path: str  # percent-encoded, without the query
    query: dict
    headers: dict  # names in small letters
    body: bytes


@dataclasses.dataclass
class Answer:
    status: int = 200
    body: bytes = b""
    headers: dict = dataclasses.field(default_factory=dict)


def s3_error(status, code, message="", more="", **headers):
    body = (f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code>'
            f"<Message>{message}</Message>{more}</Error>")
    return Answer(status, body.encode(), {"Content-Type": "application/xml", **headers})


def list_page(objects, next_token=None):
    """`objects`: keys, or (key, size, etag)."""
    parts = ['<?xml version="1.0"?><ListBucketResult><EncodingType>url</EncodingType>']
    for entry in objects:
        key, size, etag = (entry, 1, "e") if isinstance(entry, str) else entry
        parts.append(f"<Contents><Key>{urllib.parse.quote_plus(key, safe='/')}</Key>"
                     f"<ETag>&quot;{etag}&quot;</ETag><Size>{size}</Size></Contents>")
    parts.append(f"<IsTruncated>{'true' if next_token else 'false'}</IsTruncated>")
    if next_token:
        token = xml.sax.saxutils.escape(next_token)
        parts.append(f"<NextContinuationToken>{token}</NextContinuationToken>")
    parts.append("</ListBucketResult>")
    return Answer(200, "".join(parts).encode(), {"Content-Type": "application/xml"})


def object_answer(request, data, etag='"e"'):
    """Answers HEAD and GET, with a range or without."""
    headers = {"ETag": etag, "x-amz-request-id": "1"}
    wanted = request.headers.get("range")
    if request.headers.get("if-match", etag) != etag:
        return s3_error(412, "PreconditionFailed")
    if not wanted:
        return Answer(200, data, headers)
    first, last = (int(text) for text in wanted.removeprefix("bytes=").split("-"))
    part = data[first:last + 1]
    headers["Content-Range"] = f"bytes {first}-{first + len(part) - 1}/{len(data)}"
    return Answer(206, part, headers)


def tls_context(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


class ScriptedServer(contextlib.AbstractContextManager):
    """`answer(request)` returns an Answer. It is called by many threads at a time."""

    def __init__(self, answer, certificate=None, tunnel=None):
        """`certificate`: the files of a certificate and of its key; the server speaks HTTPS.
        `tunnel`: the same; it is a proxy that plays the host behind each CONNECT itself."""
        self.requests = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def _answer(self):
                url = urllib.parse.urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                request = Request(
                    self.command, url.path,
                    dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True)),
                    {name.lower(): value for name, value in self.headers.items()}, body)
                outer.requests.append(request)
                made = answer(request)
                headers = dict(made.headers)
                if "Transfer-Encoding" not in headers:
                    headers.setdefault("Content-Length", str(len(made.body)))
                self.send_response_only(made.status)
                if "Date" not in headers:
                    self.send_header("Date", self.date_time_string())
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(made.body)

            do_GET = do_HEAD = do_PUT = do_POST = _answer

            def do_CONNECT(self):
                self.send_response_only(200)
                self.end_headers()
                self.connection = tls_context(tunnel).wrap_socket(self.connection,
                                                                  server_side=True)
                self.rfile = self.connection.makefile("rb")
                self.wfile = self.connection.makefile("wb", 0)
                self.close_connection = False

            def finish(self):
                super().finish()
                self.connection.close()

            def log_message(self, *_):
                pass

        class QuietServer(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_):
                pass  # a client that went away

        self._server = QuietServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        scheme = "http"
        if certificate:
            scheme = "https"
            self._server.socket = tls_context(certificate).wrap_socket(self._server.socket,
                                                                       server_side=True)
        self.endpoint = f"{scheme}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,),
                                        daemon=True)
        self._thread.start()

    def asked(self, path_end=""):
        """The requests whose path ends so."""
        return [request for request in self.requests if request.path.endswith(path_end)]

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
