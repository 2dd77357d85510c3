"""Scenes to begin with: each shows one thing, and every one is played by a test.

Rule: rules come from the templates that `lace rules new` writes, so what is learned here can be taken home.
"""

from __future__ import annotations

from dataclasses import dataclass

from lace.porcelain.ruletemplates import fill
from lace.testing.simulator.scene import Scene, SceneLace, SceneRecord
from lace.testing.simulator.stage import key_of


@dataclass(frozen=True, slots=True)
class Preset:
    """A scene with its story."""

    name: str
    title: str
    story: str
    scene: Scene


def presets() -> list[Preset]:
    """All of them, the simplest first."""
    return [_shared(), _hidden(), _members(), _blocked(), _newest()]


_RECIPES = (
    SceneRecord("club", "recipes", "soup", "Leeks, potatoes, patience.", "Ada", 480),
    SceneRecord("club", "recipes", "bread", "Flour, water, salt, a night.", "Ada", 500),
)
_PRIVATE = SceneRecord("ada", "diary", "monday", "Nobody else's business.", "Ada", 510)
_HIS = (
    SceneRecord("club", "recipes", "dumplings", "Steam them, do not boil them.", "Ben", 490),
    SceneRecord("ben", "todo", "today", "Buy flour.", "", 515),
)
_CLUB = """# Records of //club//recipes, whoever has them.
SelectHave(P) :- Have(P), Field(P,'Group',_,'club'), Field(P,'App',_,'recipes').
SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'club'), AdvertisedField(P,S,'App',_,'recipes').
"""
_ALL = """# Everything that the other side would give.
SelectHave(P) :- Have(P).
SelectAdvertised(P,S) :- Advertised(P,S).
"""


def _shared() -> Preset:
    return Preset(
        "shared",
        "Two people share recipes",
        "Both select the records of one app. What both rules select goes over; the diary and the list stay home.",
        Scene((SceneLace((*_RECIPES, _PRIVATE), _CLUB), SceneLace(_HIS, _CLUB))),
    )


def _hidden() -> Preset:
    return Preset(
        "hidden",
        "One asks for everything",
        "Ben's rules select every record. They run over what Ada shows him, so her diary is not even counted. Ask "
        "why it stops; then let her show everything.",
        Scene((SceneLace((*_RECIPES, _PRIVATE), _ALL, "rules", _SHOW_CLUB), SceneLace(_HIS, _ALL, "all"))),
    )


_SHOW_CLUB = """# Whoever looks may see what belongs to the club.
AllowQueryRecord(Viewer,P) :- Have(P), Field(P,'Group',_,'club').
"""


def _members() -> Preset:
    admin = str(key_of("Cleo").verifier)
    filled = fill("members", {"group": "club", "app": "recipes", "admin": admin})
    select, expose = filled["select.lace"], filled["expose.lace"]
    listed = [
        SceneRecord("club", "member", str(key_of(person).verifier), f"{person} is one of us.", "Cleo", 400)
        for person in ("Ada", "Ben")
    ]
    forged = SceneRecord("club", "recipes", "stew", "Trust me, I am a cook.", "", 520)
    return Preset(
        "members",
        "Members only",
        "Cleo signed who is a member. Records of members go over, the unsigned stew does not. Take Ben's member record "
        "away from Ada and she shows him nothing.",
        Scene(
            (
                SceneLace((*listed, *_RECIPES, forged), select, "rules", expose),
                SceneLace((listed[1], _HIS[0]), select, "rules", expose),
            )
        ),
    )


def _blocked() -> Preset:
    admin = str(key_of("Cleo").verifier)
    filled = fill("blocked", {"group": "club", "app": "recipes", "admin": admin})
    select, expose = filled["select.lace"], filled["expose.lace"]
    block = SceneRecord("club", "blocked", str(key_of("Ben").verifier), "Boils dumplings.", "Cleo", 600)
    return Preset(
        "blocked",
        "A block travels",
        "Ada has a record by which Cleo blocks Ben's key, Ben has not. Once it has arrived, his own rules offer his "
        "records no more.",
        Scene(
            (SceneLace((*_RECIPES, block), select, "rules", expose), SceneLace(_HIS[:1], select, "rules", expose)),
        ),
    )


def _newest() -> Preset:
    filled = fill("newest-n", {"group": "fleet", "app": "readings", "count": "3"})
    select, expose = filled["select.lace"], filled["expose.lace"]
    readings = tuple(
        SceneRecord("fleet", "readings", f"sensor-{n % 2}/{n}", f"{18 + n} °C", "Ada", 300 + 10 * n) for n in range(7)
    )
    return Preset(
        "newest",
        "The newest three",
        "Ada has seven readings; both rules select the newest three by counting. Negation and counting see only what "
        "may be seen.",
        Scene((SceneLace(readings, select, "rules", expose), SceneLace((), select, "rules", expose))),
    )
