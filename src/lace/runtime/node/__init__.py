"""Many links over one store: who may connect, who waits, who has to leave, what is reported."""
