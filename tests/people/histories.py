"""Random histories of five peers that are cut off from each other, restore old copies, rotate keys and forge.

Rule: what moves between peers is what the rules that travel select, nothing else. What should hold is worked out beside
the rules from the order in which things were done, not from what records say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from random import Random

from lace.people import forms
from lace.records.model import Plex, Seal
from lace.records.retraction import retract_all, retract_versions, withdraws
from lace.records.tip import JudgedVersion, TipPolicy, TipWriters, VersionState, judged, newest_first
from lace.records.validate import validate
from lace.records.write import encode_record
from people.world import (
    GROUP,
    Seen,
    admin,
    at,
    device,
    dismissed,
    hashes,
    invite,
    left,
    member,
    note,
    sealed,
    succession,
    v,
    withdrawn,
)

PEERS = ("anna", "bob", "carl", "dora", "eve")


@dataclass
class World:
    """Five peers, each with what it holds, and an admin's own order of events."""

    seed: int
    random: Random = field(init=False)
    held: dict[str, dict[str, Seal]] = field(default_factory=lambda: {name: {} for name in PEERS})
    second: int = 1
    out: set[str] = field(default_factory=set)  # keys that were put out last
    forged: list[Seal] = field(default_factory=list)  # signed by a key after it was put out, with any date
    stood: list[Seal] = field(default_factory=list)  # named when their key was put out
    copies: list[tuple[str, dict[str, Seal]]] = field(default_factory=list)
    lines: dict[str, list[str]] = field(default_factory=lambda: {name: [name] for name in PEERS})  # keys, oldest first
    named: dict[str, Seal] = field(default_factory=dict)  # the record to which the newest key of somebody committed
    invitations: dict[str, int] = field(default_factory=dict)
    offers: dict[frozenset[str], list[Seal]] = field(default_factory=dict)  # of those who hold the same records
    office: str = ""  # who besides anna is an admin now
    usurped: dict[str, tuple[str, Seal]] = field(default_factory=dict)  # keys that a dismissed admin let in afterwards

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        for name in PEERS[1:]:
            self.put("anna", member(name, "anna", self.tick()))
            self.commit(name, "anna")
            self.put("anna", device(f"{name}-phone", name, name, self.tick()))
        for name in PEERS:
            self.held[name] = dict(self.held["anna"])

    def tick(self) -> int:
        self.second += 1
        return self.second

    def commit(self, name: str, where: str) -> None:
        """The newest key of somebody commits to the next one."""
        key = self.lines[name][-1]
        commits, self.named[name] = succession(key, f"{name}-{len(self.lines[name])}", self.tick())
        self.put(where, commits)

    def put(self, where: str, record: Seal) -> Seal:
        self.held[where][record.hash] = record
        return record

    def meet(self, one: str, other: str) -> None:
        """An exchange between two peers: each takes what the rules of both select, until nothing moves."""
        for _ in range(12):
            offers = [self.offered(name) for name in (one, other)]
            moved = False
            for into, offer in ((one, offers[1]), (other, offers[0])):
                lacking = [record for record in offer if record.hash not in self.held[into]]
                if lacking:
                    seen = Seen(self.held[into].values(), travels=True, offered=lacking)
                    wanted = {row[0] for row in seen.rows("SelectAdvertised", 2)}
                    taken = {record.hash: record for record in lacking if record.hash in wanted}
                    self.held[into] |= taken
                    moved = moved or bool(taken)
            if not moved:
                return
        raise AssertionError("two peers do not come to an end")

    def offered(self, name: str) -> list[Seal]:
        """What a peer's rules select of what it has; worked out once for all who hold the same records."""
        held = frozenset(self.held[name])
        if held not in self.offers:
            seen = Seen(self.held[name].values(), travels=True)
            self.offers[held] = [self.held[name][row[0]] for row in seen.rows("SelectHave", 1)]
        return self.offers[held]

    # what happens

    def leave(self) -> None:
        name = self.random.choice([n for n in PEERS[1:] if n not in self.out and n != self.office] or ["bob"])
        if name == self.office:
            return  # an admin does not leave before that ends
        for one in (*self.lines[name], f"{name}-phone"):
            seen = Seen(self.held["anna"].values())
            stands = [r for r in self.held["anna"].values() if r.signed_by == v(one) and seen.counts(r)]
            stands = [r for r in stands if r.plex.app == "notes"]
            self.put("anna", left(one, "anna", self.tick(), *stands))
            self.stood += stands
            self.out.add(one)

    def rejoin(self) -> None:
        gone = [name for name in PEERS[1:] if name in self.out]
        if gone:
            key = self.lines[self.random.choice(gone)][-1]
            back = self.put("anna", member(key, "anna", self.tick()))
            self.out.discard(key)
            # What was dated ahead by then counts: a time is its author's claim, and they may write from now on.
            self.forged = [record for record in self.forged if record.plex.tai < back.plex.tai]

    def lose_device(self) -> None:
        name = self.random.choice(PEERS[1:])
        phone = f"{name}-phone"
        if phone in self.out:
            return
        seen = Seen(self.held["anna"].values())
        stands = [r for r in self.held["anna"].values() if r.signed_by == v(phone) and seen.counts(r)]
        self.put("anna", left(phone, "anna", self.tick(), *stands))
        self.stood += stands
        self.out.add(phone)

    def rotate(self) -> None:
        """Somebody puts the successor in the place of a key, twice at most; an admin stays one."""
        may = [name for name in PEERS[1:] if name not in self.out and len(self.lines[name]) < 3]
        name = self.random.choice(may or [""])
        if name:
            key, following = self.lines[name][-1], f"{name}-{len(self.lines[name])}"
            said = [record for record in self.held[name].values() if record.signed_by == v(key)]
            mine = [record for record in said if record.plex.app in ("notes", "device", "left")]
            self.put(name, self.named[name])
            (plex,) = forms.left(GROUP, v(key), at(self.tick()), hashes(mine))
            self.put(name, sealed(plex, following))
            if name == self.office:
                orders = [record for record in said if record.plex.app in ("member", "admin")]
                self.put(name, dismissed(key, following, self.tick(), *orders))
            self.lines[name].append(following)
            self.commit(name, name)

    def write(self) -> None:
        name = self.random.choice(PEERS)
        signer = self.random.choice((self.lines[name][-1], f"{name}-phone"))
        self.put(name, note(signer, self.tick(), f"n{self.second}"))

    def retract(self) -> None:
        """Somebody withdraws a name, one version of it, or a retraction; who was put out tries it as well."""
        name = self.random.choice(PEERS)
        notes = [record for record in self.held[name].values() if record.plex.app == "notes"]
        if not notes:
            return
        aim = self.random.choice(notes)
        said = retract_all() if self.random.random() < 0.5 else retract_versions([aim.hash])
        plex = Plex(group=GROUP, app="notes", name=aim.plex.name, tai=at(self.tick()), headers=said)
        record = self.put(name, sealed(plex, self.lines[name][-1]))
        if self.lines[name][-1] in self.out:
            self.forged.append(record)

    def rewrite(self) -> None:
        """A version of a name that others write as well."""
        name = self.random.choice(PEERS)
        self.put(name, note(self.lines[name][-1], self.tick(), self.random.choice(("shared", "common"))))

    def appoint(self) -> None:
        """Anna makes somebody an admin, who lets a guest in."""
        free = [one for one in PEERS[1:] if one not in self.out]
        if self.office or not free:
            return
        self.office = self.random.choice(free)
        # Who is an admin again is trusted again, with all that they signed.
        for usurped, (by, written) in list(self.usurped.items()):
            if by == self.office:
                del self.usurped[usurped]
                self.forged = [record for record in self.forged if record is not written]
        named = self.random.choice(self.lines[self.office])  # the office is the person's, whichever key is named
        self.put("anna", admin(named, "anna", self.tick()))
        self.meet("anna", self.office)
        self.put(self.office, member(f"visitor{self.second}", self.lines[self.office][-1], self.tick()))

    def dismiss(self) -> None:
        """Anna takes the office back and says what stands; the former admin goes on as if nothing had happened."""
        former, self.office = self.office, ""
        if not former:
            return
        self.meet("anna", former)
        seen = Seen(self.held["anna"].values())
        words = ("ByAdmin", 1), ("AdminIn", 4), ("AdminOut", 4)
        orders = {row[0] for name, arity in words for row in seen.rows(name, arity)}
        key = self.lines[former][-1]
        stands = [r for r in self.held["anna"].values() if r.signed_by == v(key) and r.hash in orders]
        self.put("anna", dismissed(key, "anna", self.tick(), *stands))
        usurped = f"usurper{self.second}"
        when = self.random.randrange(1, self.second + 2)
        self.put(former, member(usurped, key, when))
        self.put(former, admin(usurped, key, when))
        self.forged.append(self.put(former, note(usurped, when, "by whom nobody let in")))
        self.usurped[usurped] = former, self.forged[-1]

    def forge(self) -> None:
        """A key that was put out writes on, with any date, and lets itself in every way it can."""
        gone = sorted(self.out)
        if not gone:
            return
        name = self.random.choice(gone)
        where = self.random.choice(PEERS[1:])
        when = self.random.randrange(1, self.second + 5)
        self.second += 1
        junk = note(name, when, f"junk{self.second}")
        self.forged.append(self.put(where, junk))
        self.put(where, member(name, name, self.tick()))
        self.put(where, left(name, name, self.tick(), junk))
        self.put(where, device(f"{name}-x{self.second}", name, name, when))
        self.forged.append(self.put(where, note(f"{name}-x{self.second}", when, "by a forged device")))
        commits, named = succession(name, f"{name}-thief", when)
        self.put(where, commits)
        self.put(where, named)
        self.forged.append(self.put(where, note(f"{name}-thief", when, f"stolen{self.second}")))

    def invite(self) -> None:
        one_time = f"once{self.second}"
        uses = self.random.randrange(1, 3)
        self.invitations[one_time] = uses
        begun = self.tick()
        self.put("anna", invite(one_time, "anna", begun, until=begun + 100_000, uses=uses))
        for number in range(self.random.randrange(4)):
            where = self.random.choice(PEERS)
            self.put(where, member(f"guest{begun}-{number}", one_time, self.random.randrange(begun, self.second + 3)))
        if self.random.random() < 0.3:
            counted = [r for r in self.held["anna"].values() if r.signed_by == v(one_time)][:uses]
            self.put("anna", withdrawn(one_time, "anna", self.tick(), *counted))

    def copy(self) -> None:
        name = self.random.choice(PEERS)
        self.copies.append((name, dict(self.held[name])))

    def restore(self) -> None:
        """An old copy comes back: what its owner alone had written since is gone, all else has to come again."""
        if self.copies:
            name, kept = self.random.choice(self.copies)
            if name != "anna":  # her own decisions live in her lace; a backup of hers that was lost is another story
                self.held[name] = dict(kept)

    def some_meet(self) -> None:
        cut = self.random.sample(PEERS, 2)
        self.meet(*cut)

    def go(self, steps: int) -> None:
        moves = [
            (self.leave, 1), (self.rejoin, 1), (self.lose_device, 1), (self.rotate, 1), (self.write, 4),
            (self.forge, 2), (self.invite, 1), (self.copy, 1), (self.restore, 1), (self.some_meet, 4),
            (self.retract, 3), (self.rewrite, 3), (self.appoint, 1), (self.dismiss, 1),
        ]  # fmt: skip
        for _ in range(steps):
            (move,) = self.random.choices([one for one, _ in moves], [weight for _, weight in moves])
            move()

    def settle(self) -> None:
        """The network heals: everybody meets until nothing moves."""
        for _ in range(8):
            before = [len(one) for one in self.held.values()]
            for name in PEERS[1:]:
                self.meet("anna", name)
            if before == [len(one) for one in self.held.values()]:
                return
        raise AssertionError("five peers do not come to an end")


@dataclass(frozen=True)
class Version:
    """A record as tips are chosen by."""

    hash: str
    tai: str
    group: str
    app: str
    signer: str | None
    withdraws: tuple[str, ...]


@lru_cache(maxsize=100_000)
def version_of(record: Seal) -> Version:
    read = validate(encode_record(record), verify_signature=False)
    return Version(record.hash, record.plex.tai, GROUP, record.plex.app, record.signed_by, withdraws(read))


def tips(held: Iterable[Seal], seen: Seen) -> dict[str, list[JudgedVersion[Version]]]:
    """What each version of each note counts for, where members move the tips."""
    since: dict[str, str] = {}
    for who, start in seen.rows("Author", 2):
        since[who] = min(start, since.get(who, start))
    standing = frozenset((row[0], row[1]) for row in seen.rows("Standing", 2))
    policy = TipPolicy(writers=(TipWriters(group=GROUP, since=since, standing=standing),))
    named: dict[str, list[Version]] = {}
    for record in held:
        if record.plex.app == "notes":
            named.setdefault(record.plex.name, []).append(version_of(record))
    return {name: list(judged(newest_first(versions), policy)) for name, versions in named.items()}


def counting(judged_versions: Iterable[JudgedVersion[Version]]) -> list[tuple[str, str, str]]:
    """Those that stand, retract or are withdrawn, and by what: those that are barred count nowhere."""
    barred = (VersionState.BARRED, VersionState.AHEAD)
    return [(one.version.hash, one.state, one.by.hash if one.by else "") for one in judged_versions
            if one.state not in barred]  # fmt: skip


def defined_tip(world: World, versions: list[tuple[str, str, str]]) -> list[str]:
    """The tip by the words of 081: the newest version that no newer one that counts withdraws."""
    records = sorted((version_of(world.held["anna"][one[0]]) for one in versions), key=lambda one: (one.tai, one.hash))
    said: list[tuple[str, ...]] = []
    for one in reversed(records):
        if any("all" in words or one.hash in words for words in said):
            continue
        if not one.withdraws:
            return [one.hash]
        said.append(one.withdraws)
    return []
