"""The page over HTTP, for one person and their scripts on this machine.

Who opens the address with the token gets a cookie; a script sends the token with each request.
Without either nothing is answered. Requests must name this machine as their host, so that no name
of a stranger's can point here, and changes that come with the cookie must come from the page
itself. A refusal is a line of JSON, `{"error": …}`.
"""

import hmac
import json
import secrets
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Route

from actionspan.errors import InputError, JobError
from actionspan.review.corrections import Conflict, Corrections, page_state
from actionspan.review.keys import LabelKeys

_HOSTS = ("127.0.0.1", "localhost")
_LARGEST = 4 << 20  # bytes of a change
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "frame-ancestors 'none'",  # the page has the rest
    "Referrer-Policy": "no-referrer",
}


class Work(Protocol):
    """The work behind the page."""

    page: Path
    corrections: Corrections
    keys: LabelKeys

    def status(self) -> Mapping[str, Any]:
        """Return the work under way, and the videos to show."""

    def listing(self) -> list[dict[str, Any]]:
        """Return the known facts of each video."""

    def events(self, video_id: str) -> Mapping[str, Any] | None:
        """Return the proposed events of a video, None if it is not one of these."""

    def video(self, video_id: str) -> Path | None:
        """Return the file that a browser plays of a video."""

    def zones(self, video_id: str) -> Mapping[str, Any]:
        """Return the zones of a video."""

    def save_zones(self, video_id: str, pattern: str, zones: Any) -> None:
        """Keep the zones of all videos with a name that matches a pattern."""

    def learn(self) -> None:
        """Ask for a model of the corrections so far."""


def make_app(work: Work, token: str, port: int, once: str) -> Starlette:
    """Return the application that serves a page to whoever knows the token.

    The first caller that sends `once` instead gets the token, too.
    """

    async def page(_: Request) -> Response:
        if not work.page.is_file():
            return _message(f"{work.page}: was moved or deleted; put it back", 503)
        return FileResponse(work.page, headers={"Cache-Control": "no-store"})

    async def videos(_: Request) -> Response:
        return _fresh({"videos": work.listing()})

    async def events(request: Request) -> Response:
        return _known(request, work.events(request.path_params["video"]))

    async def video(request: Request) -> Response:
        file = work.video(request.path_params["video"])
        return FileResponse(file) if file and file.is_file() else _message("no such video", 404)

    async def corrections(_: Request) -> Response:
        return _fresh(work.corrections.all())

    async def save(request: Request) -> Response:
        video_id = request.path_params["video"]
        return await _changed(request, lambda change: kept(video_id, change))

    def kept(video_id: str, change: Any) -> Response:
        try:
            return _fresh({"version": _version(work, video_id, change)})
        except Conflict as conflict:
            return _fresh(dict(conflict.kept), 409)

    async def status(_: Request) -> Response:
        return _fresh(work.status())

    async def learn(_: Request) -> Response:
        if not work.corrections.done():
            return _message("no video is done, so there is nothing to learn from", 409)
        work.learn()
        return _fresh(work.status(), 202)

    return Starlette(
        routes=[
            Route("/", page),
            Route("/videos", videos),
            Route("/events/{video:path}", events),
            Route("/videos/{video:path}", video),
            Route("/corrections", corrections),
            Route("/corrections/{video:path}", save, methods=["PUT"]),
            *_key_routes(work),
            *_zone_routes(work),
            Route("/status", status),
            Route("/learn", learn, methods=["POST"]),
        ],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=_guard(token, once, port))],
        exception_handlers={HTTPException: _no_route},
    )


def _key_routes(work: Work) -> list[Route]:
    async def keys(_: Request) -> Response:
        return _fresh({"keys": work.keys.all()})

    async def save(request: Request) -> Response:
        return await _changed(request, kept)

    def kept(change: Any) -> Response:
        work.corrections.check_place()
        work.keys.save(change)
        return _fresh({"keys": work.keys.all()})

    return [Route("/keys", keys), Route("/keys", save, methods=["PUT"])]


def _version(work: Work, video_id: str, change: Any) -> int:
    """Keep a change, and return the video's next version; see `Corrections.save`."""
    if not isinstance(change, dict) or not change.keys() >= {"version", "rows"}:
        raise ValueError("a change has version, rows, and state or done")
    state, rows = change.get("state"), change["rows"]
    if "state" not in change:  # a script's, which does not keep the page's
        seconds = (work.events(video_id) or {}).get("duration_seconds")
        state, rows = page_state(video_id, rows, change.get("done", False), seconds or 0.0)
    return work.corrections.save(video_id, change["version"], state, rows)


def _zone_routes(work: Work) -> list[Route]:
    async def zones(request: Request) -> Response:
        try:
            return _fresh(work.zones(request.path_params["video"]))
        except KeyError as error:
            return _refused(error)

    async def draw(request: Request) -> Response:
        video_id = request.path_params["video"]
        return await _changed(request, lambda change: kept(video_id, change))

    def kept(video_id: str, change: Any) -> Response:
        if not isinstance(change, dict) or not change.keys() >= {"pattern", "zones"}:
            raise ValueError("a change has pattern and zones")
        work.save_zones(video_id, change["pattern"], change["zones"])
        return _fresh(work.zones(video_id))

    path = "/zones/{video:path}"
    return [Route(path, zones), Route(path, draw, methods=["PUT"])]


async def _changed(request: Request, keep: Callable[[Any], Response]) -> Response:
    """Answer a change, which `keep` takes."""
    if int(request.headers.get("content-length") or _LARGEST + 1) > _LARGEST:
        return _message("too large", 413)
    try:
        return keep(await request.json())
    except (KeyError, InputError, ValueError, RecursionError, ClientDisconnect) as error:
        return _refused(error)


_Next = Callable[[Request], Awaitable[Response]]


def _guard(token: str, once: str, port: int) -> Callable[[Request, _Next], Awaitable[Response]]:
    cookie = f"actionspan-{port}"

    def same(word: str | None, secret: str) -> bool:
        return word is not None and hmac.compare_digest(word.encode(), secret.encode())

    async def answered(request: Request, go_on: _Next) -> Response:
        nonlocal once
        if request.url.hostname not in _HOSTS:
            return _message("this page is for this machine alone", 400)
        word = request.query_params.get("token")
        if request.url.path == "/" and (same(word, token) or same(word, once)):
            if same(word, once):
                once = secrets.token_urlsafe(16)  # known to nobody
            answer: Response = RedirectResponse("/", 303)
            answer.set_cookie(cookie, token, httponly=True, samesite="strict")
            return answer
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and same(bearer.strip(), token):
            return await go_on(request)  # no page of a stranger's can send this
        if not same(request.cookies.get(cookie), token):
            return _message("open the address that `actionspan review` printed", 403)
        origin = request.headers.get("origin")
        if request.method not in ("GET", "HEAD") and origin != _origin(request):
            return _message("changes come from the page alone", 403)
        return await go_on(request)

    async def guard(request: Request, go_on: _Next) -> Response:
        answer = await answered(request, go_on)
        answer.headers.update(_HEADERS)
        return answer

    return guard


def _refused(error: Exception) -> Response:
    """Return the answer to a change that was not kept."""
    if isinstance(error, JobError):
        line = str(error).removesuffix(" and run it again")
        _log(f"not saved: {line}")
        return _message(line, 507)
    if isinstance(error, KeyError):
        return _message(f"nothing is called {error}", 404)
    return _message("nested too deep" if isinstance(error, RecursionError) else str(error), 400)


@cache
def _log(line: str) -> None:
    """Print a line once: the page tries again, and again."""
    print(line, file=sys.stderr, flush=True)


def _origin(request: Request) -> str:
    return f"{request.url.scheme}://{request.url.netloc}"


def _fresh(content: Mapping[str, Any], status: int = 200) -> Response:
    # in ASCII: a video's name may be no text that UTF-8 has
    body, kind = f"{json.dumps(dict(content))}\n", "application/json"
    return Response(body, status, headers={"Cache-Control": "no-store"}, media_type=kind)


def _message(text: str, status: int) -> Response:
    return _fresh({"error": text}, status)


def _known(request: Request, found: Mapping[str, Any] | None) -> Response:
    return _refused(KeyError(request.path_params["video"])) if found is None else _fresh(found)


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _message(f"{request.method} {request.url.path}: {error.detail}", error.status_code)
