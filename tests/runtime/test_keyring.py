"""The key ring: files that only their owner can read, secrets that never show."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from lace.errors import InvalidText, KeyUnavailable
from lace.records.keys import SigningKey, SigningSecret
from lace.runtime.identity.keyring import KeyRing, default_home

SECRET = "&.00420lG51WS82GdB30pE3m0H4XCK5HON61_Q6mlT7Xx.H3"
VERIFIER = "V.OEL2sxn4GhPnCm_bU7hnAPU0Q0gVS8KxFlNg3zfHT2O.H3"


@pytest.fixture
def ring(tmp_path: Path) -> KeyRing:
    return KeyRing(tmp_path / "home")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o000, 0o022])
def test_a_key_is_private_from_its_first_byte_whatever_the_umask(ring: KeyRing, mask: int) -> None:
    before = os.umask(mask)
    try:
        ring.add("me", SigningSecret.parse(SECRET))
    finally:
        os.umask(before)
    assert mode_of(ring.folder) == 0o700
    assert mode_of(ring.folder / "me.key") == 0o600


def test_a_kept_key_comes_back_by_name_and_by_verifier(ring: KeyRing) -> None:
    entry = ring.add("me", SigningSecret.parse(SECRET))
    ring.add("other", SigningSecret.generate())
    assert entry.verifier == VERIFIER
    assert ring.load("me").verifier == VERIFIER
    assert ring.load(VERIFIER).verifier == VERIFIER
    assert ring.load_secret("me").reveal() == SECRET
    assert [entry.name for entry in ring.entries()] == ["me", "other"]


def test_an_empty_ring_lists_nothing_and_creates_nothing(ring: KeyRing) -> None:
    assert list(ring.entries()) == []
    assert not ring.folder.exists()


def test_a_key_is_never_replaced(ring: KeyRing) -> None:
    ring.add("me", SigningSecret.parse(SECRET))
    with pytest.raises(KeyUnavailable, match="already"):
        ring.add("me", SigningSecret.generate())
    assert ring.load("me").verifier == VERIFIER


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o602])
def test_a_key_file_that_others_can_touch_is_refused_with_the_remedy(ring: KeyRing, mode: int) -> None:
    ring.add("me", SigningSecret.parse(SECRET))
    (ring.folder / "me.key").chmod(mode)
    with pytest.raises(KeyUnavailable, match=f"{mode:04o}") as caught:
        ring.load("me")
    assert any(f"chmod 600 {ring.folder / 'me.key'}" in note for note in caught.value.__notes__)


def test_a_folder_that_others_can_enter_is_refused(ring: KeyRing) -> None:
    ring.add("me", SigningSecret.parse(SECRET))
    ring.folder.chmod(0o755)
    with pytest.raises(KeyUnavailable, match="0755"):
        ring.load("me")
    with pytest.raises(KeyUnavailable, match="0755"):
        ring.add("you", SigningSecret.generate())


def test_a_symbolic_link_is_not_followed(ring: KeyRing, tmp_path: Path) -> None:
    ring.add("me", SigningSecret.parse(SECRET))
    (ring.folder / "alias.key").symlink_to(ring.folder / "me.key")
    with pytest.raises(KeyUnavailable, match="cannot be read"):
        ring.load("alias")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "nonsense",
        f"Secret: {SECRET}\n",
        f"Verifier: {VERIFIER}\nSecret: {SECRET[:-5]}\n",
        f"Verifier: {VERIFIER}\nSecret: {SECRET}\nMore: x\n",
        f"Verifier: {VERIFIER}\nSecret: {SECRET}\n" + "x" * 2000,
        f"Verifier: {SigningKey(bytes(31) + bytes([7])).verifier}\nSecret: {SECRET}\n",
    ],
    ids=["empty", "nonsense", "no-verifier", "cut-secret", "extra-line", "too-long", "wrong-verifier"],
)
def test_a_damaged_key_file_is_refused_without_showing_the_secret(ring: KeyRing, content: str) -> None:
    ring.add("me", SigningSecret.parse(SECRET))
    (ring.folder / "me.key").write_text(content)
    with pytest.raises(KeyUnavailable) as caught:
        ring.load("me")
    shown = f"{caught.value!r} {caught.value} {getattr(caught.value, '__notes__', [])} {caught.value.__cause__}"
    assert SECRET[2:20] not in shown


@pytest.mark.parametrize("name", ["", "../me", "a/b", ".hidden", "-x", "a" * 65, "ä", "me\n"])
def test_a_key_name_cannot_leave_the_folder(ring: KeyRing, name: str) -> None:
    with pytest.raises(InvalidText, match="key name"):
        ring.add(name, SigningSecret.parse(SECRET))
    assert not ring.folder.exists()


def test_a_secret_given_as_a_name_is_not_repeated(ring: KeyRing) -> None:
    with pytest.raises(InvalidText) as caught:
        ring.load(SECRET)
    assert SECRET not in str(caught.value)


def test_an_unknown_key_is_unavailable_with_a_hint(ring: KeyRing) -> None:
    with pytest.raises(KeyUnavailable, match="no key named 'me'") as caught:
        ring.load("me")
    assert "lace key new me" in caught.value.__notes__[0]
    with pytest.raises(KeyUnavailable, match="no key of the ring"):
        ring.load(VERIFIER)


def test_the_home_follows_the_environment() -> None:
    user = Path("/home/u")
    assert default_home({"LACE_HOME": "/x", "XDG_DATA_HOME": "/y"}, user) == Path("/x")
    assert default_home({"XDG_DATA_HOME": "/y"}, user) == Path("/y/lace")
    assert default_home({"XDG_DATA_HOME": "relative"}, user) == Path("/home/u/.local/share/lace")
    assert default_home({}, user) == Path("/home/u/.local/share/lace")
