"""One file per command of `lace`; each defines `command`."""
