"""One file per command of `lace`."""
