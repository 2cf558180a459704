"""The page over HTTP, for one person on this machine.

Who opens the address with the token gets a cookie; without it nothing is answered. Requests must
name this machine as their host, so that no name of a stranger's can point here, and changes must
come from the page itself.
"""

import hmac
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route

from actionspan.review.corrections import Conflict, Corrections

_HOSTS = ("127.0.0.1", "localhost")
_LARGEST = 4 << 20  # bytes of a change


class Work(Protocol):
    """What goes on behind the page."""

    page: Path
    corrections: Corrections

    def status(self) -> Mapping[str, Any]:
        """Return what is being done, and what the page should show."""

    def video(self, video_id: str) -> Path | None:
        """Return the file that a browser plays of a video."""

    def learn(self) -> None:
        """Ask for a model of the corrections so far."""


def make_app(work: Work, token: str, port: int) -> Starlette:
    """Return the application that serves a page to whoever knows the token."""

    async def page(_: Request) -> Response:
        return FileResponse(work.page, headers={"Cache-Control": "no-store"})

    async def video(request: Request) -> Response:
        file = work.video(request.path_params["video"])
        return FileResponse(file) if file and file.is_file() else _said("no such video", 404)

    async def corrections(_: Request) -> Response:
        return _fresh(work.corrections.all())

    async def save(request: Request) -> Response:
        if int(request.headers.get("content-length") or _LARGEST + 1) > _LARGEST:
            return _said("too large", 413)
        try:
            change = await request.json()
            given = change["version"], change["state"], change["rows"]
            version = work.corrections.save(request.path_params["video"], *given)
        except Conflict as conflict:
            return _fresh(dict(conflict.kept), 409)
        except KeyError as error:
            return _said(f"nothing is called {error}", 404)
        except (TypeError, ValueError) as error:
            return _said(str(error), 400)
        return _fresh({"version": version})

    async def status(_: Request) -> Response:
        return _fresh(work.status())

    async def learn(_: Request) -> Response:
        work.learn()
        return _fresh(work.status(), 202)

    return Starlette(
        routes=[
            Route("/", page),
            Route("/videos/{video:path}", video),
            Route("/corrections", corrections),
            Route("/corrections/{video:path}", save, methods=["PUT"]),
            Route("/status", status),
            Route("/learn", learn, methods=["POST"]),
        ],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=_guard(token, f"actionspan-{port}"))],
    )


def _guard(
    token: str, cookie: str
) -> Callable[[Request, Callable[[Request], Awaitable[Response]]], Awaitable[Response]]:
    def knows(word: str | None) -> bool:
        return word is not None and hmac.compare_digest(word.encode(), token.encode())

    async def guard(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        if request.url.hostname not in _HOSTS:
            return _said("this page is for this machine alone", 400)
        if request.url.path == "/" and knows(request.query_params.get("token")):
            answer: Response = RedirectResponse("/", 303)
            answer.set_cookie(cookie, token, httponly=True, samesite="strict")
            return answer
        if not knows(request.cookies.get(cookie)):
            return _said("open the address that `actionspan review` printed", 403)
        origin = request.headers.get("origin")
        if request.method not in ("GET", "HEAD") and origin != _origin(request):
            return _said("changes come from the page alone", 403)
        answer = await go_on(request)
        answer.headers["X-Content-Type-Options"] = "nosniff"
        answer.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        return answer

    return guard


def _origin(request: Request) -> str:
    return f"{request.url.scheme}://{request.url.netloc}"


def _fresh(content: Mapping[str, Any], status: int = 200) -> Response:
    return JSONResponse(dict(content), status, headers={"Cache-Control": "no-store"})


def _said(text: str, status: int) -> Response:
    return PlainTextResponse(f"{text}\n", status)
