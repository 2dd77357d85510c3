"""010 and 009: records, their grammar and hashes, keys and signatures; and the addresses of 110."""
