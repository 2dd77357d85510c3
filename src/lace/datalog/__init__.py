"""030: the rule language, from text to derived facts."""
