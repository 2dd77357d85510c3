"""Write tests/vectors/retraction.json again: what retractions mean, as records and the state of each.

usage: .venv/bin/python tests/retraction/make_vectors.py
"""

from __future__ import annotations

import json
from pathlib import Path

from lace.notation.tai import TAI
from lace.records.keys import SigningKey
from lace.records.model import Blob, Header, Plex, Seal
from lace.records.write import encode_record

TARGET = Path(__file__).parents[1] / "vectors" / "retraction.json"
ANN, BOB = (SigningKey(bytes(31) + bytes([number])) for number in (5, 7))
UNTIL = "1700000100:000000000"


def version(seconds: int, *headers: Header, data: bytes = b"", by: SigningKey | None = None) -> Plex | Seal:
    """A version of //club//notes//meet."""
    tai = TAI(f"{1_700_000_000 + seconds:010d}:000000000")
    plex = Plex(group="club", app="notes", name="meet", tai=tai, headers=headers, blob=Blob(data))
    return by.seal(plex, aux=bytes([1]) * 32) if by else plex


def names(record: Plex | Seal, word: str = "version") -> Header:
    return "Retract+Link", f"{word} {record.hash}"


ALL: Header = ("Retract", "all")


def worlds() -> dict[str, dict[str, tuple[Plex | Seal, str, str | None]]]:
    """By world and label: a version, what it counts for, and the label of what withdraws it. Expected by hand."""
    old, new = version(1, data=b"at 9", by=ANN), version(2, data=b"at 10")
    gone = version(3, ALL, by=ANN)
    one = version(3, names(new), by=BOB)
    undo_gone, undo_one = version(4, names(gone), by=BOB), version(4, names(one))
    older_one = version(0, names(new))
    elsewhere = Plex(group="club", app="notes", name="other", tai=TAI("1700000001:000000000"), blob=Blob(b"else"))
    tie = sorted((version(2, ALL), new), key=lambda record: record.hash)
    stand, retract, withdrawn, ahead = "stands", "retracts", "withdrawn", "ahead"
    return {
        "all is withdrawn": {
            "old": (old, withdrawn, "gone"), "new": (new, withdrawn, "gone"), "gone": (gone, retract, None),
        },
        "one version is withdrawn": {
            "old": (old, stand, None), "new": (new, withdrawn, "one"), "one": (one, retract, None),
        },
        "put again": {
            "old": (old, withdrawn, "gone"), "gone": (gone, retract, None),
            "again": (version(5, data=b"at 10", by=ANN), stand, None),
        },
        "a retraction of all is taken back, one of a version stays": {
            "old": (old, stand, None), "new": (new, withdrawn, "one"), "one": (one, retract, None),
            "gone": (gone, withdrawn, "undo"), "undo": (undo_gone, retract, None),
        },
        "taking back is taken back": {
            "old": (old, stand, None), "new": (new, withdrawn, "one"), "one": (one, retract, None),
            "undo": (undo_one, withdrawn, "redo"), "redo": (version(5, names(undo_one)), retract, None),
        },
        "dated beyond the horizon it withdraws nothing": {
            "old": (old, stand, None), "late": (version(200, ALL), ahead, None),
            "late one": (version(201, names(old)), ahead, None),
        },
        "it withdraws nothing that is newer": {"new": (new, stand, None), "before": (older_one, retract, None)},
        "of one instant the higher hash is the newer": (
            {"put": (new, stand, None), "all": (tie[0], retract, None)} if tie[1] is new
            else {"put": (new, withdrawn, "all"), "all": (tie[1], retract, None)}
        ),
        "several, one of them at another coordinate": {
            "old": (old, withdrawn, "both"), "new": (new, withdrawn, "both"),
            "both": (version(3, names(old), names(new), names(elsewhere)), retract, None),
        },
        "all with a link beside it": {
            "old": (old, withdrawn, "both"), "both": (version(3, ALL, names(new)), retract, None),
            "new": (new, withdrawn, "both"),
        },
        "it withdraws nothing": {
            "old": (old, stand, None),
            "data": (version(10, ALL, data=b"x"), stand, None),
            "word": (version(11, ("Retract", "ALL")), stand, None),
            "other link": (version(12, names(old, "supersedes")), stand, None),
            "no link": (version(13, ("Retract+Link", f"version{old.hash}")), stand, None),
            "blob": (version(14, ("Retract+Link", f"version {old.plex.blob.hash}")), stand, None),
            "plain link": (version(15, ("+Link", f"version {old.hash}")), stand, None),
            "data and link": (version(16, names(old), data=b"x"), stand, None),
        },
        "the Plex in a Seal is another version": {
            "plex": (old.plex, stand, None), "seal": (old, withdrawn, "one"),
            "one": (version(3, names(old)), retract, None),
        },
    }  # fmt: skip


def main() -> None:
    found = {
        name: {
            label: {"stored": encode_record(record).decode(), "hash": record.hash, "state": state, "by": by}
            for label, (record, state, by) in world.items()
        }
        for name, world in worlds().items()
    }
    for world in found.values():
        ordered = sorted(world.values(), key=lambda one: (one["stored"].split("\nTAI: ")[1][:20], one["hash"]))
        world["tip"] = next((one["hash"] for one in reversed(ordered) if one["state"] == "stands"), None)  # type: ignore[assignment]
    said = {"source": "computed by this project from docs/spec/081-retraction.md", "until": UNTIL, "worlds": found}
    TARGET.write_text(json.dumps(said, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
