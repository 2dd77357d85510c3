"""`lace.toml`: what it may say, and how a mistake in it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from lace.cli.options.nodefile import read_node_file
from lace.errors import InvalidText
from lace.iltp.address import TcpAddress, UnixAddress, WebSocketAddress

WHOLE = """
store = "notes.lace"
listen = ["unix:/run/lace.sock", "tcp:127.0.0.1"]
select = ["//u//", "rules"]
expose = ["selected"]
key = "me"
trust = ["V.OEL2sxn4GhPnCm_bU7hnAPU0Q0gVS8KxFlNg3zfHT2O.H3"]
certificate = "cert.pem"
certificate_key = "key.pem"
names = ["ws:notes.example.com"]
metrics_port = 9464
log = "json"
unix_mode = "660"

[uids]
1000 = "V.OEL2sxn4GhPnCm_bU7hnAPU0Q0gVS8KxFlNg3zfHT2O.H3"

[limits]
max_links = 7
store_poll_s = 0.5

[[peer]]
address = "wss:other.example.com"
select = ["//u//ding//"]
pin = "x"
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "lace.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_everything_that_a_file_may_say(tmp_path: Path) -> None:
    (tmp_path / "rules").write_text("")
    file = read_node_file(write(tmp_path, WHOLE))
    assert file.store == tmp_path / "notes.lace"
    assert file.listen == [UnixAddress("/run/lace.sock"), TcpAddress("127.0.0.1", 4790)]
    assert file.policy.select == ["//u//", str(tmp_path / "rules")]
    assert (file.key, file.log, file.metrics_port, file.unix_mode) == ("me", "json", 9464, 0o660)
    assert file.certificate == tmp_path / "cert.pem"
    assert file.names == [WebSocketAddress("notes.example.com", 80)]
    assert list(file.uids) == [1000]
    assert (file.node_limits().max_links, file.node_limits().store_poll_s) == (7, 0.5)
    assert file.peers[0].address == WebSocketAddress("other.example.com", 443, secure=True)
    assert file.peers[0].policy.select == ["//u//ding//"]


@pytest.mark.parametrize(
    "text, place",
    [
        ("", "store"),
        ("store = 1", "store"),
        ('store = "x"\nlisten = "tcp:h"', "listen"),
        ('store = "x"\nlisten = ["http:h"]', "listen"),
        ('store = "x"\nlisten = [1]', "listen"),
        ('store = "x"\nport = 1', "port"),
        ('store = "x"\nlog = "xml"', "log"),
        ('store = "x"\nmetrics_port = true', "metrics_port"),
        ('store = "x"\nunix_mode = "999"', "unix_mode"),
        ('store = "x"\ncertificate = "c"', "certificate"),
        ('store = "x"\n[uids]\nroot = "V"', "uids"),
        ('store = "x"\n[limits]\nmax_cake = 1', "limits.max_cake"),
        ('store = "x"\n[limits]\nmax_links = 0', "limits.max_links"),
        ('store = "x"\n[limits]\nmax_links = 1.5', "limits.max_links"),
        ('store = "x"\n[[peer]]\nselect = []', "peer 1: address"),
        ('store = "x"\n[[peer]]\naddress = "tcp:h"\ncake = 1', "peer 1: cake"),
        ("store = ", "lace.toml"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, place: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidText) as refusal:
        read_node_file(write(tmp_path, text))
    assert place in refusal.value.place
