"""One link: the pump between a byte stream, a session and a host, and what it holds meanwhile."""
