// Questions to the worker, answers from it. Of questions of one kind only the newest is worth an answer.
export class Python {
  // `onProgress({done, of, words})` while it is loaded, `onReady({seconds, version})`, `onFailed(why)`.
  constructor({ onProgress = () => {}, onReady = () => {}, onFailed = () => {} }) {
    this.waiting = new Map();
    this.number = 0;
    this.newest = {};
    this.isReady = false;
    this.worker = new Worker(new URL("./worker.mjs", import.meta.url), { type: "module" });
    this.worker.onerror = (event) => this.failed(event.message || "the worker could not be started", onFailed);
    this.worker.onmessage = ({ data }) => {
      if (data.progress) { onProgress(data.progress); return; }
      if (data.ready) { this.isReady = true; onReady(data); return; }
      if (data.number === undefined) { this.failed(data.failed, onFailed); return; }
      const { resolve, reject } = this.waiting.get(data.number);
      this.waiting.delete(data.number);
      if (data.failed) reject(new Error(data.failed));
      else resolve(JSON.parse(data.answer));
    };
  }

  failed(why, onFailed) {
    onFailed(why);
    for (const { reject } of this.waiting.values()) reject(new Error(`Python could not be loaded: ${why}`));
    this.waiting.clear();
  }

  // The answer, or null if a newer question of its kind came meanwhile and `isNewest` is asked for.
  async ask(kind, question, isNewest = true) {
    const number = this.number += 1;
    this.newest[kind] = number;
    const answered = new Promise((resolve, reject) => this.waiting.set(number, { resolve, reject }));
    this.worker.postMessage({ number, question: JSON.stringify({ ask: kind, ...question }) });
    const answer = await answered;
    if (isNewest && this.newest[kind] !== number) return null;
    if (answer.error) throw new Error(answer.error.message);
    return answer;
  }
}
