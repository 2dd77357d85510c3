"""The key ring: signing keys as files that only their owner can read (009).

Rule: a secret leaves this module only inside a SigningKey or SigningSecret. A key file is created with mode 0600 from
its first byte, never replaced, and refused when group or others could read it. No error here ever holds a secret.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lace.errors import InvalidText, KeyUnavailable
from lace.notation.identifiers import Verifier
from lace.records.keys import SigningKey, SigningSecret

KEY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
SUFFIX = ".key"
OTHERS = stat.S_IRWXG | stat.S_IRWXO
MAX_KEY_FILE_BYTES = 1024


def default_home(environment: Mapping[str, str], user_home: Path) -> Path:
    """Where Lace keeps what belongs to a user: $LACE_HOME, else the XDG data folder."""
    if environment.get("LACE_HOME"):
        return Path(environment["LACE_HOME"])
    data = environment.get("XDG_DATA_HOME", "")
    return (Path(data) if os.path.isabs(data) else user_home / ".local" / "share") / "lace"


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A key of the ring as it may be shown: no secret."""

    name: str
    verifier: Verifier


class KeyRing:
    """The keys under one folder; nothing is created before a key is."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "keys"

    @classmethod
    def of_user(cls) -> KeyRing:
        """The ring of whoever runs this process."""
        return cls(default_home(os.environ, Path.home()))

    def add(self, name: str, secret: SigningSecret) -> KeyEntry:
        """Keep a key under a name that is free."""
        path = self._path(name)
        verifier = SigningKey.from_secret(secret).verifier
        self._make_folder()
        text = f"Verifier: {verifier}\nSecret: {secret.reveal()}\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            descriptor = os.open(path, flags, 0o600)
        except FileExistsError:
            raise KeyUnavailable(f"there is a key named {name!r} already; keys are never replaced") from None
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        return KeyEntry(name, verifier)

    def entries(self) -> Iterator[KeyEntry]:
        """Every key by name; one that cannot be used raises as `load` would."""
        if not self.folder.is_dir():
            return
        for path in sorted(self.folder.glob(f"*{SUFFIX}")):
            name = path.name.removesuffix(SUFFIX)
            yield KeyEntry(name, self.load(name).verifier)

    def load(self, name_or_verifier: str) -> SigningKey:
        """The key of that name, or the one whose verifier that is."""
        return SigningKey.from_secret(self.load_secret(name_or_verifier))

    def load_secret(self, name_or_verifier: str) -> SigningSecret:
        """The secret behind `load`, for one who asked to see it."""
        if name_or_verifier.startswith("V."):
            return self._secret_of(Verifier.parse(name_or_verifier))
        path = self._path(name_or_verifier)
        with _private_file(path) as descriptor:
            return _parse_key_file(os.read(descriptor, MAX_KEY_FILE_BYTES + 1), path)

    def _secret_of(self, verifier: Verifier) -> SigningSecret:
        for entry in self.entries():
            if entry.verifier == verifier:
                return self.load_secret(entry.name)
        raise KeyUnavailable(f"no key of the ring {self.folder} has the verifier {verifier}")

    def _path(self, name: str) -> Path:
        if KEY_NAME.fullmatch(name) is None:
            raise InvalidText(
                "a key name is 1 to 64 letters, digits, dots, dashes or underscores and begins with a letter or digit",
                rule="key-name",
                found=_safe_name(name),
            )
        return self.folder / (name + SUFFIX)

    def _make_folder(self) -> None:
        self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self.folder.mkdir(mode=0o700)
        except FileExistsError:
            _require_private(self.folder, self.folder.stat())


@contextmanager
def _private_file(path: Path) -> Iterator[int]:
    """A descriptor of a file that is ours and closed to everybody else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        error = KeyUnavailable(f"there is no key named {path.name.removesuffix(SUFFIX)!r} in {path.parent}")
        error.add_note(f"`lace key list` shows the keys, `lace key new {path.name.removesuffix(SUFFIX)}` makes one")
        raise error from None
    except OSError as problem:
        raise KeyUnavailable(f"the key file {path} cannot be read: {problem.strerror}") from None
    try:
        _require_private(path.parent, path.parent.stat())
        _require_private(path, os.fstat(descriptor))
        yield descriptor
    finally:
        os.close(descriptor)


def _require_private(path: Path, status: os.stat_result) -> None:
    """Raise unless we own it and nobody else may touch it."""
    if status.st_uid != os.geteuid():
        raise KeyUnavailable(f"{path} belongs to somebody else, so its keys are not used")
    if status.st_mode & OTHERS:
        mode = stat.S_IMODE(status.st_mode)
        error = KeyUnavailable(f"{path} can be reached by other users (mode {mode:04o}), so its keys are not used")
        wanted = "700" if stat.S_ISDIR(status.st_mode) else "600"
        error.add_note(f"chmod {wanted} {path}    (and think about who may have read it)")
        raise error


def _parse_key_file(data: bytes, path: Path) -> SigningSecret:
    lines = dict(line.split(": ", 1) for line in data.decode("ascii", "replace").splitlines() if ": " in line)
    problem = f"{path} is not a key file that lace wrote"
    if len(data) > MAX_KEY_FILE_BYTES or set(lines) != {"Verifier", "Secret"}:
        raise KeyUnavailable(problem)
    try:
        secret = SigningSecret.parse(lines["Secret"])
    except InvalidText:
        raise KeyUnavailable(problem) from None
    if SigningKey.from_secret(secret).verifier != lines["Verifier"]:
        raise KeyUnavailable(f"{path}: the verifier beside the secret is not the secret's own")
    return secret


def _safe_name(name: str) -> str:
    """A wrong key name as an error may quote it: a secret given by mistake is not repeated."""
    return "text that looks like a secret" if name.startswith("&") else repr(name[:80])
