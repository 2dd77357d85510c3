"""Reading, hashing and verifying records, against libsecp256k1 and BLAKE3 themselves, all in one run.

python bench/records.py [--quick]
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from blake3 import blake3
from coincurve import PrivateKey
from coincurve._libsecp256k1 import ffi, lib
from report import Report

from lace.facts.derive import field_occurrences, link_occurrences
from lace.notation.digest import digest
from lace.notation.factline import parse_fact
from lace.notation.tai import TAI
from lace.records.frame import split_records
from lace.records.keys import SigningKey, verify, verify_batch
from lace.records.model import Blob, Plex, Seal
from lace.records.parse import parse_record
from lace.records.validate import signature_task, validate
from lace.records.write import encode_record

Task = tuple[bytes, bytes, bytes]
# A busy machine disturbs the processor time of one thread least; work in several threads needs the clock on the wall.
CPU, WALL = time.thread_time, time.perf_counter
KEY = SigningKey(digest(b"bench"))


def best_rates(rounds: int, clock: Callable[[], float], **works: Callable[[], int]) -> dict[str, float]:
    """Items a second of each work, the best of several rounds taken in turn, so that a disturbance hits them alike."""
    best = dict.fromkeys(works, 0.0)
    for _ in range(rounds):
        for name, work in works.items():
            started = clock()
            count = work()
            best[name] = max(best[name], count / (clock() - started))
    return best


def library_verify(tasks: list[Task]) -> int:
    """libsecp256k1's own Schnorr verification, called the same way as ours: from texts of bytes, through cffi."""
    context = lib.secp256k1_context_static
    point = ffi.new("secp256k1_xonly_pubkey *")
    parse, check = lib.secp256k1_xonly_pubkey_parse, lib.secp256k1_schnorrsig_verify
    for verifier_x, msg32, sig64 in tasks:
        if not (parse(context, point, verifier_x) and check(context, sig64, msg32, 32, point)):
            raise AssertionError("a good signature was refused")
    return len(tasks)


def our_verify(tasks: list[Task]) -> int:
    """One by one."""
    for task in tasks:
        verify(*task)
    return len(tasks)


def our_batch(tasks: list[Task]) -> int:
    """As an import does it: many by one sum."""
    if any(verify_batch(tasks)):
        raise AssertionError("a good signature was refused")
    return len(tasks)


def library_tasks(count: int) -> list[Task]:
    """Signatures of libsecp256k1's own scheme."""
    key = PrivateKey(digest(b"bench"))
    messages = [digest(number.to_bytes(4, "big")) for number in range(count)]
    return [(key.public_key.format()[1:], message, key.sign_schnorr(message)) for message in messages]


def in_two_threads(work: Callable[[list[Task]], int], tasks: list[Task]) -> int:
    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(work, [tasks, tasks]))


def verifying(report: Report) -> None:
    count, rounds = (300, 6) if report.quick else (1000, 15)
    messages = [digest(number.to_bytes(4, "big")) for number in range(count)]
    ours = [(KEY.verifier.digest, message, KEY.sign(message)) for message in messages]
    theirs = library_tasks(count)
    rates = best_rates(
        rounds,
        CPU,
        theirs=lambda: library_verify(theirs),
        ours=lambda: our_verify(ours),
        batch=lambda: our_batch(ours),
    )
    walls = best_rates(
        2 * rounds,
        WALL,
        one=lambda: our_verify(ours),
        theirs_two=lambda: in_two_threads(library_verify, theirs),
        ours_two=lambda: in_two_threads(our_verify, ours),
    )
    report.row("libsecp256k1 Schnorr verify, one thread", rates["theirs"], 1.0)
    report.row("verify, one thread", rates["ours"], rates["ours"] / rates["theirs"])
    report.row("verify in batches, one thread", rates["batch"], rates["batch"] / rates["theirs"])
    report.row("libsecp256k1 Schnorr verify, two threads", walls["theirs_two"], walls["theirs_two"] / rates["theirs"])
    report.row("verify, two threads", walls["ours_two"], walls["ours_two"] / rates["theirs"])
    report.at_least("verify, of libsecp256k1's own", wanted=0.75, got=rates["ours"] / rates["theirs"])
    report.at_least("two threads, of one", wanted=1.6, got=walls["ours_two"] / walls["one"], unit="×")


def hashing(report: Report) -> None:
    count, rounds = (200, 5) if report.quick else (2000, 9)
    data = bytes(range(256)) * 256
    stored = encode_record(Blob(data))

    def raw() -> int:
        for _ in range(count):
            blake3(data).digest()
        return count

    def ours() -> int:
        for _ in range(count):
            validate(stored)
        return count

    rates = best_rates(rounds, CPU, raw=raw, ours=ours)
    report.row("BLAKE3 of 64 KB", rates["raw"], 1.0)
    report.row("validate a 64 KB Blob", rates["ours"], rates["ours"] / rates["raw"])
    report.at_least("parse and hash of 64 KB Blobs, of BLAKE3 alone", wanted=0.5, got=rates["ours"] / rates["raw"])


def sealed_kilobyte(number: int) -> Seal:
    link = ("+Link", f"source {Blob(b'source').hash}")
    plex = Plex(
        group="u/people", app="ding", name=f"links/{number}", tai=TAI.from_ns(1_640_995_200_000_000_000 + number),
        headers=(link, ("Content-Type", "text/plain")), blob=Blob(number.to_bytes(4, "big") * 256),
    )  # fmt: skip
    return KEY.seal(plex, aux=b"\x01" * 32)


def sealed_records(report: Report) -> None:
    count, rounds = (300, 4) if report.quick else (2000, 7)
    stored = [encode_record(sealed_kilobyte(number)) for number in range(count)]
    stream = b"".join(stored)
    records = [validate(one) for one in stored]
    limits_default = (validate.__kwdefaults__ or {})["limits"]

    def each(work: Callable[[bytes], object]) -> Callable[[], int]:
        def run() -> int:
            for one in stored:
                work(one)
            return count

        return run

    def facts() -> int:
        for valid in records:
            link_occurrences(field_occurrences(valid))
        return count

    def tasks() -> int:
        for valid in records:
            signature_task(valid)
        return count

    rates = best_rates(
        rounds,
        CPU,
        split=lambda: len(list(split_records(stream))),
        parse=each(lambda one: validate(one, verify_signature=False)),
        grammar=each(lambda one: parse_record(one, limits_default)),
        facts=facts,
        tasks=tasks,
        whole=each(validate),
    )
    texts = {
        "split": "delimit sealed 1 KB records of a stream",
        "parse": "parse and hash sealed 1 KB records, signature left out",
        "grammar": "  the same by the rule-by-rule grammar",
        "facts": "fields and links of a sealed record",
        "tasks": "what a sealed record asks to be verified",
        "whole": "validate sealed 1 KB records, signature included",
    }
    for name, text in texts.items():
        report.row(text, rates[name], "")
    without = sum(1e6 / rates[name] for name in ("split", "parse", "facts", "tasks"))
    report.row("microseconds a sealed record costs beside its signature", without, "")


def fact_lines(report: Report) -> None:
    count = 2000 if report.quick else 20_000
    target = Blob(b"").hash
    line = f"AdvertisedField('{target}','Opq_A','Group','0','people')".encode()
    rates = best_rates(5, CPU, lines=lambda: len([parse_fact(line, 1024) for _ in range(count)]))
    report.row("fact lines parsed", rates["lines"], "")


def main() -> None:
    report = Report.start("records", "Records, keys and facts", columns=["what", "per second", "ratio"])
    verifying(report)
    hashing(report)
    sealed_records(report)
    fact_lines(report)
    report.note("one thread by its processor time, two by the clock on the wall; the best of several rounds each")
    report.finish()


if __name__ == "__main__":
    main()
