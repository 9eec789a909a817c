"""When a text names the value of a sink: whole tokens of its kind, in a normal form.

A value is never found inside a longer token, and one of fewer than four characters is never found.
Where a form is in doubt it is not found: then a person is asked.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Callable, Container, Iterator
from functools import lru_cache
from urllib.parse import SplitResult, urlsplit

SHORTEST = 4
"""Values of fewer characters stand in too many texts by chance."""

Forms = list[set[str]]
"""The parts of a value, each in the forms in which a text may name it; empty if it has none."""

Find = Callable[[str], Container[str]]
"""The tokens of one kind in a text."""

_QUOTED = re.compile(r"`([^`\n]+)`|\"([^\"\n]+)\"|“([^“”\n]+)”|(?<!\w)'([^'\n]+)'(?!\w)")
_MAIL = re.compile(r"(?<![\w.+%@-])(?<!\w')\w[\w.+%'-]*@[\w-]+(?:\.[\w-]+)+(?![\w@-])")
_ONE_MAIL = re.compile(r"(?:[^<>@,;]*<\s*)?([\w.+%'-]+@[\w-]+(?:\.[\w-]+)+)\s*>?")
_PHONE = re.compile(r"(?<![\w+])\+?\d(?:[ ().-]{0,2}\d){5,}(?!\w)")
_ONE_PHONE = re.compile(r"\+?[\d ().-]{6,}")
_URL = re.compile(
    r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://[^\s<>\"'`]+|(?<![\w@.-])[\w-]+(?:\.[\w-]+)+(?::\d+)?(?:/[^\s<>\"'`]*)?",
    re.IGNORECASE,
)
_LINK = re.compile(
    r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://[^\s<>\"'`]+|(?<![\w@.-])(?:[\w-]+\.)+[^\W\d_]{2,}(?::\d+)?(?:/[^\s<>\"'`]*)?",
    re.IGNORECASE,
)
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)*(?::\d+)?")
_GROUP = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_ACCOUNT = re.compile(r"[^\W_](?:[ -]?[^\W_])*")
_IBAN_GROUPS = 34
_IBAN = re.compile(r"[A-Z]{2}\d{2}")
_WORD = re.compile(r"\w+(?:[-_.@+/:'\u2019&]\w+)*")
_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21}
_LEADING, _TRAILING = "([{<\"'`“*", ".,;:!?)]}>\"'`”*"
_BETWEEN, _BREAK = "\x00", "\x00\x01"


def names(text: str, kind: str, value: str) -> bool:
    """Whether `text` names the `value` of a sink of that kind."""
    plain = _even(value).strip()
    if any(unicodedata.category(char) in ("Cc", "Cf") for char in plain):
        return False  # a line break or an invisible character: no person wrote that
    find, forms = _KINDS.get(kind, _words)(plain)
    if not forms or any(len(_bare(form)) < SHORTEST for part in forms for form in part):
        return False
    there = _tokens(find, text)
    return all(any(form in there for form in part) for part in forms)


def parts(kind: str, text: str) -> list[tuple[str, str]]:
    """The values in a sink's text: of `links`, a text for others to read, every address in it."""
    if kind != "links":
        return [(kind, text)]
    return [("url", link.rstrip(_TRAILING)) for link in _LINK.findall(_even(text))]


def words(text: str) -> frozenset[str]:
    """Every word of a text, and every run of characters without a space."""
    even = _even(text).casefold()
    runs = (run.strip(_LEADING + _TRAILING) for run in even.split())
    return frozenset((*_WORD.findall(even), *runs))


@lru_cache(maxsize=64)
def _tokens(find: Find, text: str) -> Container[str]:
    return find(_even(text))


def _even(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _bare(form: str) -> str:
    return form.replace(_BREAK, "").replace(_BETWEEN, "")


def _words(value: str) -> tuple[Find, Forms]:
    """Names and ids: the same words in the same order, next to each other."""
    plain = value.strip("\"'`").lstrip("#@").casefold()
    found = list(_WORD.finditer(plain))
    whole = bool(found) and found[0].start() == 0 and found[-1].end() == len(plain)
    return _in_words, [{_in_words(plain)}] if whole else []


def _in_words(text: str) -> str:
    """The words of a text, each between marks, so that no part of a word can be found."""
    written, end = "", 0
    plain = text.casefold()
    for match in _WORD.finditer(plain):
        if written and plain[end : match.start()].strip():
            written += _BREAK
        written += _BETWEEN + re.sub(r"['\u2019]s$", "", match.group())
        end = match.end()
    return written + _BETWEEN


def _recipient(value: str) -> tuple[Find, Forms]:
    """A mail address, a telephone number, or a name."""
    if "@" in value[1:]:
        parts = re.split(r"[,;]", value.removeprefix("mailto:"))
        mails = [_ONE_MAIL.fullmatch(part.strip()) for part in parts]
        return _mails, [{mail[1].casefold()} for mail in mails if mail] if all(mails) else []
    if _ONE_PHONE.fullmatch(value):
        return _phones, [{_number(value)}]
    return _words(value)


def _mails(text: str) -> set[str]:
    return {mail.casefold() for mail in _MAIL.findall(text)}


def _phones(text: str) -> set[str]:
    return {_number(found) for found in _PHONE.findall(text)}


def _number(text: str) -> str:
    digits = re.sub(r"\D", "", text)
    if text.lstrip().startswith("+"):
        return "+" + digits
    return "+" + digits[2:] if digits.startswith("00") else digits


def _account(value: str) -> tuple[Find, Forms]:
    """An IBAN, a card or an account number, with or without its spaces and hyphens."""
    upper = value.upper()
    return _accounts, [{re.sub(r"[ -]", "", upper)}] if _ACCOUNT.fullmatch(upper) else []


def _accounts(text: str) -> set[str]:
    upper = text.upper()
    found: set[str] = set()
    for run in _runs(upper):
        found |= _in_run(run)
    return found


def _runs(upper: str) -> Iterator[list[str]]:
    """Groups of letters and digits with a single space between them."""
    run: list[str] = []
    end = -1
    for match in _GROUP.finditer(upper):
        if run and upper[end : match.start()] != " ":
            yield run
            run = []
        run.append(match.group().replace("-", ""))
        end = match.end()
    if run:
        yield run


def _in_run(groups: list[str]) -> set[str]:
    """The numbers in a run of groups: one that was written in groups is one number."""
    found, at = set(), 0
    while at < len(groups):
        taken = _iban(groups, at) or _grouped(groups, at)
        found.add("".join(groups[at : at + taken]))
        at += taken
    return found


def _iban(groups: list[str], at: int) -> int:
    """How many groups from there are one IBAN, by its check digits; 0 for none."""
    if not _IBAN.match(groups[at]):
        return 0
    joined = ""
    for count, group in enumerate(groups[at : at + _IBAN_GROUPS], start=1):
        joined += group
        if len(joined) > 34 or not joined.isascii():
            return 0
        if len(joined) >= 15 and int("".join(str(int(c, 36)) for c in _turned(joined))) % 97 == 1:
            return count
    return 0


def _turned(iban: str) -> str:
    return iban[4:] + iban[:4]


def _grouped(groups: list[str], at: int) -> int:
    """How many groups with digits have the length of the first, and a last one that is shorter."""
    size, count = len(groups[at]), 1
    if size > SHORTEST or not _has_digit(groups[at]):
        return 1
    for number in range(at + 1, len(groups)):
        group = groups[number]
        if not _has_digit(group) or len(group) > size:
            break
        count += 1
        if len(group) < size:
            break
    return count


def _has_digit(group: str) -> bool:
    return any(map(str.isdigit, group))


def _url(value: str) -> tuple[Find, Forms]:
    """A whole address: scheme, host, port, path and query; its host's case does not count."""
    found = _split(value)
    if found is None or re.search(r"[\s\\]", value):
        return _urls, []
    scheme, rest = found
    schemes = {scheme, ""} if scheme in ("", "http", "https") else {scheme}
    if not scheme:
        schemes |= {"http", "https"}
    return _urls, [{f"{one}//{rest}" for one in schemes}]


def _urls(text: str) -> set[str]:
    found = (_split(url.rstrip(_TRAILING)) for url in _URL.findall(text))
    return {"//".join(url) for url in found if url is not None}


def _split(url: str) -> tuple[str, str] | None:
    """The scheme and the rest of an address, in their normal form."""
    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
        where = _where(parts)
    except ValueError:
        return None
    if not parts.hostname:
        return None
    path = posixpath.normpath(parts.path or "/").removesuffix("/")
    query = f"?{parts.query}" if parts.query else ""
    fragment = f"#{parts.fragment}" if parts.fragment else ""
    return parts.scheme, f"{where}{path}{query}{fragment}"


def _where(parts: SplitResult) -> str:
    user = parts.netloc.rpartition("@")[0]
    port = "" if parts.port in (None, _PORTS.get(parts.scheme)) else f":{parts.port}"
    host = (parts.hostname or "").rstrip(".")
    return (f"{user}@" if user else "") + host + port


def _host(value: str) -> tuple[Find, Forms]:
    """A host, with its port if it has one."""
    host = _host_in(value)
    return _hosts, [{host}] if host else []


def _hosts(text: str) -> set[str]:
    tokens = re.split(r"[\s,;]+", _MAIL.sub(" ", text))
    hosts = (_host_in(token.lstrip(_LEADING).rstrip(_TRAILING)) for token in tokens)
    return {host for host in hosts if host}


def _host_in(token: str) -> str | None:
    """The host of an address, or the host that a token is; `None` for anything else."""
    if "/" in token:
        try:
            parts = urlsplit(token if "://" in token else f"//{token}")
            token = _where(parts)
        except ValueError:
            return None
    host = token.casefold().rstrip(".")
    return host if _HOST.fullmatch(host) else None


def _path(value: str) -> tuple[Find, Forms]:
    """A path, without steps that lead nowhere; its case counts."""
    return _paths, [{_normal_path(value)}] if value else []


def _paths(text: str) -> set[str]:
    quoted = {_normal_path(span) for span in _spans(text)}
    tokens = (part.lstrip(_LEADING).rstrip(_TRAILING) for part in _QUOTED.sub(" ", text).split())
    return quoted | {_normal_path(token) for token in tokens if token}


def _normal_path(path: str) -> str:
    return re.sub("^//+", "/", posixpath.normpath(path.strip().replace("\\", "/")))


def _spans(text: str) -> Iterator[str]:
    """What stands between quotation marks or backticks."""
    for groups in _QUOTED.findall(text):
        yield next(filter(None, groups))


def _command(value: str) -> tuple[Find, Forms]:
    """A whole command: between quotation marks, in a line of its own, or after a colon."""
    return _commands, [{" ".join(value.split())}] if value else []


def _commands(text: str) -> set[str]:
    lines = [line.strip("` \t") for line in text.splitlines()]
    after = [line.partition(": ")[2] for line in lines if ": " in line]
    return {" ".join(found.split()) for found in (*_spans(text), *lines, *after) if found}


_KINDS: dict[str, Callable[[str], tuple[Find, Forms]]] = {
    "recipient": _recipient,
    "account": _account,
    "url": _url,
    "host": _host,
    "path": _path,
    "command": _command,
}
