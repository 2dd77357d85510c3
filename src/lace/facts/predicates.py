"""Each predicate of the record and exchange surface, its name and arity written once (020, 040, 050).

Rule: no other module spells one of these names.
"""

from __future__ import annotations

from lace.notation.fact import Predicate

HAVE = Predicate("Have", 1)
FIELD = Predicate("Field", 4)
RECORD_LINK = Predicate("RecordLink", 5)
BLOB_HASH = Predicate("BlobHash", 2)
PLEX_HASH = Predicate("PlexHash", 2)
RECORD_PREDICATES = (HAVE, FIELD, RECORD_LINK, BLOB_HASH, PLEX_HASH)

HERE = Predicate("Here", 1)
PEER = Predicate("Peer", 1)
TRANSPORT = Predicate("Transport", 1)
TRANSPORT_ENCRYPTED = Predicate("TransportEncrypted", 0)
START_TAI = Predicate("StartTAI", 1)
TICK_TAI = Predicate("TickTAI", 1)
CLOCK_SKEW_SECONDS = Predicate("ClockSkewSeconds", 1)
RUNTIME_PREDICATES = (HERE, PEER, TRANSPORT, TRANSPORT_ENCRYPTED, START_TAI, TICK_TAI, CLOCK_SKEW_SECONDS)

ADVERTISED = Predicate("Advertised", 2)
ADVERTISED_FIELD = Predicate("AdvertisedField", 5)
ADVERTISEMENT_PREDICATES = (ADVERTISED, ADVERTISED_FIELD)

SELECT_HAVE = Predicate("SelectHave", 1)
SELECT_ADVERTISED = Predicate("SelectAdvertised", 2)
MAY_SEND = Predicate("MaySend", 1)
MAY_REQUEST = Predicate("MayRequest", 1)
CAN_QUERY_RECORD = Predicate("CanQueryRecord", 2)
ALLOW_QUERY_RECORD = Predicate("AllowQueryRecord", 2)

# Field names of the current record definition.
TYPE, DATA_LENGTH, GROUP, APP, NAME, TAI, SIGNED_BY, SIGNATURE = (
    "Type", "Data-Length", "Group", "App", "Name", "TAI", "Signed-By", "Signature",
)  # fmt: skip
