"""libsecp256k1, from whichever wheel carries it for this Python.

Rule: a binding is cffi's (ffi, lib), or (None, None), and then the exact arithmetic serves. `coincurve` is preferred:
its calls were compiled. It has no wheel for Python 3.14 yet; `wallycore` has, exports the same library's functions, and
cffi calls them by the declarations below.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from lace.notation.compiled import IS_PURE

# What `curve` calls, as secp256k1.h and secp256k1_recovery.h declare it.
_DECLARATIONS = """
typedef struct secp256k1_context_struct secp256k1_context;
typedef struct { unsigned char data[64]; } secp256k1_pubkey;
typedef struct { unsigned char data[65]; } secp256k1_ecdsa_recoverable_signature;
secp256k1_context *secp256k1_context_create(unsigned int flags);
void secp256k1_context_destroy(secp256k1_context *ctx);
int secp256k1_context_randomize(secp256k1_context *ctx, const unsigned char *seed32);
int secp256k1_ec_pubkey_parse(const secp256k1_context *ctx, secp256k1_pubkey *pubkey, const unsigned char *input,
    size_t inputlen);
int secp256k1_ec_pubkey_serialize(const secp256k1_context *ctx, unsigned char *output, size_t *outputlen,
    const secp256k1_pubkey *pubkey, unsigned int flags);
int secp256k1_ec_pubkey_cmp(const secp256k1_context *ctx, const secp256k1_pubkey *one, const secp256k1_pubkey *two);
int secp256k1_ec_pubkey_create(const secp256k1_context *ctx, secp256k1_pubkey *pubkey, const unsigned char *seckey);
int secp256k1_ec_pubkey_combine(const secp256k1_context *ctx, secp256k1_pubkey *out,
    const secp256k1_pubkey * const *ins, size_t n);
int secp256k1_ec_seckey_negate(const secp256k1_context *ctx, unsigned char *seckey);
int secp256k1_ec_seckey_tweak_add(const secp256k1_context *ctx, unsigned char *seckey, const unsigned char *tweak32);
int secp256k1_ec_seckey_tweak_mul(const secp256k1_context *ctx, unsigned char *seckey, const unsigned char *tweak32);
int secp256k1_ecdsa_recoverable_signature_parse_compact(const secp256k1_context *ctx,
    secp256k1_ecdsa_recoverable_signature *sig, const unsigned char *input64, int recid);
int secp256k1_ecdsa_recover(const secp256k1_context *ctx, secp256k1_pubkey *pubkey,
    const secp256k1_ecdsa_recoverable_signature *sig, const unsigned char *msghash32);
"""

Binding = tuple[Any, Any]
NOTHING: Binding = (None, None)


def compiled_binding() -> Binding:
    """The functions that coincurve compiled."""
    try:
        from coincurve._libsecp256k1 import ffi, lib
    except ImportError:
        return NOTHING
    return ffi, lib


def declared_binding() -> Binding:
    """The functions of the library inside wallycore, by the declarations above."""
    spec = find_spec("_wallycore")
    if spec is None or spec.origin is None:
        return NOTHING
    try:
        from cffi import FFI

        declared = FFI()
        declared.cdef(_DECLARATIONS)
        library = declared.dlopen(spec.origin)
        library.secp256k1_ecdsa_recover  # noqa: B018 - looked up now: a build may hide its functions
    except (ImportError, OSError, AttributeError):
        return NOTHING
    return declared, library


def binding() -> Binding:
    """The best that is installed."""
    if IS_PURE:
        return NOTHING
    found = compiled_binding()
    return found if found != NOTHING else declared_binding()
