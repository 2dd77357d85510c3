"""The playground on this machine, with the headers that it should have anywhere."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from os import PathLike
from pathlib import Path

POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Handler(SimpleHTTPRequestHandler):
    """Static files under a strict policy."""

    def guess_type(self, path: str | PathLike[str]) -> str:
        kinds = {".mjs": "text/javascript", ".wasm": "application/wasm"}
        return kinds.get(Path(path).suffix) or super().guess_type(path)

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Nobody reads them."""


def server(folder: Path, port: int = 0) -> ThreadingHTTPServer:
    """A server of a folder on loopback; the port is in its address."""
    return ThreadingHTTPServer(("127.0.0.1", port), partial(Handler, directory=str(folder)))


def serve(folder: Path) -> None:
    """Serve until interrupted."""
    running = server(folder)
    print(f"http://127.0.0.1:{running.server_port}/ (Ctrl-C ends it)", flush=True)
    try:
        running.serve_forever()
    except KeyboardInterrupt:
        running.server_close()
