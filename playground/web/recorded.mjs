// Answers that were given when the folder was built: the first exchanges of each scene, before Python is there.
import { unpacking } from "./unpacking.mjs";

const keyOf = (kind, question) => JSON.stringify([kind, question]);

export async function recordings() {
  const root = new URL("./", import.meta.url).href;
  const fetching = unpacking(fetch.bind(globalThis), root);
  const told = await (await fetching(`${root}recorded.json`)).json();
  const answers = new Map(told.map(([kind, question, answer]) => [keyOf(kind, question), answer]));
  return (kind, question) => structuredClone(answers.get(keyOf(kind, question)));
}
