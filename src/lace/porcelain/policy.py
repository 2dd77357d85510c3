"""The policy of a lace in a developer's hands: set it, read it, and what an exchange under it brings (080).

Rule: which version is in force is decided by `lace.people.policyrecords`; this module writes versions and turns what is
in force into the rules of an exchange. A lace with a root never falls back to selecting everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lace.errors import InvalidText, NotFound
from lace.interlace.setup.terms import Rules
from lace.notation.identifiers import RecordHash
from lace.notation.tai import TAI
from lace.people.kinds import (
    PolicyKind,
    PolicyPart,
    QuotaTexts,
    carries_people,
    kind_of,
    likely_mistakes,
    read_policy,
)
from lace.people.policyrecords import (
    PolicyInForce,
    PolicyStanding,
    PolicyVersion,
    policy_in_force,
    version_in_force,
    versions_of,
    withdrawn_versions,
)
from lace.people.root import Root, pin_root, pinned_root
from lace.people.standing import POLICY_APP, admins_in_force
from lace.people.wording import TemplateWords, fill_words, people_rules, shipped
from lace.policy.exposure import Exposure
from lace.policy.operand import Module
from lace.porcelain.ruletemplates import template_texts, templates
from lace.records.keys import SigningKey
from lace.records.tip import TipPolicy
from lace.runtime.host.quotas import Quotas, quotas_with
from lace.store.base import RecordStore
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.porcelain.lace import Lace

TEMPLATE = "members"  # the one that only a policy has a use for as it is
POLICY_HEADER = ("Policy", "1")


def policy_templates() -> dict[str, str]:
    """The names of the templates that a policy may be made of, and what each is for."""
    return {one.name: one.summary for one in templates()}


def template_policy(name: str, words: TemplateWords) -> dict[PolicyKind, str]:
    """The texts of a template, with the rules by which people records travel."""
    if name == TEMPLATE:
        files = {PolicyKind.SELECT: "lace", PolicyKind.EXPOSE: "lace", PolicyKind.TIP: "toml"}
        texts = {kind: shipped("templates", f"{name}.{kind}.{suffix}") for kind, suffix in files.items()}
    else:
        select, expose = template_texts(name)
        texts = {
            PolicyKind.SELECT: f"{select}@people\n",
            PolicyKind.EXPOSE: f"{expose}{shipped('rules', 'shown.lace')}",
        }
    return {kind: fill_words(text, words, kind) for kind, text in texts.items()}


def policy_texts(sources: Sequence[str], words: TemplateWords) -> dict[PolicyKind, str]:
    """The texts of templates and files, in which `@people` and the other words of templates are filled in."""
    found: dict[PolicyKind, str] = {}
    for source in sources:
        if source in policy_templates() and not Path(source).is_file():
            found |= template_policy(source, words)
            continue
        path = Path(source)
        if not path.is_file():
            names = ", ".join(policy_templates())
            raise NotFound(f"{source} is neither a file nor a template; the templates are {names}")
        written = path.read_text(encoding="utf-8")
        kind = kind_of("".join(line for line in written.splitlines(True) if line.strip() != "@people"), path.name)
        found[kind] = fill_words(written, words, kind)
    return found


@dataclass(frozen=True, slots=True)
class PolicySet:
    """What became of one kind of a policy that was set."""

    kind: PolicyKind
    hash: RecordHash
    is_new: bool  # False: it said the same before


def mistakes_in(texts: Mapping[PolicyKind, str], root: Root) -> list[str]:
    """What the author of these texts can hardly mean; raises for what cannot be read."""
    found: list[str] = []
    for kind, text in texts.items():
        read_policy(kind, text)
        found += [str(one) for one in likely_mistakes(kind, text, root)]
        if kind is PolicyKind.SELECT and not carries_people(text, root.group):
            found.append(
                f"policy {kind}: it does not select the records under //{root.group}//policy, so nobody would get it; "
                "add a line that says @people"
            )
    return found


def set_policy(lace: Lace, texts: Mapping[PolicyKind, str], root: Root, sign: SigningKey) -> list[PolicySet]:
    """Sign these texts as the policy of a lace, each a new version of its kind, and pin the root if none is pinned.

    Only an admin in force may; KeyError is never raised for a kind that is not among the texts: it stays as it is.
    """
    parts = {kind: read_policy(kind, text) for kind, text in texts.items()}
    pinned = pinned_root(lace.store)
    if sign.verifier not in (admins_in_force(lace.store, root) if pinned is not None else {root.founder}):
        raise InvalidText(
            f"only an admin of //{root.group} may set its policy", rule="policy-admin", found=str(sign.verifier)
        )
    pin_root(lace.store, root)
    before = policy_in_force(lace.store, lace.tip_policy())
    assert before is not None
    found = []
    for kind in parts:
        version = before.versions.get(kind)
        if version is not None and version.text == texts[kind]:
            found.append(PolicySet(kind, version.hash, False))
            continue
        written = lace.put(
            texts[kind].encode(),
            group=root.group,
            app=POLICY_APP,
            name=kind,
            sign=sign,
            headers=[POLICY_HEADER],
            tai=_after(lace, root, kind),
        )
        found.append(PolicySet(kind, written, True))
    return found


def _after(lace: Lace, root: Root, kind: PolicyKind) -> str | None:
    """A time after that of the newest version an admin wrote, if our clock is not past it; None: now."""
    tips = lace.tip_policy()
    newest = next(lace.store.newest_first(root.group, POLICY_APP, kind, until=tips.until), None)
    now = lace.clock.tai()
    return str(TAI(newest.tai).plus_ns(1)) if newest is not None and newest.tai >= now else None


def policy_log(lace: Lace, kinds: Iterable[PolicyKind] = tuple(PolicyKind)) -> list[PolicyVersion]:
    """Every version of a lace's policy, newest first, with why it is in force or is not."""
    root = pinned_root(lace.store)
    if root is None:
        return []
    admins, tips = admins_in_force(lace.store, root), lace.tip_policy()
    found = []
    for kind in kinds:
        now = version_in_force(lace.store, root, admins, kind, tips)
        withdrawn = withdrawn_versions(lace.store, root, admins, kind, tips)
        for one in versions_of(lace.store, root, admins, kind, tips):
            if one.hash in withdrawn:
                one = replace(one, standing=PolicyStanding.WITHDRAWN)
            elif now is not None and one.hash == now.hash:
                one = replace(one, standing=PolicyStanding.IN_FORCE)
            found.append(one)
    return sorted(found, key=lambda one: (one.tai, one.hash), reverse=True)


# what an exchange under it brings


@dataclass(frozen=True, slots=True)
class LacePolicy:
    """The policy of a lace, read: what it brings to an exchange."""

    in_force: PolicyInForce
    parts: Mapping[PolicyKind, PolicyPart]

    @property
    def is_waiting(self) -> bool:
        """Whether the policy itself has yet to come: until then only people records are exchanged."""
        return PolicyKind.SELECT not in self.parts

    @property
    def module(self) -> Module:
        """What it selects."""
        part = self.parts.get(PolicyKind.SELECT)
        return part if isinstance(part, Module) else people_selector(self.in_force.root)

    @property
    def exposures(self) -> tuple[Exposure, ...]:
        """What it shows; before there is a policy, people records only."""
        part = self.parts.get(PolicyKind.EXPOSE)
        if isinstance(part, Exposure):
            return (part,)
        return (people_exposure(self.in_force.root),) if self.is_waiting else ()

    @property
    def rules(self) -> Rules:
        """What an exchange is run by."""
        return Rules(self.module, self.exposures)

    @property
    def quotas(self) -> tuple[tuple[str, str], ...]:
        """The quotas, as `lace serve --quota` takes them."""
        part = self.parts.get(PolicyKind.QUOTA)
        return part.amounts if isinstance(part, QuotaTexts) else ()


def people_selector(root: Root) -> Module:
    """The selector of people records alone."""
    return Module.author(people_rules(root, PolicyKind.SELECT), name="people.lace")


def people_exposure(root: Root) -> Exposure:
    """An exposure of people records alone, to anybody."""
    return Exposure.author(fill_words(shipped("rules", "shown.lace"), TemplateWords(root=root)), name="shown.lace")


def read_lace_policy(store: RecordStore, tips: TipPolicy) -> LacePolicy | None:
    """The policy in force in a lace, read; None if nobody pinned a root there."""
    in_force = policy_in_force(store, tips)
    if in_force is None:
        return None
    parts = {kind: read_policy(kind, version.text) for kind, version in in_force.versions.items()}
    return LacePolicy(in_force, parts)


def policy_quotas(policy: LacePolicy | None) -> Quotas | None:
    """The quotas of a policy; None if it has none, or there is no policy."""
    return quotas_with(policy.quotas) if policy is not None else None
