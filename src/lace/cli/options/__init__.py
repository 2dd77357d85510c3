"""The options and arguments that commands share."""
