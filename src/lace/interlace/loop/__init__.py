"""One loop of an exchange: advertise, compare or reconcile, request, transfer (050, 070, 071)."""
