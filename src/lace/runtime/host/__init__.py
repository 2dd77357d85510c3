"""Our own side of a link: what a machine asks about records, answered over a store."""
