// pytest inside Pyodide: node in_pyodide.mjs FOLDER REPOSITORY SITE_PACKAGES ARGUMENT…
// FOLDER is a built playground. Lace comes from its archive, the tests and the pure packages they need from this disk.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, repository, packages, ...wanted] = process.argv.slice(2);
process.on("unhandledRejection", (error) => { console.error(String(error.message ?? error).slice(-4000)); process.exit(70); });

const { boot } = await import(pathToFileURL(`${folder}/boot.mjs`));
const python = await boot(`${folder}/pyodide/`, new Uint8Array(readFileSync(`${folder}/lace.zip`)));
for (const [place, root] of [["/repository", repository], ["/packages", packages]]) {
  python.FS.mkdir(place);
  python.FS.mount(python.FS.filesystems.NODEFS, { root }, place);
}
python.globals.set("wanted", python.toPy(wanted));
process.exitCode = python.runPython(`
import os, sys
sys.path += ["/repository/tests", "/packages"]
os.chdir("/repository")
from playground.inside import run
run(wanted)
`);
