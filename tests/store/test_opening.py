"""`open_store`: what each URL opens."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agent_adapter.core.errors import StoreError
from agent_adapter.store import MemoryStore, SqliteStore, open_store

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory of the test's own, without the environment's store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENT_ADAPTER_STORE", raising=False)
    return tmp_path


async def test_without_a_url_it_is_the_file_of_the_working_directory(folder: Path) -> None:
    """`.agent_adapter/state.db`, in a folder of the owner's that git ignores."""
    store = open_store()
    made = folder / ".agent_adapter"
    assert store.url == f"sqlite:///{made / 'state.db'}"
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert (made / ".gitignore").read_text() == "*\n"
    await store.aclose()


async def test_the_environment_names_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """AGENT_ADAPTER_STORE takes the place of the default, not of a URL that is given."""
    monkeypatch.setenv("AGENT_ADAPTER_STORE", "memory://")
    assert isinstance(open_store(), MemoryStore)
    store = open_store("given.db")
    assert isinstance(store, SqliteStore)
    await store.aclose()


@pytest.mark.parametrize("form", ["relative", "absolute", "plain", "path"])
async def test_a_file_is_named_in_four_ways(folder: Path, form: str) -> None:
    """`sqlite:///relative.db`, `sqlite:////absolute.db`, a plain path and a `Path`."""
    path = folder / "x.db"
    forms = {"relative": "sqlite:///x.db", "absolute": f"sqlite:///{path}", "plain": "x.db"}
    store = open_store(forms.get(form, path))
    assert store.url == f"sqlite:///{path}" and store.durable and path.is_file()
    await store.aclose()


def test_memory_is_not_durable() -> None:
    """`memory://` says that it keeps nothing."""
    store = open_store("memory://", key=bytes(32))
    assert (store.url, store.durable, store.key) == ("memory://", False, bytes(32))


@pytest.mark.parametrize(
    "url", ["mysql://h/db", "redis://u:secret@h/0", "memory://name", "file:///x"]
)
def test_an_unknown_scheme_lists_the_known(url: str) -> None:
    """The error names what was given, and what may be."""
    with pytest.raises(StoreError, match="memory://") as error:
        open_store(url)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_a_database_that_is_not_there_is_told_without_the_password(scheme: str) -> None:
    """Both schemes open PostgreSQL; the error names the place, the reason and what to look at."""
    with pytest.raises(StoreError, match=r"cannot open .* see that the server runs") as error:
        open_store(f"{scheme}://me:s3cret@localhost:1/db", key=bytes(32))
    assert "s3cret" not in str(error.value) and "me:***@localhost" in str(error.value)


def test_a_driver_in_the_scheme_is_refused() -> None:
    """SQLAlchemy's form of the URL is no scheme here; the error says what is."""
    with pytest.raises(StoreError, match=r"only memory, postgres, postgresql, sqlite") as error:
        open_store("postgresql+psycopg://me:s3cret@host/db")
    assert "s3cret" not in str(error.value)


def test_importing_stores_loads_no_database_library() -> None:
    """SQLAlchemy and Alembic are imported when a database is opened."""
    code = (
        "import sys, agent_adapter.store;"
        "print([m for m in ('sqlalchemy', 'alembic', 'sqlite3', 'psycopg') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert out.stdout.strip() == "[]"


async def test_a_store_at_head_is_opened_without_alembic(folder: Path) -> None:
    """Only a migration imports Alembic, which is slow."""
    await open_store("x.db").aclose()
    code = (
        "import sys; from agent_adapter.store import open_store;"
        f"open_store({str(folder / 'x.db')!r}); print('alembic' in sys.modules)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert out.stdout.strip() == "False"
