"""Scenes to begin with: each shows one thing, and every one is played by a test.

Rule: rules come from the templates that `lace rules new` writes, so what is learned here can be taken home.
"""

from __future__ import annotations

from dataclasses import dataclass

from lace.porcelain.ruletemplates import fill
from lace.testing.simulator.scene import Expected, Scene, SceneLace, SceneRecord, Weather
from lace.testing.simulator.stage import key_of


@dataclass(frozen=True, slots=True)
class Guided:
    """One thing to try, and what on the page shows that somebody has."""

    words: str
    when: str  # "play", "trouble", "why", "advice", "rules", "remove", "links", "test"


@dataclass(frozen=True, slots=True)
class Preset:
    """A scene with its story and what to try in it."""

    name: str
    title: str
    story: str
    scene: Scene
    guide: tuple[Guided, ...] = ()


def presets() -> list[Preset]:
    """All of them, the simplest first."""
    return [_shared(), _hidden(), _members(), _blocked(), _newest(), _chain(), _hostile(), _split()]


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
        (
            Guided("Press Exchange and watch the records cross.", "play"),
            Guided("Ask why monday did not come to Ben.", "why"),
            Guided("Start over, cut the wire, and exchange twice: what had arrived stays.", "trouble"),
        ),
    )


def _hidden() -> Preset:
    return Preset(
        "hidden",
        "One asks for everything",
        "Ben's rules select every record. They run over what Ada shows him, so her diary is not even counted. Ask "
        "why it stops; then let her show everything.",
        Scene((SceneLace((*_RECIPES, _PRIVATE), _ALL, "rules", _SHOW_CLUB), SceneLace(_HIS, _ALL, "all"))),
        (
            Guided("Press Exchange: Ben asks for everything and gets what Ada shows.", "play"),
            Guided("Ask why monday is not with Ben.", "why"),
            Guided("Follow the advice there, and exchange again.", "advice"),
        ),
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
        (
            Guided("Press Exchange: the unsigned stew stays with Ada.", "play"),
            Guided("Ask why stew is not with Ben.", "why"),
            Guided("Remove Ben’s key from Ada’s records and exchange: she shows him nothing.", "remove"),
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
        "Ada has a record by which Cleo blocks Ben's key; Ben does not have it yet. Once it arrives, Ben's own rules "
        "stop offering what Ben signed.",
        Scene(
            (SceneLace((*_RECIPES, block), select, "rules", expose), SceneLace(_HIS[:1], select, "rules", expose)),
        ),
        (
            Guided("Ask why dumplings are not with Ada: nothing Ben signed gets in.", "why"),
            Guided("Press Exchange: the block itself reaches Ben.", "play"),
            Guided("Remove the block from Ada’s records and exchange once more.", "remove"),
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
        (
            Guided("Press Exchange: three of seven readings cross.", "play"),
            Guided("Ask why an older reading is not with Ben.", "why"),
            Guided("Change the 3 in Ada’s rules and exchange again.", "rules"),
        ),
    )


_NOTES = """# Records of //club, whoever has them.
SelectHave(P) :- Have(P), Field(P,'Group',_,'club').
SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'club').
"""


def _note(name: str, signer: str, minute: int) -> SceneRecord:
    return SceneRecord("club", "notes", name, f"{name.capitalize()}, as {signer} saw it.", signer, minute)


def _must_have(record: str, *laces: str) -> tuple[Expected, ...]:
    return tuple(Expected(lace, f"//club//notes//{record}") for lace in laces)


def _chain() -> Preset:
    return Preset(
        "chain",
        "Three in a chain",
        "Ada and Cleo never meet; both meet Ben. A record crosses one link with each exchange, so it takes two.",
        Scene(
            (
                SceneLace((_note("tide", "Ada", 480), _note("wind", "Ada", 490)), _NOTES),
                SceneLace((), _NOTES),
                SceneLace((_note("seals", "Cleo", 485),), _NOTES),
            ),
            links=((0, 1), (1, 2)),
            expect=(*_must_have("tide", "Cleo"), *_must_have("seals", "Ada")),
        ),
        (
            Guided("Press Exchange, and once more.", "play"),
            Guided("Start over, draw a link from Ada to Cleo, and see what one exchange does now.", "links"),
            Guided("Run it as a test.", "test"),
        ),
    )


def _hostile() -> Preset:
    return Preset(
        "hostile",
        "A hostile one among four",
        "Ben changes one bit of every record that leaves. Nobody stores those: their bytes do not match their hash. "
        "What Ben spoils comes by way of Dora instead.",
        Scene(
            (
                SceneLace((_note("tide", "Ada", 480), _note("wind", "Ada", 490)), _NOTES),
                SceneLace((_note("rumour", "Ben", 485),), _NOTES, hostile="tampers"),
                SceneLace((_note("seals", "Cleo", 487),), _NOTES),
                SceneLace((), _NOTES),
            ),
            links=((0, 1), (0, 3), (1, 2), (2, 3)),
            expect=(
                *_must_have("tide", "Cleo"),
                *_must_have("seals", "Ada"),
                Expected("Ada", "//club//notes//rumour", has=False),
                Expected("Cleo", "//club//notes//rumour", has=False),
            ),
        ),
        (
            Guided("Press Exchange, and once more: what Ben sends turns red.", "play"),
            Guided("Start over, take down both links of Dora, and see who is left waiting.", "links"),
            Guided("Run it as a test: the honest ones agree whatever the seed does.", "test"),
        ),
    )


def _split() -> Preset:
    people = ("Ada", "Ben", "Cleo", "Dora", "Emil", "Fay")
    return Preset(
        "split",
        "Six, and a network in two halves",
        "Six laces in a ring. Two links are down, so each half knows only its own notes. Mend them, and the halves "
        "agree.",
        Scene(
            tuple(
                SceneLace((_note(name, person, 480 + n),), _NOTES)
                for n, (person, name) in enumerate(
                    zip(people, ("tide", "wind", "seals", "fog", "swell", "gulls"), strict=True)
                )
            ),
            weather=Weather(down=((0, 5), (2, 3))),
            links=((0, 1), (0, 5), (1, 2), (2, 3), (3, 4), (4, 5)),
            expect=(*_must_have("tide", *people[1:]), *_must_have("fog", *people[:3])),
        ),
        (
            Guided("Exchange until nothing moves: two halves, each complete in itself.", "play"),
            Guided("Click a dashed link to mend it, and exchange again.", "links"),
            Guided("Run it as a test, then keep it as a file for lace simulate.", "test"),
        ),
    )
