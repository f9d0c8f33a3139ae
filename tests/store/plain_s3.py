"""A few requests of S3, signed with Python's standard library alone: what tests put into servers.
It shares no code with what it tests."""
import datetime
import hashlib
import hmac
import http.client
import urllib.parse


class Client:
    """Path style; one connection for each request. Raises RuntimeError for a refusal."""

    def __init__(self, endpoint, keys, region="us-east-1"):
        self._url = urllib.parse.urlsplit(endpoint)
        self._keys, self._region = keys, region

    def make_bucket(self, bucket, region=None):
        body = b""
        if region:
            body = (f"<CreateBucketConfiguration><LocationConstraint>{region}"
                    "</LocationConstraint></CreateBucketConfiguration>").encode()
        self._request("PUT", f"/{bucket}", body)

    def put(self, bucket, key, data):
        self._request("PUT", f"/{bucket}/{urllib.parse.quote(key, safe='/-._~')}", data)

    def delete(self, bucket, key):
        self._request("DELETE", f"/{bucket}/{urllib.parse.quote(key, safe='/-._~')}", b"")

    def _request(self, method, path, body):
        connection = http.client.HTTPConnection(self._url.hostname, self._url.port, timeout=60)
        try:
            connection.request(method, path, body, self._signed(method, path, body))
            answer = connection.getresponse()
            text = answer.read()
            if answer.status >= 300:
                raise RuntimeError(f"{method} {path}: {answer.status} {text[:500]}")
        finally:
            connection.close()

    def _signed(self, method, path, body):
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        payload = hashlib.sha256(body).hexdigest()
        headers = {"host": self._url.netloc, "x-amz-content-sha256": payload, "x-amz-date": now}
        names = ";".join(sorted(headers))
        lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        request = f"{method}\n{path}\n\n{lines}\n{names}\n{payload}"
        scope = f"{now[:8]}/{self._region}/s3/aws4_request"
        text = (f"AWS4-HMAC-SHA256\n{now}\n{scope}\n"
                f"{hashlib.sha256(request.encode()).hexdigest()}")
        key = b"AWS4" + self._keys[1].encode()
        for part in scope.split("/"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        return {**headers, "Authorization": f"AWS4-HMAC-SHA256 Credential={self._keys[0]}/{scope}, "
                                            f"SignedHeaders={names}, Signature={signature}"}
