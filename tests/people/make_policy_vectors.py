"""Write tests/vectors/policy.json again: records, and which versions of a policy are in force among them.

.venv/bin/python tests/people/make_policy_vectors.py
"""

from __future__ import annotations

import json
from pathlib import Path

import lace as api
from lace.notation.tai import TAI
from lace.people.policyrecords import policy_in_force
from lace.people.root import Root, pin_root
from lace.records.keys import SigningKey
from lace.records.tip import TipPolicy

TARGET = Path(__file__).parents[1] / "vectors" / "policy.json"
FOUNDER, EVE = (SigningKey(bytes(31) + bytes([number])) for number in (5, 7))
NOW = 1_790_000_000
UNTIL = f"{NOW + 86_400}:000000000"
ALL = "SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S).\n"
CASES = {
    "the newest of the founder": [("select", ALL, FOUNDER, -20), ("select", f"# newer\n{ALL}", FOUNDER, -10)],
    "a newer one of a stranger, and an unsigned one": [
        ("select", ALL, FOUNDER, -20),
        ("select", f"# forged\n{ALL}", EVE, -10),
        ("select", f"# forged\n{ALL}", None, -5),
    ],
    "one that cannot be read, and one dated too far ahead": [
        ("tip", 'writers = "members"\n', FOUNDER, -20),
        ("tip", 'writers = "friends"\n', FOUNDER, -10),
        ("tip", 'writers = "admins"\n', FOUNDER, 100_000),
    ],
    "nothing but forgeries": [("expose", "AllowQueryRecord(V,P) :- Have(P).\n", EVE, -10)],
}


def case(name: str, said: list[tuple[str, str, SigningKey | None, int]]) -> dict[str, object]:
    with api.open(":memory:") as lace:
        pin_root(lace.store, Root("club", FOUNDER.verifier))
        for kind, text, sign, at in said:
            tai = TAI.parse(f"{NOW + at}:000000000")
            lace.put(
                text.encode(), group="club", app="policy", name=kind, sign=sign, tai=tai, headers=[("Policy", "1")]
            )
        found = policy_in_force(lace.store, TipPolicy(until=UNTIL))
        assert found is not None
        return {
            "name": name,
            "records": [body.decode() for _, body in lace.store.bodies_since()],
            "in_force": {str(kind): str(version.hash) for kind, version in found.versions.items()},
        }


if __name__ == "__main__":
    vectors = {
        "spec": "083-policy.md",
        "group": "club",
        "founder": FOUNDER.verifier,
        "until": UNTIL,
        "cases": [case(name, said) for name, said in CASES.items()],
    }
    TARGET.write_text(json.dumps(vectors, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
