"""A Spark session: its Java, its master, its settings, and how its failures are told."""
