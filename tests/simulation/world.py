"""A seeded world of two to five laces under virtual time, and the invariants that hold after every step (050).

`World(seed).run()` raises Broken with what went wrong; the same seed makes the same world, byte for byte.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from unittest.mock import patch

from interlace.pair import START_NS, VERIFIER_A, config_of
from lace.interlace import inputs as given
from lace.interlace.events import FixedPoint
from lace.interlace.phases import Phase
from lace.interlace.setup import agreement
from lace.interlace.setup.terms import Link, Rules
from lace.limits import SECOND_NS, ExchangeLimits
from lace.notation.identifiers import Verifier
from simulation.laces import SimLace
from simulation.links import Broken, SimEnd, SimLink, digest_of
from simulation.matter import ALTERNATING, BY_HASH, MONOTONIC, UNIVERSE, WILD, showings

MAX_STEPS = 20_000
MAX_LISTINGS = 16
Move = Callable[[], None]
LIMITS = ExchangeLimits()


def _verifier(number: int) -> Verifier:
    return Verifier.of(bytes([4 * number]) + VERIFIER_A.digest[1:])


def _repeat(first: SimEnd, second: SimEnd) -> bool:
    """P13: whether what two ends would list from here on comes back to what they hold of each other: at once where
    both rest, later where each lists what the other listed before."""
    held = tuple(frozenset(end.host.claims.listing()) for end in (first, second))
    listings = held
    for _ in range(MAX_LISTINGS):
        listings = second.host.listing(listings[1]), first.host.listing(listings[0])
        if listings == held:
            return True
    return False


class World:
    """Laces, links between them, faults, and time."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        rng = self.rng
        self.is_monotonic = rng.random() < 0.5
        self.has_faults = rng.random() < 0.6
        self.is_rash = rng.random() < 0.5  # laces take what they lack unnamed, whatever their rules want of it (070)
        self.now_ns = START_NS
        selectors = MONOTONIC if self.is_monotonic else [*MONOTONIC, *WILD]
        self.laces = [
            SimLace(number, rng.choice(selectors), rng.choice(showings()), self._some_records())
            for number in range(rng.choice([2, 2, 2, 3, 4, 5]))
        ]
        self.pairs = self._choose_pairs()
        self.options = {pair: self._choose_options() for pair in self.pairs}
        self.links: dict[tuple[int, int], SimLink] = {}
        self.transcripts: list[bytes] = []
        self.connections = 0
        self.deleted = False
        self.initial = [set(lace.have) for lace in self.laces]

    def _some_records(self) -> list[object]:
        chosen = self.rng.sample(UNIVERSE, self.rng.choice([0, 1, 2, 3, 5]))
        return [item.record for item in chosen]

    def _choose_pairs(self) -> list[tuple[int, int]]:
        """A tree over all laces, so that records can travel, and now and then one link more."""
        pairs = [(self.rng.randrange(number), number) for number in range(1, len(self.laces))]
        if len(self.laces) > 2 and self.rng.random() < 0.4:
            extra = (0, len(self.laces) - 1)
            pairs += [] if extra in pairs else [extra]
        return pairs

    def _choose_options(self) -> dict[str, object]:
        rng = self.rng
        limits = LIMITS
        if rng.random() < 0.3:
            limits = replace(limits, max_advertisement_records_listed=rng.choice([1, 2, 3]))
        partitions = rng.random() < 0.6 or limits is not LIMITS
        options: dict[str, object] = {
            "is_open": rng.random() < 0.5,
            "partitions": partitions,
            "partition_threshold_bytes": rng.choice([0, 300, 1 << 20]),
            "max_requests": rng.choice([1, 3, 1000, 1000]),
            "max_service_records": rng.choice([2, 1000, 1000]),
            "limits": replace(limits, max_loop_iterations=200),
            "cursor_key": rng.choice(["", "door"]),
            "tick_interval_ns": rng.choice([SECOND_NS, 10 * SECOND_NS]),
            "signed": rng.random() < 0.4,
            "able": rng.choice([(True, True), (True, True), (True, False), (False, True), (False, False)]),  # of 070
            "min_compared": rng.choice([0, 2, 4, 99]),  # a set may pass this between two loops
            "takes": rng.choice([(0, 0), (256, 256), (256, 256), (2, 256), (3, 1), (0, 256)]),
        }
        if not self.is_monotonic:
            options["send_gate"] = rng.random() < 0.8
        return options

    # --- connections -------------------------------------------------------------------------------------------

    def _connect(self, pair: tuple[int, int]) -> None:
        options = dict(self.options[pair])
        signed, able, takes = options.pop("signed"), options.pop("able"), options.pop("takes")
        ends = []
        for index, number in enumerate(pair):
            lace, peer = self.laces[number], self.laces[pair[1 - index]]
            link = Link()
            if signed:
                link = Link(
                    here=_verifier(lace.number), peer=_verifier(peer.number), signs_hello=True, peer_signs_hello=True
                )
            key = f"{options['cursor_key']}{peer.number}" if options["cursor_key"] else ""
            salt = self.rng.getrandbits(128) if able[index] else None  # type: ignore[index]
            seat = {"link": link, "cursor_key": key, "exposures": lace.showing.exposures, "salt": salt}
            seat["takes"] = takes[index]  # type: ignore[index]
            seat["holds_nothing"] = (
                not lace.have if salt is None or salt % 4 else True
            )  # a word that is sometimes wrong
            ends.append(SimEnd(lace, config_of(index, lace.selector.module, **{**options, **seat})))
        link_between = SimLink(ends[0], ends[1], self.rng)
        self.links[pair] = link_between
        self.connections += 1
        link_between.start(self.now_ns)

    def _retire(self, pair: tuple[int, int]) -> None:
        link = self.links.pop(pair)
        self.transcripts.append(digest_of([end.written for end in link.ends]))

    # --- the run -----------------------------------------------------------------------------------------------

    def run(self) -> World:
        """Trouble first, then calm; every step is checked."""
        said = (lambda _: True) if self.is_rash else agreement.selects_alike
        with patch.object(agreement, "selects_alike", said):
            self._run()
        return self

    def _run(self) -> None:
        for pair in self.pairs:
            self._connect(pair)
        trouble = self.rng.randrange(20, 300) if self.has_faults else 0
        for _ in range(trouble):
            self._step(self._troubled_moves())
        self._calm()
        self._check_end()

    def _step(self, moves: list[Move]) -> bool:
        if not moves:
            return False
        self.rng.choice(moves)()
        self._check_stores()
        return True

    def _calm(self) -> None:
        """No more faults: what was cut connects again, everything runs until it rests, twice around."""
        for link in self.links.values():
            if link.is_spoiled:
                link.cut()
        for _ in range(4 + 2 * len(self.laces)):
            before = [lace.disk.version for lace in self.laces]
            broken = self._reconnect()
            self._settle()
            if not broken and not self._is_stale() and [lace.disk.version for lace in self.laces] == before:
                return
        raise Broken("the world does not come to rest")

    def _is_stale(self) -> bool:
        """Whether an exchange came to its end under a selector that its lace no longer has, or with older records."""
        ends = [end for link in self.links.values() for end in link.ends]
        return any(end.session.machine.module.id != end.lace.selector.module.id for end in ends) or any(
            end.is_over and end.first_disk != end.lace.disk.version for end in ends
        )

    def _reconnect(self) -> bool:
        """Connect what is over; whether anything was that had not come to its end."""
        broken = False
        for pair in self.pairs:
            link = self.links.get(pair)
            if link is None or link.is_over or any(end.is_over for end in link.ends):
                broken |= link is None or any(
                    end.session.outcome is None or end.session.outcome.abort for end in link.ends
                )
                if link is not None:
                    link.cut()
                    self._retire(pair)
                self._connect(pair)
        return bool(broken)

    def _settle(self) -> None:
        for link in self.links.values():
            link.stalled_until_ns = 0
        for _ in range(MAX_STEPS):
            if not self._step(self._plain_moves()):
                return
        raise Broken("too many steps without rest")

    def _ends(self) -> Iterator[tuple[SimLink, SimEnd]]:
        for link in self.links.values():
            link.now_ns = self.now_ns
            for end in link.ends:
                yield link, end

    def _plain_moves(self) -> list[Move]:
        moves: list[Move] = []
        for link in self.links.values():
            link.now_ns = self.now_ns
            flows = self.now_ns >= link.stalled_until_ns
            for end in link.ends:
                if end.work:
                    moves.append(partial(link.perform, end))
                if end.is_over:
                    continue
                if flows and link.can_feed(end):
                    moves.append(partial(link.feed, end))
                if end.seen_disk != end.lace.disk.version:
                    moves.append(partial(self._notice, link, end))
        return moves

    def _notice(self, link: SimLink, end: SimEnd) -> None:
        end.seen_disk = end.lace.disk.version
        link.tell(end, given.LocalChanged())

    def _troubled_moves(self) -> list[Move]:
        moves = self._plain_moves()
        if self.rng.random() < 0.12 or not moves:
            moves = [self._trouble]
        return moves

    def _trouble(self) -> None:
        kinds = [
            self._put,
            self._put,
            self._cut,
            self._crash,
            self._spoil,
            self._stall,
            self._tick,
            self._tick,
            self._change,
        ]
        if not self.is_monotonic:
            kinds.append(self._delete)
        self.rng.choice(kinds)()

    # --- faults and news ---------------------------------------------------------------------------------------

    def _put(self) -> None:
        lace = self.rng.choice(self.laces)
        item = self.rng.choice(UNIVERSE)
        lace.disk.put([item.record])
        lace.acknowledged.add(item.hash)

    def _delete(self) -> None:
        lace = self.rng.choice(self.laces)
        if lace.disk.records:
            record = self.rng.choice(sorted(lace.disk.records))
            lace.disk.delete(record)
            lace.acknowledged.discard(record)
            self.deleted = True

    def _cut(self) -> None:
        pair = self.rng.choice(self.pairs)
        if pair in self.links:
            self.links[pair].cut()
            self._retire(pair)
        elif self.connections < 12:
            self._connect(pair)

    def _crash(self) -> None:
        """A lace loses power: its links see their streams end, its disk forgets what was not synced."""
        lace = self.rng.choice(self.laces)
        for pair, link in list(self.links.items()):
            for end in link.ends:
                if end.lace is lace:
                    link.drop(end)
                    link.cut()
            if link.is_over and lace.number in pair:
                self._retire(pair)
        if self.rng.random() < 0.5:
            lace.disk.sync()
        lace.disk.crash()

    def _spoil(self) -> None:
        for link, end in self._ends():
            if link.other(end).wire and not end.is_over and self.rng.random() < 0.5:
                link.spoil(end)
                return

    def _stall(self) -> None:
        """A link is silent for longer than a phase may last."""
        if self.links:
            link = self.rng.choice(list(self.links.values()))
            link.stalled_until_ns = self.now_ns + self.rng.choice([1, 40]) * SECOND_NS
            self.now_ns += self.rng.choice([SECOND_NS // 3, 31 * SECOND_NS])
            self._fire_timers()

    def _tick(self) -> None:
        self.now_ns += self.rng.choice([SECOND_NS // 7, SECOND_NS, 10 * SECOND_NS])
        self._fire_timers()

    def _fire_timers(self) -> None:
        for link, end in self._ends():
            due = end.session.next_timer
            if due is not None and due <= self.now_ns and not end.is_over:
                link.fire(end)

    def _change(self) -> None:
        """A lace takes another selector: a new epoch on its open links, a new plan on later ones."""
        if self.rng.random() < 0.7:
            return
        lace = self.rng.choice(self.laces)
        lace.selector = self.rng.choice(MONOTONIC if self.is_monotonic else [*MONOTONIC, *WILD])
        for link, end in self._ends():
            if end.lace is lace:
                link.tell(end, given.RulesChanged(Rules(lace.selector.module, lace.showing.exposures)))

    # --- invariants --------------------------------------------------------------------------------------------

    def _check_stores(self) -> None:
        for lace in self.laces:
            state = (lace.disk.version, len(lace.disk.records), len(lace.acknowledged))
            if state == lace.checked:
                continue
            lace.checked = state
            if not lace.acknowledged <= lace.have:
                raise Broken(f"lace {lace.number} lost a stored record")
            if not lace.have <= BY_HASH.keys():
                raise Broken(f"lace {lace.number} holds what never was a record")

    def _check_end(self) -> None:
        for link in self.links.values():
            for end in link.ends:
                self._check_rest(link, end)
        if self.is_monotonic and not self.deleted:
            self._check_sets()
        for pair in list(self.links):
            self._retire(pair)

    def _check_rest(self, link: SimLink, end: SimEnd) -> None:
        """At a fixed point nothing requestable, advertised, missing is left that the peer could still send."""
        machine = end.session.machine
        outcome = end.session.outcome
        if outcome is not None and outcome.abort:
            raise Broken(f"an exchange without faults was aborted: {outcome.abort}: {outcome.detail}")
        if outcome is None and machine.phase is not Phase.IDLE:
            raise Broken(f"a link rests while {machine.phase.value}")
        if not any(isinstance(event, FixedPoint) for event in end.events):
            raise Broken(f"no fixed point was reported: {outcome}")
        peer = link.other(end)
        _, requestable = end.host.current()
        sendable, _ = peer.host.current()
        settles = all(operand.module.id != ALTERNATING for operand in machine.agreement.plan.operands)
        if settles and not _repeat(end, peer):
            raise Broken(f"{len(end.listed)} records were listed at the fixed point, and others are still to be")
        held = {claim.hash for claim in end.host.claims.listing()}
        left = (requestable & held & sendable) - machine.refused
        if left:
            raise Broken(f"left at the fixed point: {sorted(left)}")

    def _check_sets(self) -> None:
        """Monotonic policies: the sets are those of set theory (050-NONMONO-05)."""
        expected = [set(start) for start in self._starts()]
        moving = True
        while moving:
            moving = False
            for first, second in self.pairs:
                for sender, receiver in ((first, second), (second, first)):
                    for record in expected[sender] - expected[receiver]:
                        if self._flows(record, self.laces[sender], self.laces[receiver]):
                            expected[receiver].add(record)
                            moving = True
        for lace, wanted in zip(self.laces, expected, strict=True):
            if lace.have != wanted:
                raise Broken(f"lace {lace.number} has {len(lace.have)} records, set theory says {len(wanted)}")

    def _starts(self) -> list[set[str]]:
        """What the closure begins with: after faults and news, whatever is there; nothing more may want to flow."""
        return [set(lace.have) for lace in self.laces] if self.has_faults else [set(start) for start in self.initial]

    def _flows(self, record: str, sender: SimLace, receiver: SimLace) -> bool:
        item = BY_HASH[record]  # type: ignore[index]
        selects = (sender.selector.means, receiver.selector.means)
        if selects[0] is None or selects[1] is None:
            raise Broken("a monotonic world with a wild selector")
        return selects[0](item) and selects[1](item) and sender.showing.shows(item)

    def transcript(self) -> str:
        """A digest of everything that was ever written, in order."""
        from lace.notation.digest import digest

        return digest(b"".join(self.transcripts)).hex()
