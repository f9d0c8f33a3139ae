#!/usr/bin/env python3
"""Our signatures are those of botocore, AWS's own library, for random requests. Needs botocore and
store_probe."""
import datetime
import random
import unittest
import unittest.mock
import urllib.parse

try:
    import botocore.auth
    import botocore.awsrequest
    import botocore.credentials
except ImportError:
    botocore = None

from probe import Probe

REQUESTS = 4000
PIECES = [*"aZ0-_.~/ +=%&?#'()*!$,;:@[]<>^`{|}\t\x7f\\\"", "//", "é", "€", "😀"]


def random_text(source, longest):
    return "".join(source.choice(PIECES) for _ in range(source.randrange(longest)))


def random_request(source):
    """Returns the line for store_probe."""
    path = "/" + urllib.parse.quote(random_text(source, 40), safe="/-._~")
    names = source.sample(["prefix", "list-type", "delimiter", "encoding-type", "a", "A", "a-b",
                           "continuation-token", "max-keys"], source.randrange(5))
    pairs = [f"{name}={urllib.parse.quote(random_text(source, 20), safe='-._~')}" for name in names]
    host = source.choice(["h", "b.s3.eu-west-3.amazonaws.com", "127.0.0.1:9000", "h:443", "h:80",
                          "[::1]:8333"])
    url = f"{source.choice(['http', 'https'])}://{host}{path}" + ("?" if pairs else "")
    headers = [["x-amz-meta-" + name, source.choice(["x", "two words", "1,2"])]
               for name in source.sample(["b", "a", "c-d"], source.randrange(3))]
    return {"do": "sign", "method": source.choice(["GET", "HEAD"]), "url": url + "&".join(pairs),
            "headers": headers, "region": source.choice(["us-east-1", "eu-west-3", "x"]),
            "keys": [source.choice(["AKIDEXAMPLE", "a/b"]), random_text(source, 40) + "s",
                     source.choice(["", "IQoJ/b+3=="])],
            "time": source.randrange(4_000_000_000)}


def oracle_headers(line):
    now = datetime.datetime.fromtimestamp(line["time"], datetime.timezone.utc)
    request = botocore.awsrequest.AWSRequest(method=line["method"], url=line["url"],
                                             headers=dict(line["headers"]))
    request.context["payload_signing_enabled"] = True
    key, secret, token = line["keys"]
    credentials = botocore.credentials.Credentials(key, secret, token or None)
    with unittest.mock.patch("botocore.auth.get_current_datetime",
                             lambda remove_tzinfo=True: now.replace(tzinfo=None)):
        botocore.auth.S3SigV4Auth(credentials, "s3", line["region"]).add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


@unittest.skipIf(botocore is None, "botocore is not there")
class SignatureOracle(unittest.TestCase):
    def test_random_requests(self):
        source = random.Random(20)
        with Probe() as probe:
            for _ in range(REQUESTS):
                line = random_request(source)
                ours = {name.lower(): value for name, value in probe.ask(**line)["headers"]}
                self.assertEqual(ours, oracle_headers(line), line)


if __name__ == "__main__":
    unittest.main()
