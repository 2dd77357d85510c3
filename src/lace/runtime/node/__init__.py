"""Many links over one store.

- **node**: one lace among peers; it accepts, dials, keeps and ends links (`node`).
- **link info**: which link something is told of; **open link**: a link with its driver (`links`).
- **account**: whom work is charged to, a key that we know or else a network (`admission`, `metering`).
- **standing**: what is known of a link when somebody has to leave (`admission`).
- **waiting room**: peers for whom there is no place yet (`waitingroom`).
- **rates**, **buckets**: what a link may use in a while, and what it has used (`metering`).
- **pools**: threads and worker processes that all links share (`pools`, `fairness`, `workers`).
- **bounds**: what one link and all links together may hold at a time (`bounds`).
- **spreading**: the store has changed, and every open link is told; what links share is followed once (`spreading`).
- **store watch**: what other processes did to the store (`storewatch`).
- **pulse**: for how long the event loop was kept from what it should have done (`pulse`).
- **hooks**, **reports**, **metrics**: what an application and an operator hear (`hookcalls`, `reports`, `metrics`).

What never happens here: no link waits for another link's peer, and no hook changes an exchange.
"""
