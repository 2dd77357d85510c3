"""The key ring: signing keys as files that only their owner can read (009).

Rule: a secret leaves this module only inside a SigningKey or SigningSecret. A key file is created with mode 0600 from
its first byte, never replaced, and refused when group or others could read it. No error here ever holds a secret. A key
may be locked by a passphrase; the caller that opens the ring says how to ask for it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from lace.errors import InvalidText, KeyUnavailable, excerpt
from lace.notation.identifiers import Verifier
from lace.records.keys import SigningKey, SigningSecret
from lace.runtime.identity.passphrase import Ask, Sealed
from lace.values import dataclass

KEY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
SUFFIX = ".key"
BACKED_UP = ".backed-up"  # an empty file beside a key of which a backup was made
OTHERS = stat.S_IRWXG | stat.S_IRWXO
MAX_KEY_FILE_BYTES = 1024
PASSPHRASE_FILE = "LACE_PASSPHRASE_FILE"  # noqa: S105 - a name, not a secret


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
    is_locked: bool = False


class KeyRing:
    """The keys under one folder; nothing is created before a key is."""

    def __init__(self, home: Path, ask: Ask | None = None) -> None:
        self.folder: Path = home / "keys"
        self._ask = ask or passphrase_of_file

    @classmethod
    def of_user(cls, ask: Ask | None = None) -> KeyRing:
        """The ring of the user who runs this process; `ask` gives the passphrase of a locked key."""
        return cls(default_home(os.environ, Path.home()), ask)

    def add(self, name: str, secret: SigningSecret, passphrase: str | None = None) -> KeyEntry:
        """Keep a key under a name that is free, locked if there is a passphrase."""
        path = self._path(name)
        verifier = SigningKey.from_secret(secret).verifier
        self._make_folder()
        kept = f"Secret: {secret.reveal()}"
        if passphrase is not None:
            kept = f"Locked: {Sealed.make(secret.material(), passphrase)}"
        self._write(path, name, f"Verifier: {verifier}\n{kept}\n")
        return KeyEntry(name, verifier, passphrase is not None)

    def lock(self, name: str, passphrase: str | None) -> KeyEntry:
        """Put a key under another passphrase, or under none."""
        secret = self.load_secret(name)
        path = self._path(name)
        aside = path.with_suffix(".new")
        aside.unlink(missing_ok=True)
        kept = f"Secret: {secret.reveal()}"
        if passphrase is not None:
            kept = f"Locked: {Sealed.make(secret.material(), passphrase)}"
        verifier = SigningKey.from_secret(secret).verifier
        self._write(aside, name, f"Verifier: {verifier}\n{kept}\n")
        aside.replace(path)  # whole or not at all; the file it replaces held the same key
        return KeyEntry(name, verifier, passphrase is not None)

    @staticmethod
    def _write(path: Path, name: str, text: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            descriptor = os.open(path, flags, 0o600)
        except FileExistsError:
            raise KeyUnavailable(f"there is a key named {name!r} already; keys are never replaced") from None
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())

    def entries(self) -> Iterator[KeyEntry]:
        """Every key by name; one that cannot be used raises as `load` would."""
        if not self.folder.is_dir():
            return
        for path in sorted(self.folder.glob(f"*{SUFFIX}")):
            yield self.entry(path.name.removesuffix(SUFFIX))

    def entry(self, name: str) -> KeyEntry:
        """A key as it may be shown; what a locked file says of its verifier is checked when it is opened."""
        found = self._read(name)
        return KeyEntry(name, found.verifier, found.secret is None)

    def has(self, name: str) -> bool:
        """Whether there is a key of this name, usable or not."""
        return KEY_NAME.fullmatch(name) is not None and (self.folder / f"{name}{SUFFIX}").exists()

    def verifier(self, word: str) -> Verifier:
        """The verifier that a word is, or that of the key of this name; no secret is needed. Else KeyUnavailable."""
        if word.startswith("V."):
            return Verifier.parse(word)
        if self.has(word):
            return self.entry(word).verifier
        from lace.policy.lint import nearest  # only who mistyped needs it

        error = KeyUnavailable(f"{excerpt(word)} is neither a verifier (V.….H3) nor the name of a key of the ring")
        names = [path.name.removesuffix(SUFFIX) for path in self.folder.glob(f"*{SUFFIX}")]
        error.add_note(nearest(word, names) or "`lace key list` shows the names")
        raise error

    def own(self, word: str) -> Verifier:
        """The verifier of a key of this ring, by its name or verifier; no secret is needed. Else KeyUnavailable."""
        if not word.startswith("V."):
            return self.entry(word).verifier
        verifier = Verifier.parse(word)
        if all(entry.verifier != verifier for entry in self.entries()):
            raise KeyUnavailable(f"no key of the ring {self.folder} has the verifier {verifier}")
        return verifier

    def named(self, name_or_verifier: str) -> str:
        """The name under which a key is kept, by its name or verifier."""
        if not name_or_verifier.startswith("V."):
            return name_or_verifier
        verifier = self.own(name_or_verifier)
        return next(entry.name for entry in self.entries() if entry.verifier == verifier)

    def require_free(self, name: str) -> None:
        """KeyUnavailable if there is a key of this name."""
        if self._path(name).exists():
            raise KeyUnavailable(f"there is a key named {name!r} already; keys are never replaced")

    def rename(self, name: str, new_name: str) -> KeyEntry:
        """Keep a key under another name that is free."""
        found, path, target = self._read(name), self._path(name), self._path(new_name)
        try:
            os.link(path, target, follow_symlinks=False)  # refuses to replace one, as no rename does
        except FileExistsError:
            raise KeyUnavailable(f"there is a key named {new_name!r} already; keys are never replaced") from None
        path.unlink()
        with suppress(FileNotFoundError):
            path.with_suffix(BACKED_UP).rename(target.with_suffix(BACKED_UP))
        return KeyEntry(new_name, found.verifier, found.secret is None)

    def remove(self, name: str) -> None:
        """Remove the file of a key, usable or not."""
        self.verifier_in_file(name)
        self._path(name).unlink()
        self._path(name).with_suffix(BACKED_UP).unlink(missing_ok=True)

    def verifier_in_file(self, name: str) -> Verifier | None:
        """The verifier of a key; None if its file cannot be used. KeyUnavailable if there is none."""
        if not self.has(name):
            return self.entry(name).verifier  # says that there is none
        try:
            return self.entry(name).verifier
        except KeyUnavailable:
            return None

    def note_backup(self, name: str) -> None:
        """Remember that a backup of a key was made."""
        with suppress(OSError):  # a ring that can only be read
            self._path(name).with_suffix(BACKED_UP).touch(0o600)

    def has_backup(self, name: str) -> bool:
        """Whether a backup of a key was ever made here, or the key was made from one."""
        return self._path(name).with_suffix(BACKED_UP).exists()

    def load(self, name_or_verifier: str) -> SigningKey:
        """The key of that name, or the one whose verifier that is."""
        return SigningKey.from_secret(self.load_secret(name_or_verifier))

    def load_secret(self, name_or_verifier: str) -> SigningSecret:
        """The secret behind `load`, for one who asked to see it."""
        if name_or_verifier.startswith("V."):
            return self._secret_of(Verifier.parse(name_or_verifier))
        found = self._read(name_or_verifier)
        return found.secret if found.secret is not None else self._unlock(name_or_verifier, found)

    def _read(self, name: str) -> _StoredKey:
        path = self._path(name)
        with _private_file(path) as descriptor:
            return _parse_key_file(os.read(descriptor, MAX_KEY_FILE_BYTES + 1), path)

    def _unlock(self, name: str, found: _StoredKey) -> SigningSecret:
        assert found.sealed is not None
        material = found.sealed.open(self._ask(name))
        if material is None:
            raise KeyUnavailable(f"that is not the passphrase of the key {name!r}")
        secret = SigningSecret(material)
        if SigningKey.from_secret(secret).verifier != found.verifier:
            raise KeyUnavailable(f"the key file of {name!r}: the verifier beside the secret is not the secret's own")
        return secret

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


@dataclass(frozen=True, slots=True)
class _StoredKey:
    """What a key file holds: a secret, plain or locked."""

    verifier: Verifier
    secret: SigningSecret | None
    sealed: Sealed | None


def _parse_key_file(data: bytes, path: Path) -> _StoredKey:
    lines = dict(line.split(": ", 1) for line in data.decode("ascii", "replace").splitlines() if ": " in line)
    problem = f"{path} is not a key file that lace wrote"
    if len(data) > MAX_KEY_FILE_BYTES or set(lines) not in ({"Verifier", "Secret"}, {"Verifier", "Locked"}):
        raise KeyUnavailable(problem)
    try:
        verifier = Verifier.parse(lines["Verifier"])
        if "Locked" in lines:
            return _StoredKey(verifier, None, Sealed.parse(lines["Locked"]))
        secret = SigningSecret.parse(lines["Secret"])
    except InvalidText:
        raise KeyUnavailable(problem) from None
    if SigningKey.from_secret(secret).verifier != verifier:
        raise KeyUnavailable(f"{path}: the verifier beside the secret is not the secret's own")
    return _StoredKey(verifier, secret, None)


def passphrase_of_file(name: str) -> str:
    """The first line of the file that $LACE_PASSPHRASE_FILE names: for services, which nobody can ask."""
    path = os.environ.get(PASSPHRASE_FILE)
    if not path:
        error = KeyUnavailable(f"the key {name!r} is locked, and there is nobody to ask for its passphrase")
        error.add_note(f"run it on a terminal, or name a file that holds the passphrase in ${PASSPHRASE_FILE}")
        raise error
    try:
        with open(path, encoding="utf-8") as file:
            return file.readline().rstrip("\n")
    except (OSError, UnicodeDecodeError):
        raise KeyUnavailable(f"the passphrase file {path} cannot be read") from None


def _safe_name(name: str) -> str:
    """A wrong key name as an error may quote it: a secret given by mistake is not repeated."""
    return "text that looks like a secret" if name.startswith("&") else repr(name[:80])
