"""What peers may bring: judged before it is requested as far as that is told, and always before it is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from interlace.pair import ALL, blob, group_module, hash_of, plex
from interop.harness import PATIENCE_S, exchange_once, filled, hashes, make_node, serving, terms_of
from lace.iltp.address import TcpAddress
from lace.interlace.claims.advertisement import Advertisement, FieldClaim
from lace.interlace.events import Event, Requested
from lace.notation.tai import TAI
from lace.policy.operand import Module
from lace.records.model import Blob, Plex
from lace.records.write import encode_record
from lace.runtime.host.quotas import FOR_STRANGERS, Allowance, GateRules, QuotaGate, Quotas, quotas_for
from lace.runtime.node.node import Hooks, LinkInfo
from lace.store import open_store
from lace.store.base import RecordStore
from lace.store.ledger import Usage, all_usage, usage
from lace.store.memory import MemoryStore
from store.samples import KEYS, plex_of

RECORDS = [blob(bytes([65 + number]) * 1000) for number in range(8)]
LATE = TAI("9999999999:000000000")
BY_DATE = Module.author(
    "SelectHave(P) :- Have(P), Field(P,'TAI',_,_).\n"
    "SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'TAI',_,_)."
)


class Served:
    """A server with quotas, and what it said."""

    def __init__(self, store: RecordStore, quotas: Quotas | None, module: Module = ALL, **options: object) -> None:
        self.store = store
        self._quotas = quotas
        self._module = module
        self._options = options
        self.limited: list[str] = []
        self.requested: list[int] = []
        self.metrics = ""

    def exchange(self, records: Sequence[bytes], times: int = 1) -> None:
        """A stranger that offers these, each time over a new connection."""
        asyncio.run(self._exchange(records, times))

    async def _exchange(self, records: Sequence[bytes], times: int) -> None:
        def hear(_: LinkInfo, event: Event) -> None:
            if isinstance(event, Requested):
                self.requested.append(event.by_us)

        hooks = Hooks(on_event=hear, on_limited=lambda _, why: self.limited.append(why))
        node = make_node(self.store, hooks, quotas=self._quotas, **self._options)
        bound = await node.listen(TcpAddress("127.0.0.1", 0), terms_of(self._module))
        try:
            for _ in range(times):
                outcome, _ = await asyncio.wait_for(exchange_once(bound, records, self._module), PATIENCE_S)
                assert outcome.is_complete
            self.metrics = node.metrics.text()
        finally:
            await node.shutdown()


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> RecordStore:
    return MemoryStore() if request.param == "memory" else open_store(tmp_path / "a.lace", create=True)


def test_a_peer_brings_as_many_records_as_it_may_and_its_exchange_goes_on(store: RecordStore) -> None:
    served = Served(store, Quotas(peer=Allowance(records=3)))
    served.exchange(RECORDS, times=3)
    assert len(hashes(store)) == 3
    assert served.requested[0] == 3  # the others were never asked for
    assert set(served.requested[1:]) == {0}
    assert usage(store, "peer 127.0.0.1").records == 3
    assert any("quota of peer 127.0.0.1: 3 of 3 records are used" in why for why in served.limited)
    assert 'lace_limited_total{kind="quota"}' in served.metrics
    assert 'lace_peer_limited_total{peer="127.0.0.1",kind="quota"} ' in served.metrics


def test_bytes_that_no_advertisement_told_are_counted_when_they_come(store: RecordStore) -> None:
    size = len(RECORDS[0])
    served = Served(store, Quotas(peer=Allowance(bytes=3 * size + size // 2)))
    served.exchange(RECORDS, times=2)
    assert len(hashes(store)) == 3
    assert usage(store, "peer 127.0.0.1") == Usage(3, 3 * size)
    assert any(f"{3 * size:,} of {3 * size + size // 2:,} bytes are used" in why for why in served.limited)


def test_an_account_outlives_the_link_and_the_node_and_has_room_again_after_a_removal(store: RecordStore) -> None:
    quotas = Quotas(peer=Allowance(records=2))
    Served(store, quotas).exchange(RECORDS[:2])
    Served(store, quotas).exchange(RECORDS)
    assert hashes(store) == {hash_of(RECORDS[0]), hash_of(RECORDS[1])}
    store.delete(hash_of(RECORDS[0]))
    Served(store, quotas).exchange(RECORDS[4:])
    assert len(hashes(store)) == 2


def test_a_record_of_our_own_counts_for_nobody(store: RecordStore) -> None:
    from lace.records.validate import validate

    store.put([validate(RECORDS[0])])
    Served(store, Quotas(peer=Allowance(records=2))).exchange(RECORDS[:3])
    assert len(hashes(store)) == 3
    assert usage(store, "peer 127.0.0.1").records == 2


def test_a_group_is_full_and_another_is_not(store: RecordStore) -> None:
    records = [plex(f"n/{number}", group=group) for group in ("full", "free") for number in range(4)]
    served = Served(store, Quotas(group=Allowance(records=2)))
    served.exchange(records)
    assert {name: used.records for name, used in all_usage(store).items()} == {"group full": 2, "group free": 2}


def test_what_is_told_of_groups_is_judged_before_it_is_requested(store: RecordStore) -> None:
    records = [plex(f"n/{number}", group="u") for number in range(6)]
    served = Served(store, Quotas(group=Allowance(records=2)), group_module("u"))
    served.exchange(records)
    assert served.requested[0] == 2
    assert usage(store, "group u").records == 2


def test_a_signer_is_limited_whoever_brings_its_records(store: RecordStore) -> None:
    sealed = [encode_record(KEYS[0].seal(plex_of(f"n/{number}"))) for number in range(5)]
    others = [encode_record(KEYS[1].seal(plex_of(f"m/{number}"))) for number in range(2)]
    Served(store, Quotas(signer=Allowance(records=2))).exchange([*sealed, *others])
    assert usage(store, f"signer {KEYS[0].verifier}").records == 2
    assert usage(store, f"signer {KEYS[1].verifier}").records == 2


def test_the_total_counts_what_was_there_before(store: RecordStore) -> None:
    from lace.records.validate import validate

    store.put(map(validate, RECORDS[:3]))
    Served(store, Quotas(total=Allowance(records=5))).exchange(RECORDS)
    assert len(hashes(store)) == 5


def test_strangers_share_an_account_and_known_peers_have_another(tmp_path: Path) -> None:
    async def run() -> None:
        quotas = Quotas(strangers=Allowance(records=1), known_peer=Allowance(records=4))
        async with serving([], tmp_path, "unix", quotas=quotas) as server:
            await exchange_once(server.address, RECORDS)
            assert len(hashes(server.store)) == 4  # over a unix socket nobody is a stranger
        store = filled([])
        async with serving(store, tmp_path, "tcp", quotas=quotas) as server:
            await exchange_once(server.address, RECORDS)
        assert usage(store, "strangers").records == 1

    asyncio.run(run())


def test_strangers_from_elsewhere_have_quotas_without_being_told() -> None:
    assert quotas_for(None, is_known=False, is_here=False) == FOR_STRANGERS
    assert FOR_STRANGERS.peer.is_limited
    assert FOR_STRANGERS.strangers.is_limited
    for is_known, is_here in ((True, False), (False, True), (True, True)):
        assert quotas_for(None, is_known=is_known, is_here=is_here) == Quotas()
    given = Quotas(total=Allowance(records=1))
    assert quotas_for(given, is_known=True, is_here=True) is given


def test_a_record_dated_beyond_the_horizon_is_neither_stored_nor_asked_for_twice(store: RecordStore) -> None:
    late = encode_record(Plex(group="u", app="ding", name="late", tai=LATE, headers=(), blob=Blob(b"x")))
    served = Served(store, None)
    served.exchange([late, RECORDS[0]])
    assert hashes(store) == {hash_of(RECORDS[0])}
    assert any("horizon: it is dated 9999999999:000000000" in why for why in served.limited)
    assert served.requested[0] == 2  # its date was not told
    assert served.requested[-1] == 0
    Served(store, None, horizon_s=None).exchange([late])
    assert hash_of(late) in hashes(store)


def test_a_date_that_is_told_keeps_a_record_from_being_requested(store: RecordStore) -> None:
    late = encode_record(Plex(group="u", app="ding", name="late", tai=LATE, headers=(), blob=Blob(b"x")))
    served = Served(store, None, BY_DATE)
    served.exchange([late, plex("n/1")])
    assert hashes(store) == {hash_of(plex("n/1"))}
    assert served.requested[0] == 1
    assert any("1 records are dated beyond" in why for why in served.limited)


@pytest.mark.parametrize("length", ["", "x", "-5", "9" * 40, "٣", "12"])
def test_a_length_that_is_no_number_is_taken_for_the_least(length: str) -> None:
    gate = QuotaGate(MemoryStore(), GateRules(quotas=Quotas(known_peer=Allowance(bytes=100)), peer="p"))
    claim = Advertisement("P.x.H3", (FieldClaim("Data-Length", "0", length),))
    assert gate.affordable(["P.x.H3"], lambda _: claim) == ["P.x.H3"]


def test_a_length_that_is_told_is_believed_as_far_as_it_keeps_records_out() -> None:
    gate = QuotaGate(MemoryStore(), GateRules(quotas=Quotas(known_peer=Allowance(bytes=100)), peer="p"))
    long = Advertisement("P.x.H3", (FieldClaim("Data-Length", "0", "101"),))
    assert gate.affordable(["P.x.H3"], lambda _: long) == []
