"""stdio, unix sockets, TCP and WebSocket: a byte stream each, and what it proves about the peer (060).

- *address*: where a peer is (`lace.iltp.address`); *network*: the part of it that one attacker has at hand.
- *stream*: bytes in order, both ways. *Listener*: gives the streams of those who dial.
- *proof*: what is known about the peer of a stream: its verifier if it signed, whether the stream is encrypted.
- *claim*: the signed header of a WebSocket upgrade, which proves a verifier (`proof`).
- *door*: accepts connections; a *visitor* has a place there until it has upgraded; the table of those is *half open*.
- *proxy*: a program that dials for others and says for whom (`proxied`).
- *accept queue*: accepted streams that wait to be served, taken in turn by network.
- *turn*: a connection's share of the event loop, in processor seconds by network (`fairqueue`, `frames`).

Never: a stream knows what its bytes mean; a peer that only waits costs more than its place; a name that somebody else
can point at us proves anything.
"""
