"""`lace policy set|show|edit|log|check`: the policy that a lace carries as signed records.

Rule: what is signed was checked first: an error or a likely mistake ends the command before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lace.cli.options.arguments import lace_argument, opened
from lace.cli.options.groups import SummaryGroup
from lace.cli.output.failure import ExitCode
from lace.cli.output.output import json_option, print_fields, print_json, print_json_lines, say
from lace.cli.output.tables import print_table
from lace.cli.output.text import visible
from lace.cli.output.words import count_of, short_hash
from lace.errors import InvalidInput, InvalidText, KeyUnavailable, NotFound

if TYPE_CHECKING:
    from lace.notation.identifiers import Verifier
    from lace.people.policyrecords import PolicyVersion
    from lace.people.root import Root
    from lace.porcelain.lace import Lace
    from lace.porcelain.policy import PolicySet
    from lace.records.keys import SigningKey
    from lace.store.base import RecordStore

F = TypeVar("F", bound=Callable[..., Any])
KINDS = ("select", "expose", "receive", "tip", "keep", "quota")


@click.group("policy", cls=SummaryGroup)
def command() -> None:
    """Set, show, edit and check the policy that a lace carries.

    A policy is signed records under //GROUP//policy: what is selected (select), what a peer may see (expose), what is
    taken from peers (receive), who may move a tip (tip), what `lace gc` keeps (keep), and quotas (quota). They travel
    with the other records, so nobody copies files. Only versions signed by an admin count. The first admin is the
    founder, whose key `lace policy set` pins in the lace.
    """


def _admin_option(function: F) -> F:
    return click.option(
        "--admin",
        metavar="KEY",
        help="Sign with this key of the ring; the first policy founds the group, and its signer is the founder. "
        "Default: the one key of "
        "the ring that may.",
    )(function)


@command.command("set")
@lace_argument
@click.argument("sources", nargs=-1, required=True, metavar="TEMPLATE|FILE...")
@click.option("--group", help="The group that the policy rules; needed once, when it is founded.")
@click.option(
    "--app", "apps", multiple=True, metavar="APP[,APP…]", help="For a template: the apps it is about; repeatable."
)
@click.option(
    "--count", type=click.IntRange(min=1), default=100, show_default=True, help="For newest-n: how many are kept."
)
@_admin_option
@click.option("--anyway", is_flag=True, help="Sign it in spite of likely mistakes.")
@json_option
def set_(
    path: Path,
    sources: Sequence[str],
    group: str | None,
    apps: Sequence[str],
    count: int,
    admin: str | None,
    anyway: bool,
    as_json: bool,
) -> ExitCode:
    """Sign rules as the policy of a lace.

    A TEMPLATE (`lace rules list`) brings a selector, an exposure and what else it needs. A FILE is a rule file or TOML
    text of one kind, told by what it defines; the words @group, @founder, @app and @people in it are filled in. Kinds
    that are not given stay as they are. The first policy pins the group and the key of its founder in this lace.
    """
    from lace.people.wording import TemplateWords
    from lace.porcelain.policy import mistakes_in, policy_texts, set_policy

    with opened(path, write=True) as lace:
        root, key = _root_and_key(lace, group, admin)
        names = tuple(name for word in apps for name in word.split(",") if name)
        words = TemplateWords(root=root, apps=names, others={"admin": root.founder, "count": str(count)})
        texts = policy_texts(sources, words)
        _refuse_mistakes(mistakes_in(texts, root), anyway)
        done = set_policy(lace, texts, root, key)
    _print_set(done, root, as_json)
    return ExitCode.OK


def _root_and_key(lace: Lace, group: str | None, admin: str | None) -> tuple[Root, SigningKey]:
    """The root of a lace, or the one that it is to have, and the key that signs for it."""
    from lace.cli.commands.key import user_ring
    from lace.people.root import Root, pinned_root
    from lace.people.standing import admins_in_force

    root = pinned_root(lace.store)
    if root is not None:
        if group not in (None, root.group):
            raise click.UsageError(f"this lace is ruled as //{root.group}, not //{group}")
        return root, user_ring().load(admin or _own_admin(admins_in_force(lace.store, root), root))
    if group is None:
        raise click.UsageError("name the group that the policy rules: --group club")
    key = user_ring().load(admin or _only_key())
    return Root(group, key.verifier), key


def _own_admin(admins: Iterable[Verifier], root: Root) -> str:
    from lace.cli.commands.key import ring_names

    mine = [name for verifier, name in ring_names().items() if verifier in set(admins)]
    if not mine:
        error = KeyUnavailable(f"no key of your ring is an admin of //{root.group}")
        error.add_note("an admin sets the policy; ask one, or import the admin's key with `lace key import`")
        raise error
    if len(mine) > 1:
        raise click.UsageError(f"several of your keys are admins: choose with --admin {' or '.join(sorted(mine))}")
    return mine[0]


def _only_key() -> str:
    from lace.cli.commands.key import ring_names

    names = sorted(ring_names().values())
    if not names:
        error = KeyUnavailable("founding a group needs a key, and there is none in your ring")
        error.add_note("create one with `lace key new NAME`")
        raise error
    if len(names) > 1:
        raise click.UsageError(f"the key that sets the first policy founds the group: choose one with --admin "
                               f"({', '.join(names)})")  # fmt: skip
    return names[0]


def _refuse_mistakes(found: Sequence[str], anyway: bool) -> None:
    for one in found:
        say(f"{visible(one)}\n", err=True)
    if found and not anyway:
        said = count_of(len(found), "likely mistake")
        error = InvalidText(f"the policy was not signed: {said}", rule="policy-lint")
        error.add_note("correct it, or sign it all the same with --anyway")
        raise error


def _print_set(done: Sequence[PolicySet], root: Root, as_json: bool) -> None:
    if as_json:
        print_json_lines(
            {"kind": one.kind, "hash": one.hash, "is_new": one.is_new, "group": root.group} for one in done
        )
        return
    for one in done:
        state = "signed" if one.is_new else "unchanged"
        say(f"//{root.group}//policy//{one.kind}  {state}  {short_hash(one.hash)}")


@command.command("show")
@lace_argument
@click.argument("kind", type=click.Choice(KINDS), required=False)
@json_option
def show(path: Path, kind: str | None, as_json: bool) -> ExitCode:
    """Show the policy in force; with a KIND, its text.

    KIND is select, expose, receive, tip, keep or quota.
    """
    from lace.people.kinds import PolicyKind

    with opened(path) as lace:
        policy, told = lace.policy(), teller(lace.store)
    if policy is None:
        say(f"{path} carries no policy; set one with `lace policy set {path} members --group …`", err=True)
        return ExitCode.BAD
    in_force = policy.in_force
    if kind is not None:
        text = in_force.text(PolicyKind(kind))
        if text is None:
            raise NotFound(f"the policy of //{in_force.root.group} says nothing about {kind}")
        if as_json:
            print_json(_version_json(in_force.versions[PolicyKind(kind)]) | {"text": text})
        else:
            say(visible(text, goes_on=True), nl=False)
        return ExitCode.OK
    if as_json:
        print_json(
            {
                "group": in_force.root.group,
                "founder": in_force.root.founder,
                "admins": sorted(in_force.admins),
                "policy": [_version_json(one) for one in in_force.versions.values()],
            }
        )
        return ExitCode.OK
    admins = ", ".join(sorted(map(told, in_force.admins)))
    print_fields([("group", f"//{in_force.root.group}"), ("founder", told(in_force.root.founder)), ("admins", admins)])
    if not in_force.versions:
        say("no policy of this group has come yet; until it does, only records about people are exchanged")
        return ExitCode.OK
    _print_versions(in_force.versions.values(), told, ("kind", "since", "by"))
    return ExitCode.OK


@command.command("log")
@lace_argument
@click.argument("kind", type=click.Choice(KINDS), required=False)
@click.option("--changes", is_flag=True, help="Show the lines that each version added and removed.")
@json_option
def log(path: Path, kind: str | None, changes: bool, as_json: bool) -> ExitCode:
    """List every version of the policy, newest first: who signed it, when, what changed, and whether it counts."""
    from lace.people.kinds import PolicyKind
    from lace.people.policyrecords import PolicyStanding
    from lace.porcelain.policy import policy_log

    with opened(path) as lace:
        found, told = policy_log(lace, [PolicyKind(kind)] if kind else tuple(PolicyKind)), teller(lace.store)
    counted = (PolicyStanding.IN_FORCE, PolicyStanding.REPLACED)
    changed: dict[str, Changed] = {one.hash: _changed(one, found, counted) for one in found}
    if as_json:
        print_json_lines(
            {
                **_version_json(one),
                "standing": one.standing,
                "added": changed[one.hash][0],
                "removed": changed[one.hash][1],
            }
            for one in found
        )
        return ExitCode.OK
    if not found:
        say(f"{path} holds no policy", err=True)
        return ExitCode.BAD
    if not changes:
        _print_versions(found, told, ("kind", "since", "by", "changes", "standing"), changed)
        return ExitCode.OK
    for one in found:
        who = told(one.signer) if one.signer else "unsigned"
        say(f"{one.kind}  {_day(one.tai)}  {visible(who)}  {one.standing}  {short_hash(one.hash)}")
        for mark, lines in zip("+-", changed[one.hash], strict=True):
            for line in lines:
                say(f"  {mark} {visible(line)}")
    return ExitCode.OK


Changed = tuple[list[str], list[str]]


def _changed(version: PolicyVersion, found: Sequence[PolicyVersion], counted: Sequence[str]) -> Changed:
    """The lines that a version added and removed, against the one that counted before it."""
    older = [one for one in found if one.kind == version.kind and (one.tai, one.hash) < (version.tai, version.hash)]
    before = next((_lines(one.text) for one in older if one.standing in counted), [])
    now = _lines(version.text)
    return [line for line in now if line not in before], [line for line in before if line not in now]


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


@command.command("edit")
@lace_argument
@click.argument("kind", type=click.Choice(KINDS))
@_admin_option
@click.option("--anyway", is_flag=True, help="Sign it in spite of likely mistakes.")
@json_option
def edit(path: Path, kind: str, admin: str | None, anyway: bool, as_json: bool) -> ExitCode:
    """Open one kind of the policy in $EDITOR, check it and sign it.

    If the text has errors, nothing is signed and the text is kept in a file beside the lace.
    """
    from lace.people.kinds import PolicyKind
    from lace.porcelain.policy import mistakes_in, set_policy

    wanted = PolicyKind(kind)
    with opened(path, write=True) as lace:
        policy = lace.policy()
        if policy is None:
            raise NotFound(f"{path} carries no policy to edit; set one with `lace policy set`")
        root, key = _root_and_key(lace, None, admin)
        before = policy.in_force.text(wanted) or ""
        suffix = ".toml" if wanted in (PolicyKind.TIP, PolicyKind.QUOTA) else ".lace"
        written = click.edit(before, extension=suffix)
        if written is None or written == before:
            say("nothing changed", err=True)
            return ExitCode.OK
        try:
            _refuse_mistakes(mistakes_in({wanted: written}, root), anyway)
        except InvalidInput as error:
            kept = path.with_name(f"{path.name}.{kind}{suffix}")
            kept.write_text(written, encoding="utf-8")
            error.add_note(f"your text is in {kept}; `lace policy set {path} {kept}` signs it once it is right")
            raise
        done = set_policy(lace, {wanted: written}, root, key)
    _print_set(done, root, as_json)
    return ExitCode.OK


@command.command("check")
@lace_argument
@json_option
def check(path: Path, as_json: bool) -> ExitCode:
    """Check the policy that a lace carries: what is missing, mistaken, unreadable or not signed by an admin.

    The exit code is 1 if there is any finding.
    """
    with opened(path) as lace:
        found = list(findings(lace, path))
    for one in found:
        if as_json:
            print_json({"finding": one})
        else:
            say(f"{visible(one)}\n")
    if not as_json:
        say(f"{path}: {count_of(len(found), 'finding') if found else 'the policy is in order'}")
    return ExitCode.BAD if found else ExitCode.OK


def findings(lace: Lace, path: Path) -> Iterable[str]:
    from lace.people.kinds import PolicyKind
    from lace.people.policyrecords import PolicyStanding
    from lace.porcelain.policy import mistakes_in, policy_log

    policy = lace.policy()
    if policy is None:
        yield f"this lace carries no policy; set one with `lace policy set {path} members --group …`"
        return
    in_force = policy.in_force
    for kind in (PolicyKind.SELECT, PolicyKind.EXPOSE):
        if kind not in in_force.versions:
            what = "nothing but records about people is exchanged" if kind is PolicyKind.SELECT else "nothing is sent"
            yield f"the policy has no {kind} rules, so {what}"
    yield from mistakes_in({kind: version.text for kind, version in in_force.versions.items()}, in_force.root)
    for version in policy_log(lace):
        counted = (PolicyStanding.IN_FORCE, PolicyStanding.REPLACED, PolicyStanding.WITHDRAWN)
        if version.standing not in counted:
            who = version.signer or "nobody"
            yield f"policy {version.kind} of {_day(version.tai)}, signed by {who}, does not count: {version.standing}"


def teller(store: RecordStore) -> Callable[[str], str]:
    """How a lace names keys to people."""
    from lace.cli.options.names import Namer

    return Namer.of(store).shown


def _day(tai: str) -> str:
    from lace.cli.output.words import shown_time

    return shown_time(tai)


def _version_json(version: PolicyVersion) -> dict[str, object]:
    return {"kind": version.kind, "hash": version.hash, "signer": version.signer, "tai": version.tai}


def _print_versions(
    versions: Iterable[PolicyVersion],
    told: Callable[[str], str],
    columns: Sequence[str],
    changed: Mapping[str, Changed] | None = None,
) -> None:
    def row(one: PolicyVersion) -> list[str]:
        added, removed = (changed or {}).get(one.hash, ([], []))
        cells = {
            "kind": str(one.kind),
            "since": _day(one.tai),
            "by": told(one.signer) if one.signer else "unsigned",
            "changes": f"+{len(added)} -{len(removed)} lines",
            "standing": str(one.standing),
        }
        return [cells[column] for column in columns]

    print_table(columns, map(row, versions))
