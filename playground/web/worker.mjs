// Python lives here, so that the page never waits for it: questions come as messages, answers go back.
import { boot } from "./boot.mjs";

const started = performance.now();

async function open() {
  const archive = await (await fetch(new URL("./lace.zip", import.meta.url))).arrayBuffer();
  const python = await boot(new URL("./pyodide/", import.meta.url).href, archive);
  const answer = python.runPython("from lace_playground.door import Door; Door().answer");
  postMessage({ ready: true, seconds: (performance.now() - started) / 1000, version: python.runPython("sys.version.split()[0]") });
  return answer;
}

const opened = open();
opened.catch((error) => postMessage({ failed: String(error) }));

onmessage = async ({ data: { number, question } }) => {
  try {
    const answer = await opened;
    postMessage({ number, answer: answer(question) });
  } catch (error) {
    postMessage({ number, failed: String(error) });
  }
};
