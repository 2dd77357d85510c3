"""Man pages of all commands, from the same texts as --help.

Rule: nothing is written here by hand, so that a page cannot say anything else than the command does.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

_LEADING = ("-", "'", ".")


def man_pages(root: click.Group, ctx: click.Context, version: str) -> Iterator[tuple[str, str]]:
    """The name and the text of each page: `lace.1`, `lace-put.1` and so on."""
    yield "lace.1", _page(root, ctx, "lace", version, _overview(root, ctx))
    for name in root.list_commands(ctx):
        command = root.get_command(ctx, name)
        if command is not None:
            inner = click.Context(command, info_name=name, parent=ctx)
            yield f"lace-{name}.1", _page(command, inner, f"lace-{name}", version, _see_also(["lace"]))


def _page(command: click.Command, ctx: click.Context, name: str, version: str, ending: list[str]) -> str:
    summary, _, rest = _paragraphs(command.help or "").partition("\n\n")
    lines = [f'.TH "{name.upper()}" "1" "" "{_escaped(version)}" "Lace"', ".SH NAME"]
    lines += [f"{_escaped(name)} \\- {_escaped(summary.removesuffix('.'))}", ".SH SYNOPSIS", *_synopsis(command, ctx)]
    if rest:
        lines += [".SH DESCRIPTION", *_described(rest)]
    lines += _options(command, ctx)
    if isinstance(command, click.Group) and ctx.parent is not None:
        lines += [".SH COMMANDS"]
        for inner_name in command.list_commands(ctx):
            inner = command.get_command(ctx, inner_name)
            if inner is not None:
                inner_ctx = click.Context(inner, info_name=inner_name, parent=ctx)
                lines += [f'.SS "{_escaped(f"{ctx.command_path} {inner_name}")}"', *_synopsis(inner, inner_ctx)]
                lines += [".PP", *_described(_paragraphs(inner.help or "")), *_listed(inner, inner_ctx)]
    return "\n".join([*lines, *ending]) + "\n"


def _synopsis(command: click.Command, ctx: click.Context) -> list[str]:
    words = " ".join(command.collect_usage_pieces(ctx))
    return [f".B {_escaped(ctx.command_path)}", _escaped(words) or "\\&"]


def _options(command: click.Command, ctx: click.Context) -> list[str]:
    listed = _listed(command, ctx)
    return [".SH OPTIONS", *listed] if listed else []


def _listed(command: click.Command, ctx: click.Context) -> list[str]:
    lines = []
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is not None and record[1]:
            lines += [".TP", f".B {_escaped(record[0])}", _escaped(" ".join(record[1].split()))]
    return lines


def _overview(root: click.Group, ctx: click.Context) -> list[str]:
    lines = [".SH COMMANDS"]
    names = root.list_commands(ctx)
    for name in names:
        command = root.get_command(ctx, name)
        if command is not None:
            summary = _paragraphs(command.help or "").partition("\n\n")[0]
            lines += [".TP", f".BR lace\\-{_escaped(name)} (1)", _escaped(summary)]
    return lines


def _see_also(names: list[str]) -> list[str]:
    return [".SH SEE ALSO", ", ".join(f"\\fB{_escaped(name)}\\fR(1)" for name in names)]


def _paragraphs(text: str) -> str:
    """A docstring without its indentation; a block after \\b keeps its lines."""
    from inspect import cleandoc

    found = []
    for paragraph in cleandoc(text).split("\n\n"):
        kept = paragraph.startswith("\b")
        found.append(paragraph if kept else " ".join(paragraph.split()))
    return "\n\n".join(found)


def _described(text: str) -> list[str]:
    lines: list[str] = []
    for number, paragraph in enumerate(text.split("\n\n")):
        lines += [".PP"] if number else []
        if paragraph.startswith("\b"):
            lines += [".nf", *map(_escaped, paragraph.split("\n")[1:]), ".fi"]
        else:
            lines.append(_escaped(paragraph))
    return lines


def _escaped(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if text.startswith(_LEADING) else escaped
