"""110: addresses of records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidText
from lace.notation.identifiers import RecordHash
from lace.notation.tai import TAI
from lace.records.coordinate import (
    Coordinate,
    HashAddress,
    Prefix,
    VersionChoice,
    parse_address,
    parse_coordinate,
    parse_prefix,
)
from records.strategies import KEY, PATHS, TAIS

TAI_1 = TAI("1640995200:000000000")
TAI_2 = TAI("1640995201:000000000")
HASHES = {kind: [RecordHash.of(kind, bytes([number]) * 32) for number in range(4)] for kind in "BPS"}
OTHER_KEY = "V." + "0" * 43 + ".H3"
V = KEY.verifier
P0, P1, S0, S1 = HASHES["P"][0], HASHES["P"][1], HASHES["S"][0], HASHES["S"][1]

DIGESTS = st.binary(min_size=32, max_size=32)
VERSIONS = st.one_of(
    st.none(),
    st.just(VersionChoice(sealed=False)),
    st.builds(lambda tai: VersionChoice(sealed=False, tai=tai), TAIS),
    st.builds(lambda tai, raw: VersionChoice(sealed=False, tai=tai, hash=RecordHash.of("P", raw)), TAIS, DIGESTS),
    st.just(VersionChoice(sealed=True)),
    st.just(VersionChoice(sealed=True, verifier=V)),
    st.builds(lambda tai: VersionChoice(sealed=True, verifier=V, tai=tai), TAIS),
    st.builds(
        lambda tai, raw: VersionChoice(sealed=True, verifier=V, tai=tai, hash=RecordHash.of("S", raw)), TAIS, DIGESTS
    ),
)


@pytest.mark.clause("110-ADDR-01", "110-ADDR-03", "110-ADDR-07", "110-RES-01")
@given(st.sampled_from("BPS"), DIGESTS)
def test_a_hash_address_is_four_slashes_and_a_hash(kind: str, raw: bytes) -> None:
    record_hash = RecordHash.of(kind, raw)
    address = parse_address(f"////{record_hash}")
    assert address == HashAddress(record_hash)
    assert str(address) == f"////{record_hash}"


@pytest.mark.clause("110-ADDR-02", "110-ADDR-07")
@given(PATHS, PATHS, PATHS, VERSIONS)
def test_a_coordinate_is_read_back_as_it_was_written(
    group: str, app: str, name: str, version: VersionChoice | None
) -> None:
    text = f"//{group}//{app}//{name}{version or ''}"
    coordinate = Coordinate(group=group, app=app, name=name, version=version)
    assert parse_address(text) == parse_coordinate(text) == coordinate
    assert str(coordinate) == text
    assert str(parse_prefix(text)) == text


VERSION_TEXTS = [
    pytest.param("", None, marks=pytest.mark.clause("110-VER-01")),
    pytest.param("/|/plex", VersionChoice(sealed=False), marks=pytest.mark.clause("110-VER-02")),
    pytest.param(f"/|/plex/{TAI_1}", VersionChoice(sealed=False, tai=TAI_1), marks=pytest.mark.clause("110-VER-03")),
    pytest.param(
        f"/|/plex/{TAI_1}/{P0}", VersionChoice(sealed=False, tai=TAI_1, hash=P0), marks=pytest.mark.clause("110-VER-04")
    ),
    pytest.param("/|/seal", VersionChoice(sealed=True), marks=pytest.mark.clause("110-VER-05")),
    pytest.param(f"/|/seal/{V}", VersionChoice(sealed=True, verifier=V), marks=pytest.mark.clause("110-VER-06")),
    pytest.param(
        f"/|/seal/{V}/{TAI_1}",
        VersionChoice(sealed=True, verifier=V, tai=TAI_1),
        marks=pytest.mark.clause("110-VER-07"),
    ),
    pytest.param(
        f"/|/seal/{V}/{TAI_1}/{S0}",
        VersionChoice(sealed=True, verifier=V, tai=TAI_1, hash=S0),
        marks=pytest.mark.clause("110-VER-08"),
    ),
]

# Records of one coordinate: hash, TAI, signer.
CANDIDATES = [
    (P0, TAI_1, None),
    (P1, TAI_2, None),
    (S0, TAI_1, V),
    (S1, TAI_2, V),
    (HASHES["S"][2], TAI_1, V),
    (HASHES["S"][3], TAI_2, OTHER_KEY),
]
TIPS = [HASHES["S"][3], P1, P0, P0, HASHES["S"][3], S1, HASHES["S"][2], S0]


def tip(version: VersionChoice | None) -> RecordHash:
    meant = [one for one in CANDIDATES if version is None or version.admits(*one)]
    return max(meant, key=lambda one: (one[1], one[0]))[0]


@pytest.mark.parametrize(("text", "version"), VERSION_TEXTS)
def test_a_version_selector_says_which_records_are_meant(text: str, version: VersionChoice | None) -> None:
    parsed = parse_coordinate(f"//u//ding//links/1{text}")
    assert parsed.version == version
    expected = TIPS[[param.values[0] for param in VERSION_TEXTS].index(text)]
    assert tip(parsed.version) == expected


@pytest.mark.clause("110-VER-09", "010-TAI-03")
@given(st.lists(st.tuples(TAIS, DIGESTS), min_size=2, max_size=6))
def test_the_tip_has_the_highest_tai_then_the_highest_hash(versions: list[tuple[TAI, bytes]]) -> None:
    records = [(tai, RecordHash.of("P", raw)) for tai, raw in versions]
    highest = max(records, key=lambda record: (record[0], record[1]))
    assert all((record[0].to_ns(), record[1].digest) <= (highest[0].to_ns(), highest[1].digest) for record in records)


REFUSED = [
    pytest.param("////", marks=pytest.mark.clause("110-ADDR-04")),
    pytest.param("////u//ding//links", marks=pytest.mark.clause("110-ADDR-04", "110-ADDR-03")),
    pytest.param(f"////{P0[:-1]}4", marks=pytest.mark.clause("110-ADDR-04")),
    pytest.param(f"////{P0}/|/plex", marks=pytest.mark.clause("110-ADDR-04")),
    pytest.param(f"////{V}", marks=pytest.mark.clause("110-ADDR-04")),
    pytest.param("", marks=pytest.mark.clause("110-ADDR-02")),
    pytest.param("u//ding//links", marks=pytest.mark.clause("110-ADDR-02")),
    pytest.param("/u//ding//links", marks=pytest.mark.clause("110-ADDR-02")),
    pytest.param("//u//ding", marks=pytest.mark.clause("110-ADDR-05")),
    pytest.param("//u//ding//", marks=pytest.mark.clause("110-ADDR-05")),
    pytest.param("//u", marks=pytest.mark.clause("110-ADDR-05")),
    pytest.param("//u////links", marks=pytest.mark.clause("110-ADDR-05")),
    pytest.param("//u//ding//links//1", marks=pytest.mark.clause("110-ADDR-06")),
    pytest.param("//u//ding//links/", marks=pytest.mark.clause("110-ADDR-06", "110-VERB-02")),
    pytest.param("//u//ding//../links", marks=pytest.mark.clause("110-ADDR-06")),
    pytest.param("//u//.//links", marks=pytest.mark.clause("110-ADDR-06")),
    pytest.param("//u#//ding//links", marks=pytest.mark.clause("110-ADDR-06")),
    pytest.param("//u//ding//a{b", marks=pytest.mark.clause("110-ADDR-06")),
    pytest.param("//u//ding//a|b", marks=pytest.mark.clause("110-ADDR-06")),
    pytest.param("//u//ding//a\nb", marks=pytest.mark.clause("110-ADDR-06")),
    pytest.param("//u//ding//e\u0301", marks=pytest.mark.clause("110-ADDR-06")),
    *[
        pytest.param(f"//u//ding//links/1{selector}", marks=pytest.mark.clause("110-VER-10"))
        for selector in [
            "/|", "/|/", "/|plex", "/|/blob", "/|/Plex", "/|/plex/", "/|/plex/now", f"/|/plex/{TAI_1}/",
            f"/|/plex/{TAI_1}/{S0}", f"/|/plex/{TAI_1}/{P0}/", f"/|/plex/{V}", f"/|/seal/{TAI_1}", f"/|/seal/{V}/{S0}",
            f"/|/seal/{V}/{TAI_1}/{P0}", f"/|/seal/{V}/{TAI_1}/{S0}/x", "/|/plex/|/plex", "/x/|/plexx",
        ]
    ],
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_any_other_text_is_no_address(text: str) -> None:
    with pytest.raises(InvalidText):
        parse_address(text)


PREFIXES = [
    ("//", Prefix(), [True] * 5),
    ("//u//", Prefix(group="u"), [True, True, True, True, False]),
    ("//u//ding//", Prefix(group="u", app="ding"), [True, True, True, False, False]),
    ("//u//ding//links/", Prefix(group="u", app="ding", name="links", under=True), [True, False, False, False, False]),
    ("//u//ding//links", Prefix(group="u", app="ding", name="links"), [False, True, False, False, False]),
    ("//u/", Prefix(group="u", under=True), [False, False, False, False, True]),
    ("//u//ding/", Prefix(group="u", app="ding", under=True), [False] * 5),
    ("//u/v//ding//", Prefix(group="u/v", app="ding"), [False, False, False, False, True]),
    (
        "//u//ding//links/|/seal",
        Prefix(group="u", app="ding", name="links", version=VersionChoice(sealed=True)),
        [False, True, False, False, False],
    ),
]
PLACES = [
    ("u", "ding", "links/1"),
    ("u", "ding", "links"),
    ("u", "ding", "linkss"),
    ("u", "dong", "links/1"),
    ("u/v", "ding", "x"),
]


@pytest.mark.clause("110-VERB-02")
@pytest.mark.parametrize(("text", "prefix", "covered"), PREFIXES, ids=[row[0] for row in PREFIXES])
def test_a_prefix_covers_what_lies_under_it(text: str, prefix: Prefix, covered: list[bool]) -> None:
    assert parse_prefix(text) == prefix
    assert str(prefix) == text
    assert [prefix.covers(*place) for place in PLACES] == covered


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "u",
        "///",
        "//u///",
        "//u//ding///",
        "//u//ding//x//",
        "//u//ding//x//y",
        "//u//ding//x//y//z",
        "//u//ding//x/y//",
        "//u//|/plex",
        "//u//ding//x//|/plex",
        "////",
    ],
)
def test_other_prefixes_are_refused(text: str) -> None:
    with pytest.raises(InvalidText):
        parse_prefix(text)


@pytest.mark.parametrize(
    ("group", "app", "name", "under", "space"),
    [
        ("u", "a", "n", False, ("u", "a")),
        ("u", "a", "n", True, ("u", "a")),  # names that begin with n/ lie in one app
        ("u", "a", None, False, ("u", "a")),
        ("u", "a", None, True, ("u", None)),  # apps that begin with a/
        ("u", None, None, False, ("u", None)),
        ("u", None, None, True, (None, None)),  # groups that begin with u/
    ],
)
def test_the_space_of_a_listing_is_the_group_and_app_that_all_below_it_have(
    group: str, app: str | None, name: str | None, under: bool, space: tuple[str | None, str | None]
) -> None:
    assert Prefix(group=group, app=app, name=name, under=under).space == space
