// Python lives here, so that the page never waits for it: questions come as messages, answers go back.
import { boot } from "./boot.mjs";
import { total, unpacking } from "./unpacking.mjs";

const started = performance.now();
const root = new URL("./", import.meta.url).href;
const OF = 100, DOWNLOADED = 70;  // per cent

const progress = (done, words) => postMessage({ progress: { done, of: OF, words } });
const megabytes = (bytes) => (bytes / 1e6).toFixed(1);

async function open() {
  progress(0, "Downloading Python");
  globalThis.fetch = unpacking(fetch.bind(globalThis), root, (come) => {
    progress(Math.floor((DOWNLOADED * come) / total), come < total ? `Downloading Python: ${megabytes(come)} of ${megabytes(total)} MB` : "Starting Python");
  });
  const archive = fetch(`${root}lace.zip`).then((response) => response.arrayBuffer());
  const python = await boot(`${root}pyodide/`, archive, () => progress(80, "Unpacking Lace"));
  progress(90, "Importing Lace");
  const answer = python.runPython("from lace_playground.door import Door; Door().answer");
  postMessage({ ready: true, seconds: (performance.now() - started) / 1000, version: python.runPython("import sys; sys.version.split()[0]") });
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
