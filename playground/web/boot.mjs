// Lace in Pyodide: the same few steps in a browser's worker and under node.
import { loadPyodide } from "./pyodide/pyodide.mjs";
import { blake3 } from "./noble/hashes/blake3.js";
import { Point } from "./noble/secp256k1/index.js";

const encoder = new TextEncoder();
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

// A hasher that can be asked more than once: noble's own is used up by its first digest.
class Hasher {
  constructor(context) {
    this.hasher = blake3.create(context ? { context: encoder.encode(context) } : {});
  }

  update(bytes) { this.hasher.update(bytes); }

  digest(length) { return this.hasher.clone().xof(length); }
}

function number(bytes) {
  let text = "0x";
  for (const byte of bytes) text += byte.toString(16).padStart(2, "0");
  return BigInt(text);
}

function multiple(point, scalar) {
  return scalar === 0n ? Point.ZERO : point.multiply(scalar, false);
}

// s·G − e·P for the even-y point P at x = px, compressed; undefined if there is no P or the result is infinity.
function combinePoints(px, s, e) {
  let point;
  try {
    point = Point.fromBytes(Uint8Array.of(2, ...px));
  } catch {
    return undefined;
  }
  const back = (ORDER - (number(e) % ORDER)) % ORDER;
  const found = multiple(Point.BASE, number(s) % ORDER).add(multiple(point, back));
  return found.is0() ? undefined : found.toBytes(true);
}

const lent = {
  blake3Hasher: (context) => new Hasher(context),
  combinePoints,
  publicPoint: (scalar) => Point.BASE.multiply(number(scalar)).toBytes(true),
};

// `archive` is lace.zip as bytes, or a promise of it; the answer is Pyodide with Lace importable and everything lent to it.
export async function boot(indexURL, archive, onPython = () => {}) {
  const python = await loadPyodide({ indexURL });
  onPython();
  python.registerJsModule("lace_js", lent);
  python.unpackArchive(await archive, "zip", { extractDir: "/lace" });
  python.runPython("import sys; sys.path.insert(0, '/lace'); import tab; tab.install()");
  return python;
}
