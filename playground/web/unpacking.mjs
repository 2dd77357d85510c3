// The large files of the folder lie in it packed (gzip), so that any static server will do: they are unpacked here.
import { PACKED } from "./packed.mjs";

export const total = Object.values(PACKED).reduce((sum, size) => sum + size, 0);

// A fetch that takes the packed file where there is one, and tells `onBytes` how many bytes have come so far, of all.
export function unpacking(fetching, root, onBytes = () => {}) {
  let come = 0;
  const count = () => new TransformStream({ transform(chunk, out) { come += chunk.length; onBytes(come); out.enqueue(chunk); } });
  return async (asked, ...how) => {
    const url = new URL(asked.url ?? asked, root);
    const name = url.href.startsWith(root) ? url.href.slice(root.length) : "";
    if (!Object.hasOwn(PACKED, name)) return fetching(asked, ...how);
    const packed = await fetching(`${url.href}.packed`);
    if (!packed.ok) throw new Error(`${name}: ${packed.status} ${packed.statusText}`);
    const type = name.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
    return new Response(packed.body.pipeThrough(count()).pipeThrough(new DecompressionStream("gzip")), { headers: { "content-type": type } });
  };
}
