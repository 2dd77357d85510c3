"""How two sets of records differ, at the price of the difference (070)."""
