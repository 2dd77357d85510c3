"""From checked rules to plans (030): strata, join orders, and the rewritings that come before them."""
