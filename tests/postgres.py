"""A private PostgreSQL server for the tests, or that of `TEST_POSTGRES_URL`.

The server is started when a test first asks for a database, as a user that is not root, and ends
with the tests' process. A test has a database for itself; emptied, it serves a later one.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

VARIABLE = "TEST_POSTGRES_URL"
_USER = "postgres"


class Server:
    """A running server; `crash` ends it as a power cut would, `start` begins it again."""

    def __init__(self, *, safe: bool = False) -> None:
        self._bin = _programs()
        self._as = [] if os.getuid() else ["setpriv", f"--reuid={_other()}", "--clear-groups"]
        self.folder = Path(tempfile.mkdtemp(prefix="aa-pg-", dir="/tmp"))
        self._data = self.folder / "data"
        if not os.getuid():
            os.chown(self.folder, _other(), -1)
        self._run("initdb", "-D", str(self._data), "-U", _USER, "-A", "trust", "-E", "UTF8",
                  "--locale=C", "--no-sync", "--no-instructions")  # fmt: skip
        self._options = [
            *("-c", "listen_addresses="),
            *("-c", f"unix_socket_directories={self.folder}"),
            *("-c", "max_connections=200"),
            *("-c", "shared_buffers=64MB"),
            *("-c", "autovacuum=off"),
            *(() if safe else ("-c", "fsync=off", "-c", "full_page_writes=off")),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def url(self, database: str = "postgres", user: str = _USER) -> str:
        """The URL of a database of this server."""
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def start(self) -> None:
        """Start, and return when it answers."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._as, str(self._bin / "postgres"), "-D", str(self._data), *self._options],
                cwd=self.folder, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        until = time.monotonic() + 120
        while not _answers(self.url()):
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError((self.folder / "log").read_text()[-2000:])
            time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it: `SIGINT` ends its clients' connections first, `SIGQUIT` is a crash."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait(60)

    def close(self) -> None:
        """End it and remove everything."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [*self._as, str(self._bin / program), *arguments],
            cwd=self.folder, check=True, capture_output=True, timeout=120,
        )  # fmt: skip


def _answers(url: str) -> bool:
    import psycopg

    with contextlib.suppress(psycopg.OperationalError), psycopg.connect(url) as connection:
        return connection.execute("SELECT 1").fetchone() is not None
    return False


def _programs() -> Path:
    """The folder of the newest server's programs."""
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda each: each.parent.name)
    on_path = shutil.which("initdb")
    found = [*([Path(on_path).resolve().parent] if on_path else []), *places]
    if not found:
        raise FileNotFoundError
    return found[-1]


def _other() -> int:
    """A user that is not root: PostgreSQL refuses to be run by root."""
    for name in (_USER, "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_uid
    raise FileNotFoundError


def why_not() -> str | None:
    """Why no test can use PostgreSQL here; `None` where they can."""
    with contextlib.suppress(FileNotFoundError):
        import psycopg  # noqa: F401

        if not os.environ.get(VARIABLE):
            _programs()
            if not os.getuid():
                _other()
        return None
    return f"no PostgreSQL: install it (sh tools/postgres.sh), or name a server with {VARIABLE}"


@functools.cache
def _server() -> Server:
    server = Server()
    atexit.register(server.close)
    return server


def server_url(database: str | None = None) -> str:
    """The URL of a database on the tests' server."""
    given = os.environ.get(VARIABLE)
    if not given:
        return _server().url(database or "postgres")
    parts = urlsplit(given)
    return given if database is None else urlunsplit(parts._replace(path=f"/{database}"))


_free: list[str] = []
"""Databases of this process that hold empty tables and that no test uses."""


@contextlib.contextmanager
def database(*, empty: bool = False) -> Iterator[str]:
    """The URL of a database with empty tables; `empty` has no tables yet, and is dropped after."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    if empty:
        name = _create()
        try:
            yield server_url(name)
        finally:
            _drop(name)
        return
    name = _free.pop() if _free else _with_tables()
    yield server_url(name)
    _clean(name)
    _free.append(name)


def _create() -> str:
    import psycopg

    name = f"aa_{os.getpid()}_{secrets.token_hex(4)}"
    with psycopg.connect(server_url(), autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"')
    return name


def _with_tables() -> str:
    from agent_adapter.store.postgres.connection import connect, parameters_of
    from agent_adapter.store.postgres.migrate import migrate

    name = _create()
    if os.environ.get(VARIABLE):
        atexit.register(_drop, name)
    with contextlib.closing(connect(parameters_of(server_url(name)))) as made:
        migrate(made, name)
    return name


def _clean(name: str) -> None:
    """Take the rows and whoever is still connected away: cheaper than another database."""
    import psycopg

    from agent_adapter.store.tables import TABLES

    others = "FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
    with psycopg.connect(server_url(name), autocommit=True) as admin:
        admin.execute(f"SELECT pg_terminate_backend(pid) {others}", [name])
        admin.execute("; ".join(f'DELETE FROM "{table.name}"' for table in TABLES))


def _drop(name: str) -> None:
    import psycopg

    with (
        contextlib.suppress(psycopg.Error),
        psycopg.connect(server_url(), autocommit=True) as admin,
    ):
        admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
