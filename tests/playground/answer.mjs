// node answer.mjs FOLDER QUESTIONS: a question a line in a file, an answer a line, by Lace inside Pyodide.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, questions] = process.argv.slice(2);
process.on("unhandledRejection", (error) => { console.error(String(error.message ?? error).slice(-4000)); process.exit(70); });

const { boot } = await import(pathToFileURL(`${folder}/boot.mjs`));
const python = await boot(`${folder}/pyodide/`, new Uint8Array(readFileSync(`${folder}/lace.zip`)));
const answer = python.runPython("from lace_playground.door import Door; Door().answer");
for (const question of readFileSync(questions, "utf8").trimEnd().split("\n")) console.log(answer(question));
