"""Communities as people have them: laces with a policy, members who come, leave and come back, keys that are lost.

Rule: a community is a function of its seed. Everything is done by the verbs that a program or the `lace` command uses;
what must then be true is said in `sharing.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import monotonic_ns

import lace
from lace.errors import LaceError
from lace.folder.engine import FolderLimits
from lace.folder.setup import FolderSettings, opened_folder, parse_place, write_settings
from lace.limits import KIB, SECOND_NS, RecordLimits
from lace.notation.tai import TAI
from lace.people.forms import Role
from lace.people.kinds import PolicyKind
from lace.people.root import Root, pin_root
from lace.people.wording import TemplateWords, fill_words
from lace.porcelain.exchange import interlace
from lace.porcelain.invitations import accept, invite, withdraw
from lace.porcelain.lace import Lace
from lace.porcelain.membership import (
    add_device,
    admit,
    appoint,
    dismiss,
    put_out,
    readmit,
    replace_key,
    roster,
)
from lace.porcelain.policy import people_exposure, people_selector, policy_texts, set_policy
from lace.porcelain.rotation import Successors, commit_successor, rotate
from lace.records.keys import SigningKey, SigningSecret
from lace.runtime.identity.keyring import KeyRing

GROUP = "club"
APPS = ("notes", "photos")
NAMES = ("a", "b", "b/c")
FOLDER_PLACE = f"//{GROUP}//notes//files"
BEGAN_S = 1_790_000_000
CHUNK = 16 * KIB  # bytes of one record in some communities: a policy fits into one, and content has parts

SHARED = """
SelectHave(P) :- Have(P), Field(P,'Group',_,'@group'), Field(P,'App',_,'@app').
SelectHave(C) :- SelectHave(M), RecordLink(M,'Chunk+Link',_,_,C), Have(C).
SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'@group'), AdvertisedField(P,S,'App',_,'@app').
SelectAdvertised(C,S) :- Advertised(C,S), SelectHave(M), RecordLink(M,'Chunk+Link',_,_,C).
@people
"""
UNHIDDEN = """
SelectHave(P) :- Signed(P,'@app',_), Field(P,'Name',_,N), not Hidden(N).
SelectHave(P) :- Signed(P,'hidden',V), Admin(V).
SelectHave(C) :- SelectHave(M), RecordLink(M,'Chunk+Link',_,_,C), Have(C).
SelectAdvertised(P,S) :- Told(P,S,'@app',_), AdvertisedField(P,S,'Name',_,N), not Hidden(N).
SelectAdvertised(P,S) :- Told(P,S,'hidden',V), Admin(V).
SelectAdvertised(C,S) :- Advertised(C,S), SelectHave(M), RecordLink(M,'Chunk+Link',_,_,C).
Hidden(N) :- Signed(P,'hidden',V), Admin(V), Field(P,'Name',_,N).
Signed(P,A,V) :- Have(P), Field(P,'Group',_,'@group'), Field(P,'App',_,A), Field(P,'Signed-By',_,V).
@people
"""
TIPS = ('writers = "members"\n', 'writers = "anybody"\n', 'writers = "members"\n[apps]\nphotos = "admins"\n')
RECEIVES = (
    "Receive(P) :- Have(P), Field(P,'App',_,'notes').\n",
    "Receive(P) :- Have(P), Field(P,'Group',_,'@group'), Field(P,'Signed-By',_,_).\n",
)


@dataclass
class StepClock:
    """A clock that shows what the community says, and counts on for timers."""

    seconds: int = BEGAN_S

    def tai(self) -> TAI:
        return TAI.of_unix_ns(self.seconds * SECOND_NS)

    def monotonic_ns(self) -> int:
        return monotonic_ns()


@dataclass
class Holder:
    """One person with a lace, and the keys that they sign with."""

    called: str
    path: Path
    home: Path
    secrets: list[SigningSecret]  # the first key of theirs, then their devices
    limits: RecordLimits
    forgotten: set[str] = field(default_factory=set)
    copies: list[Path] = field(default_factory=list)
    is_here: bool = True  # False: has not joined yet

    @property
    def keys(self) -> list[SigningKey]:
        """All keys of theirs."""
        return [SigningKey.from_secret(secret) for secret in self.secrets]

    @property
    def key(self) -> SigningKey:
        """The key that they use now."""
        return SigningKey.from_secret(self.secrets[-1])

    @property
    def folder(self) -> Path:
        """The files that follow the lace."""
        return self.home.with_suffix(".files")


@dataclass
class Community:
    """People, what they did, and how two of them are about to meet."""

    seed: int
    place: Path
    draw: Random
    clock: StepClock
    people: list[Holder]
    root: Root
    template: str
    way: str
    done: list[str] = field(default_factory=list)
    tokens: dict[str, bytes] = field(default_factory=dict)  # what a record that was put contains and no other does
    pair: tuple[Holder, Holder] = field(init=False)

    def __str__(self) -> str:
        steps = "\n  ".join(self.done)
        one, two = self.pair
        return (
            f"community {self.seed}: {self.template}, {one.called} meets {two.called} by {self.way}; it went\n  {steps}"
        )

    def open(self, who: Holder) -> Lace:
        """A new handle, as another process would have."""
        return lace.open(who.path, clock=self.clock, limits=who.limits, keys=KeyRing(who.home))

    def do(self, what: str, *who: Holder) -> None:
        self.done.append(" ".join((what, *(one.called for one in who))))

    # who can do what, by what a lace says

    def key_in(self, held: Lace, who: Holder, kind: str = "Key") -> SigningKey | None:
        """A key of a person that counts as this in a lace."""
        from lace.people.roster import PeopleStanding

        counts = {row[0] for row in PeopleStanding(held.store, self.root).rows(kind, 2 if kind == "Key" else 1)}
        return next((key for key in reversed(who.keys) if key.verifier in counts), None)


def make_community(seed: int, folder: Path) -> Community:
    """The community of a seed, with its history."""
    draw = Random(seed)
    place = folder / f"c{seed}"
    place.mkdir()
    names = ("anna", "bob", "carl", "dora")[: draw.choice((2, 2, 3, 3, 4))]
    limits = draw.choice((RecordLimits(), RecordLimits(max_data_bytes=CHUNK)))
    people = [
        Holder(name, place / f"{name}.lace", place / f"home-{name}", [SigningSecret.generate(draw.randbytes)], limits)
        for name in names
    ]
    root = Root(GROUP, people[0].key.verifier)
    template = draw.choice(("members", "members", "members", "shared", "unhidden", "public-read", "newest-n"))
    # A unix socket proves no key, so nothing is shown to a member behind it: these meet there who show all to anybody.
    way = draw.choice(("process", "process", "process", "ws" if template != "public-read" else "unix"))
    made = Community(seed, place, draw, StepClock(), people, root, template, way)
    _found(made)
    steps = _steps()
    for _ in range(draw.randint(4, 14)):
        made.clock.seconds += draw.choice((0, 1, 1, 60, 3600))
        (step,) = draw.choices([one for one, _ in steps], [weight for _, weight in steps])
        # What a person may not do is refused in words; what is refused changes nothing.
        with suppress(LaceError):
            step(made)
    here = [one for one in people if one.is_here]
    made.pair = tuple(draw.sample(here, 2)) if len(here) > 1 else (people[0], people[1])  # type: ignore[assignment]
    made.clock.seconds += 5
    return made


def _found(made: Community) -> None:
    """The founder makes a policy; the others join in one of the ways there are, or not yet."""
    anna = made.people[0]
    with lace.open(anna.path, create=True, clock=made.clock, limits=anna.limits) as held:
        set_policy(held, policy_of(made, made.template), made.root, anna.key)
        commit_successor(held, anna.key, Successors(anna.home))
    for who in made.people[1:]:
        with lace.open(who.path, create=True, clock=made.clock, limits=who.limits) as held:
            pin_root(held.store, made.root)
        who.is_here = False
    for who in made.people[1:]:
        if made.draw.random() < 0.8:
            join(made, who)


def policy_of(made: Community, template: str) -> dict[PolicyKind, str]:
    """The texts of a policy: one of the templates, or one of our own."""
    words = TemplateWords(
        root=made.root,
        apps=made.draw.choice((APPS, APPS[:1])),
        others={"admin": str(made.root.founder), "count": str(made.draw.randint(2, 6))},
    )
    own = {"shared": SHARED, "unhidden": UNHIDDEN}
    if template not in own:
        texts = policy_texts([template], words)
    else:
        texts = policy_texts(["members"], words)
        texts[PolicyKind.SELECT] = fill_words(own[template], words, PolicyKind.SELECT)
    if made.draw.random() < 0.3:
        texts[PolicyKind.TIP] = made.draw.choice(TIPS)
    return texts


def join(made: Community, who: Holder) -> None:
    """Somebody joins by an invitation, as `lace join` does it, or is let in by a key that is known."""
    anna, draw = made.people[0], made.draw
    with made.open(anna) as home, made.open(who) as held:
        sign = made.key_in(home, anna, "Admin")
        if sign is None:
            return
        if draw.random() < 0.4:
            admit(home, who.key.verifier, sign, called=who.called, role=draw.choice((Role.MEMBER, Role.READER)))
            made.do("admit", who)
        else:
            role = draw.choice((Role.MEMBER, Role.MEMBER, Role.READER))
            line = invite(home, sign, address="", lasts_s=86_400, called=who.called, role=role).line
            accept(held, line, who.key, called=who.called)
            guest = SigningKey.from_secret(line.secret).verifier
            mine = people_selector(made.root), people_exposure(made.root)
            interlace(held, home, select=mine[0], expose=mine[1], their_select=_rules(home).module,
                      their_expose=_rules(home).exposures, here=guest, there=sign.verifier)  # fmt: skip
            made.do(f"invite as {role}", who)
        if draw.random() < 0.7:
            commit_successor(held, who.key, Successors(who.home))
        who.is_here = True
        meet_once(made, who, anna)


def _rules(held: Lace):  # type: ignore[no-untyped-def]
    policy = held.policy()
    assert policy is not None
    return policy


def meet_once(made: Community, one: Holder, two: Holder) -> int:
    """Exchanges under the policies of both, until no newer policy comes; how many records moved in all."""
    moved = 0
    with made.open(one) as first, made.open(two) as second:
        for _ in range(4):
            before = [_rules(held).in_force.hashes for held in (first, second)]
            met = interlace(first, second, here=one.key.verifier, there=two.key.verifier)
            moved += met.moved
            if before == [_rules(held).in_force.hashes for held in (first, second)]:
                return moved
    raise AssertionError("policies never come to an end")


# --- what happens ------------------------------------------------------------------------------------------------


def _somebody(made: Community) -> Holder:
    return made.draw.choice([one for one in made.people if one.is_here])


def _write(made: Community) -> None:
    who, draw = _somebody(made), made.draw
    token = f"<{draw.getrandbits(96):024x}>".encode()
    filling = draw.choice((0, 1, 20, CHUNK, 3 * CHUNK))
    key = draw.choice((who.key, who.key, who.key, draw.choice(who.keys), None))
    with made.open(who) as held:
        record = held.put(
            token + draw.randbytes(filling) if draw.random() < 0.9 else b"",
            group=GROUP,
            app=draw.choice(APPS),
            name=draw.choice(NAMES),
            tai=made.clock.tai().plus_ns(draw.choice((0, 0, 0, -5, -86_400)) * SECOND_NS),
            sign=key,
        )
        made.tokens[record] = token
    made.do("write" if key else "write unsigned", who)


def _retract(made: Community) -> None:
    who, draw = _somebody(made), made.draw
    with made.open(who) as held:
        rows = list(held.list(f"//{GROUP}//notes//"))
        if not rows:
            return
        row = draw.choice(rows)
        target = draw.choice((row.coordinate, str(row.hash)))
        made.do(f"retract {target}", who)
        held.retract(target, sign=who.key)


def _undo(made: Community) -> None:
    who = _somebody(made)
    with made.open(who) as held:
        withdrawn = [
            row.coordinate for row in held.list(f"//{GROUP}//", withdrawn=True) if held.withdrawal(row.coordinate)
        ]
        if withdrawn:
            target = made.draw.choice(withdrawn)
            made.do(f"undo {target}", who)
            held.undo(target, sign=who.key)


def _forget(made: Community) -> None:
    who = _somebody(made)
    with made.open(who) as held:
        rows = [str(row.hash) for row in held.list(f"//{GROUP}//") if row.coordinate.split("//")[2] in APPS]
        if rows:
            target = made.draw.choice(rows)
            made.do(f"forget {target}", who)
            held.forget(target)
            who.forgotten |= set(map(str, held.forgotten()))


def _by_admin(what: Callable[[Community, Lace, SigningKey], None]) -> Callable[[Community], None]:
    def done(made: Community) -> None:
        who = made.draw.choice(made.people[:2])
        with made.open(who) as held:
            sign = made.key_in(held, who, "Admin")
            if sign is not None:
                made.do(f"{what.__name__.strip('_')} by", who)
                what(made, held, sign)

    return done


def _other(made: Community) -> Holder:
    return made.draw.choice(made.people[1:])


def _leave(made: Community, held: Lace, sign: SigningKey) -> None:
    person = roster(held).of_key(_other(made).keys[0].verifier)
    if person is not None:
        since = made.clock.tai().plus_ns(-3600 * SECOND_NS) if made.draw.random() < 0.3 else None
        made.done[-1] += f" of {person.called}"
        put_out(held, person, sign, since=since)


def _rejoin(made: Community, held: Lace, sign: SigningKey) -> None:
    person = roster(held).of_key(_other(made).keys[0].verifier)
    if person is not None:
        made.done[-1] += f" of {person.called}"
        readmit(held, person, sign)


def _appoint(made: Community, held: Lace, sign: SigningKey) -> None:
    appoint(held, made.people[1].key.verifier, sign)


def _dismiss(made: Community, held: Lace, sign: SigningKey) -> None:
    dismiss(held, made.people[1].key.verifier, sign)


def _change_policy(made: Community, held: Lace, sign: SigningKey) -> None:
    draw = made.draw
    kind = draw.choice(("tip", "tip", "receive", "template", "template"))
    if kind == "tip":
        texts = {PolicyKind.TIP: draw.choice(TIPS)}
    elif kind == "receive":
        texts = {PolicyKind.RECEIVE: draw.choice(RECEIVES).replace("@group", GROUP)}
    else:
        template = draw.choice(("members", "shared", "unhidden", "public-read"))
        texts = policy_of(made, template)
        kind = template
    made.done[-1] += f": {kind}"
    set_policy(held, texts, made.root, sign)


def _withdraw_policy(made: Community, held: Lace, sign: SigningKey) -> None:
    target = f"//{GROUP}//policy//{made.draw.choice(('tip', 'receive', 'tip', 'expose'))}"
    made.done[-1] += f" {target}"
    held.retract(target, sign=sign)


def _undo_policy(made: Community, held: Lace, sign: SigningKey) -> None:
    target = f"//{GROUP}//policy//{made.draw.choice(('tip', 'receive', 'expose'))}"
    made.done[-1] += f" {target}"
    held.undo(target, sign=sign)


def _invite_and_withdraw(made: Community, held: Lace, sign: SigningKey) -> None:
    invite(held, sign, address="", lasts_s=600, called="x")
    withdraw(held, roster(held).invitations[-1], sign)


def _hide(made: Community, held: Lace, sign: SigningKey) -> None:
    held.put(b"", group=GROUP, app="hidden", name=made.draw.choice(NAMES), sign=sign)


def _replace(made: Community, held: Lace, sign: SigningKey) -> None:
    who = _other(made)
    person = roster(held).of_key(who.keys[0].verifier)
    if person is not None and who.is_here:
        new = SigningSecret.generate(made.draw.randbytes)
        made.done[-1] += f" of {who.called}"
        replace_key(held, person, who.key.verifier, SigningKey.from_secret(new).verifier, sign)
        who.secrets.append(new)


def _device(made: Community) -> None:
    who = _somebody(made)
    with made.open(who) as held:
        person = roster(held).of_key(who.keys[0].verifier)
        sign = made.key_in(held, who)
        if person is not None and sign is not None:
            new = SigningSecret.generate(made.draw.randbytes)
            made.do("device", who)
            add_device(held, person, SigningKey.from_secret(new).verifier, sign, called="phone")
            who.secrets.append(new)


def _lose_device(made: Community) -> None:
    who = _somebody(made)
    with made.open(who) as held:
        person = roster(held).of_key(who.keys[0].verifier)
        devices = [key.verifier for key in person.keys if key.kind == "device" and key.acts] if person else []
        if person is not None and devices:
            lost = made.draw.choice(devices)
            made.do("lose device", who)
            put_out(held, person, who.keys[0], only=lost)
            who.secrets = [one for one in who.secrets if SigningKey.from_secret(one).verifier != lost]


def _rotate(made: Community) -> None:
    who = _somebody(made)
    kept = Successors(who.home)
    before = who.keys[0]
    successor = kept.find(before.verifier)
    if successor is None:
        return
    with made.open(who) as held:
        made.do("rotate", who)
        rotate(held, before.verifier, kept)
    who.secrets[0] = successor.secret


def _meet(made: Community) -> None:
    here = [one for one in made.people if one.is_here]
    if len(here) > 1:
        one, two = made.draw.sample(here, 2)
        made.do(f"meet ({meet_once(made, one, two)} moved)", one, two)


def _join(made: Community) -> None:
    missing = [one for one in made.people if not one.is_here]
    if missing:
        join(made, made.draw.choice(missing))


def _copy(made: Community) -> None:
    who = _somebody(made)
    copy = made.place / f"copy{len(made.done)}"
    lace.backup(who.path, copy)
    who.copies.append(copy)
    made.do("copy", who)


def _restore(made: Community) -> None:
    who = _somebody(made)
    if who.copies:
        again = made.place / f"again{len(made.done)}.lace"
        lace.restore(made.draw.choice(who.copies), again, forgotten=sorted(who.forgotten))
        who.path = again
        made.do("restore", who)


def _folder(made: Community) -> None:
    """Somebody changes files of a folder that follows the lace."""
    who, draw = _somebody(made), made.draw
    who.folder.mkdir(exist_ok=True)
    for _ in range(draw.randint(1, 3)):
        file = who.folder / draw.choice(("x.txt", "y.txt", "sub/z.txt"))
        if file.exists() and draw.random() < 0.3:
            file.unlink()
        else:
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(draw.randbytes(draw.choice((0, 5, CHUNK + 1))))
    made.do("folder", who)
    sync_folder(made, who)


def sync_folder(made: Community, who: Holder) -> None:
    """The rounds of `lace sync DIR --once`."""
    ring = KeyRing(who.home)
    if str(who.key.verifier) not in {str(one.verifier) for one in ring.entries()}:
        ring.add(f"key{len(list(ring.entries()))}", who.secrets[-1])
    settings = FolderSettings(lace=str(who.path), place=parse_place(FOLDER_PLACE), sign=str(who.key.verifier))
    write_settings(who.folder, settings)
    with made.open(who) as held, opened_folder(who.folder, settings, held, limits=FolderLimits(min_free_bytes=0)) as at:
        at.rounds(go_on=True)


def _steps() -> Sequence[tuple[Callable[[Community], None], int]]:
    return [
        (_write, 8), (_retract, 3), (_undo, 2), (_forget, 2), (_meet, 8), (_join, 2), (_device, 2), (_lose_device, 1),
        (_rotate, 2), (_copy, 1), (_restore, 1), (_folder, 2), (_by_admin(_leave), 3), (_by_admin(_rejoin), 2),
        (_by_admin(_appoint), 1), (_by_admin(_dismiss), 1), (_by_admin(_change_policy), 3),
        (_by_admin(_withdraw_policy), 1), (_by_admin(_undo_policy), 1), (_by_admin(_invite_and_withdraw), 1),
        (_by_admin(_hide), 1), (_by_admin(_replace), 1),
    ]  # fmt: skip
