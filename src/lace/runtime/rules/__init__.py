"""What may be sent and requested under a policy: evaluated once, followed as the store changes, shared by links."""
