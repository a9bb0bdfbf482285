"""Puts files into a cache of `requests-cache` under addresses: cache.py CACHE ADDRESS FILE [ADDRESS FILE]…"""

import io
import sys

from requests import Request, Response
from requests_cache import CachedSession
from urllib3 import HTTPResponse

KIND = "application/ld+json"
# A cached answer belongs to a request with its headers; readers of contexts ask with any of these.
ACCEPTED = ["application/ld+json, application/json, */*;q=0.1", "application/ld+json, application/json", KIND, None]


def answer(request, address, body):
    response = Response()
    response.status_code, response.url, response.request = 200, address, request
    response.headers["Content-Type"] = KIND
    response._content = body
    response.raw = HTTPResponse(
        body=io.BytesIO(body), status=200, headers={"Content-Type": KIND},
        preload_content=False, request_url=address, request_method="GET",
    )
    return response


session = CachedSession(cache_name=sys.argv[1], backend="sqlite", expire_after=-1)
for address, path in zip(sys.argv[2::2], sys.argv[3::2], strict=True):
    with open(path, "rb") as file:
        body = file.read()
    for accepted in ACCEPTED:
        headers = {"Accept": accepted} if accepted else {}
        request = session.prepare_request(Request("GET", address, headers=headers))
        session.cache.save_response(answer(request, address, body))
