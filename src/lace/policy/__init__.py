"""040: operands, exposure, exchange plans, and the one flat program that a side evaluates."""
